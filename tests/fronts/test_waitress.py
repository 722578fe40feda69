"""waitress, which takes forwarded headers away unless it is told not to, and can read them itself."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fronts.asking import ONE, OTHER, VENUE, client, statuses
from tests.fronts.nginx import Nginx, run_nginx
from tests.servers import Served, free_port, run_process


@contextmanager
def run_waitress(*options: str) -> Iterator[Served]:
    """Serve the apps by waitress, with these options of its own."""
    with tempfile.TemporaryDirectory(prefix="waitress-") as folder:
        address = f"127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "waitress", f"--listen={address}", *options, VENUE]
        with run_process(command, address, folder) as served:
            yield served


@pytest.fixture(scope="module")
def fronts(nginx: str) -> Iterator[dict[str, Nginx]]:
    """nginx in front of three ways to set waitress up."""
    trusting = ("--trusted-proxy=127.0.0.1", "--trusted-proxy-headers=x-forwarded-for")
    with (
        run_waitress() as as_it_comes,
        run_waitress("--no-clear-untrusted-proxy-headers") as keeping,
        run_waitress(*trusting) as reading,
        run_nginx(nginx, as_it_comes.address) as first,
        run_nginx(nginx, keeping.address) as second,
        run_nginx(nginx, reading.address) as third,
    ):
        yield {"as it comes": first, "keeping": second, "reading": third}


def both(front: Nginx, path: str) -> list[str]:
    """Whom the app takes two clients for, who both lie."""
    return [client(front.append, path, source, "127.0.0.9") for source in (ONE, OTHER)]


def test_as_it_comes_waitress_leaves_no_header_to_read(fronts: dict[str, Nginx]) -> None:
    """X-Forwarded-For and Forwarded are gone, for ProxyFix too: everybody is the proxy."""
    seen = [both(fronts["as it comes"], path) for path in ("/x-forwarded-for", "/forwarded", "/fixed")]
    assert seen == [["127.0.0.1", "127.0.0.1"]] * 3


def test_as_it_comes_waitress_leaves_x_real_ip(fronts: dict[str, Nginx]) -> None:
    """A header that waitress does not know arrives."""
    assert both(fronts["as it comes"], "/x-real-ip") == [ONE, OTHER]


def test_told_to_keep_headers_waitress_leaves_them_to_the_app(fronts: dict[str, Nginx]) -> None:
    """With ``clear_untrusted_proxy_headers=False`` the app's own trust decides."""
    seen = [
        both(fronts["keeping"], path) for path in ("/x-forwarded-for", "/forwarded", "/x-real-ip", "/fixed")
    ]
    assert seen == [[ONE, OTHER]] * 4


def test_told_of_a_proxy_waitress_names_the_client_itself(fronts: dict[str, Nginx]) -> None:
    """With ``trusted_proxy`` the peer that the app sees is the client, and no setting of ours is needed."""
    assert both(fronts["reading"], "/nobody") == [ONE, OTHER]
    assert statuses(fronts["reading"].append, "/nobody", ONE, "127.0.0.9", "127.0.0.10", OTHER) == [
        200,
        200,
        429,
    ]


def test_who_waitress_names_is_not_heard_again(fronts: dict[str, Nginx]) -> None:
    """Where both read the header, the client that waitress made the peer cannot name another."""
    assert both(fronts["reading"], "/x-forwarded-for") == [ONE, OTHER]

"""gunicorn on a port and on a unix socket, where a peer has no address."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.fronts.asking import ONE, OTHER, VENUE, ask, client, statuses
from tests.fronts.nginx import Nginx, run_nginx
from tests.servers import Served, connect, run_gunicorn, wait_until


@pytest.fixture(scope="module")
def port() -> Iterator[Served]:
    """The apps, in a gunicorn on a port."""
    with run_gunicorn(VENUE) as served:
        yield served


@pytest.fixture(scope="module")
def unix() -> Iterator[Served]:
    """The apps, in a gunicorn on a unix socket."""
    with run_gunicorn(VENUE, unix=True) as served:
        yield served


@pytest.fixture(scope="module")
def front(unix: Served, nginx: str) -> Iterator[Nginx]:
    """nginx in front of the socket."""
    with run_nginx(nginx, unix.address) as running:
        yield running


def test_on_a_port_the_client_is_who_connects(port: Served) -> None:
    """Without a proxy nothing needs to be said."""
    assert [client(port.address, "/nobody", source) for source in (ONE, OTHER)] == [ONE, OTHER]
    assert statuses(port.address, "/nobody", ONE, "127.0.0.9", "127.0.0.10", "127.0.0.11") == [200, 200, 429]


def test_a_trusted_proxy_on_this_machine_is_believed(port: Served) -> None:
    """Header fields that come more than once are one chain."""
    assert client(port.address, "/x-forwarded-for", "127.0.0.1", ONE, OTHER, "127.0.0.5") == OTHER


def test_on_a_unix_socket_the_proxy_names_the_client(unix: Served) -> None:
    """The peer of a socket has no address; with ``unix`` trusted, each client has its own."""
    assert ask(unix.address, "/nobody/who")[1] == {"client": None, "peer": ""}
    chains = (ONE, OTHER, f"{OTHER}, {ONE}")
    assert [client(unix.address, "/x-forwarded-for", ONE, chain) for chain in chains] == [ONE, OTHER, ONE]


@pytest.mark.parametrize("path", ["/x-forwarded-for", "/forwarded", "/x-real-ip", "/fixed"])
def test_through_nginx_a_unix_socket_serves_two_clients(front: Nginx, path: str) -> None:
    """nginx connects over the socket, and clients to nginx."""
    assert [client(front.append, path, source, "127.0.0.9") for source in (ONE, OTHER)] == [ONE, OTHER]
    assert [client(front.overwrite, path, source) for source in (ONE, OTHER)] == [ONE, OTHER]


def test_a_socket_that_nobody_vouches_for_is_one_bucket_and_that_is_said(unix: Served) -> None:
    """All share ``no-address``; one line in the log says what to set."""
    assert statuses(unix.address, "/nobody", ONE, ONE, OTHER, "127.0.0.9") == [200, 200, 429]
    assert unix.log.read_text().count("without a usable peer address") == 1


def test_gunicorn_dies_with_the_process_that_started_it() -> None:
    """A test run that is killed leaves neither a master nor a worker behind."""
    code = (
        "from tests.servers import *\n"
        f"with run_gunicorn('{VENUE}') as served: print(served.address, flush=True); input()"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        address = child.stdout.readline().decode().strip()
        assert client(address, "/nobody") == ONE
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: _is_refused(address), what="the orphans are gone")


def _is_refused(address: str) -> bool:
    try:
        connect(address).close()
    except ConnectionRefusedError:
        return True
    return False

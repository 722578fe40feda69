"""nginx in front of gunicorn: each client is told apart, and no client can be another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fronts.asking import ONE, OTHER, VENUE, ask, client, statuses
from tests.fronts.nginx import Nginx, run_nginx
from tests.servers import Served, run_gunicorn

HEADERS = ["X-Forwarded-For", "Forwarded", "X-Real-IP"]
#: What a client may send to be taken for somebody else.
LIES = [
    "127.0.0.9",
    "127.0.0.1",
    "for=127.0.0.9",
    'for="127.0.0.9',
    "unknown",
    "\\",
    '"',
    ",,,",
    "1.2.3.4," * 500,
]


@pytest.fixture(scope="module")
def gunicorn() -> Iterator[Served]:
    """The apps, in a gunicorn with threads."""
    with run_gunicorn(VENUE, worker="gthread") as served:
        yield served


@pytest.fixture(scope="module")
def front(gunicorn: Served, nginx: str) -> Iterator[Nginx]:
    """nginx in front of them."""
    with run_nginx(nginx, gunicorn.address) as running:
        yield running


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("how", ["append", "overwrite"])
def test_each_client_is_told_apart(front: Nginx, header: str, how: str) -> None:
    """Two addresses that connect to nginx are two clients, by whichever header it names them."""
    port, path = getattr(front, how), f"/{header.lower()}"
    assert [client(port, path, source) for source in (ONE, OTHER)] == [ONE, OTHER]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("how", ["append", "overwrite"])
def test_no_client_is_another(front: Nginx, header: str, how: str) -> None:
    """Whatever a client sends in the very header that is read, once or twice, it stays itself."""
    port, path = getattr(front, how), f"/{header.lower()}"
    seen = {client(port, path, ONE, lie, header=header) for lie in LIES}
    seen |= {client(port, path, ONE, lie, "127.0.0.9", header=header) for lie in LIES}
    assert seen == {ONE}


@pytest.mark.parametrize("header", HEADERS[:2])
def test_two_proxies_in_a_row_are_both_passed_over(front: Nginx, header: str) -> None:
    """Each adds whom it saw; the first address that is no proxy's is the client."""
    path = f"/{header.lower()}"
    lies = [client(front.outer, path, source, lie, header=header) for source in (ONE, OTHER) for lie in LIES]
    assert lies == [ONE] * len(LIES) + [OTHER] * len(LIES)


def test_a_client_has_its_own_bucket_behind_nginx(front: Nginx) -> None:
    """Two a minute are two a minute, through any proxy and with any lie; another client has its own two."""
    seen = statuses(front.append, "/x-forwarded-for", ONE, "127.0.0.9")
    seen += statuses(front.overwrite, "/x-forwarded-for", ONE, "127.0.0.10")
    seen += statuses(front.outer, "/x-forwarded-for", ONE, "127.0.0.11", "127.0.0.12")
    assert seen == [200, 200, 429, 429]
    assert statuses(front.append, "/x-forwarded-for", OTHER, ONE, ONE, ONE) == [200, 200, 429]


def test_whoever_comes_past_nginx_is_who_connects(gunicorn: Served) -> None:
    """A client that reaches gunicorn itself is not believed."""
    assert client(gunicorn.address, "/x-forwarded-for", OTHER, ONE) == OTHER
    assert client(gunicorn.address, "/forwarded", OTHER, f"for={ONE}", header="Forwarded") == OTHER
    assert client(gunicorn.address, "/x-real-ip", OTHER, ONE, header="X-Real-IP") == OTHER


def test_a_header_spelt_with_underscores_is_not_the_header(gunicorn: Served) -> None:
    """A WSGI environ cannot tell X_Forwarded_For from X-Forwarded-For; gunicorn drops the former."""
    assert (
        client(gunicorn.address, "/x-forwarded-for", "127.0.0.1", "127.0.0.9", header="X_Forwarded_For")
        == "127.0.0.1"
    )


def test_with_proxy_fix_the_client_is_who_proxy_fix_says(front: Nginx) -> None:
    """An app that has it needs nothing else."""
    assert [client(front.append, "/fixed", source, "127.0.0.9") for source in (ONE, OTHER)] == [ONE, OTHER]


def test_where_nobody_is_trusted_everybody_is_nginx_and_that_is_said(gunicorn: Served, front: Nginx) -> None:
    """All share the proxy's address, and one line in the log says which setting to change."""
    assert {client(front.append, "/nobody", source) for source in (ONE, OTHER)} == {"127.0.0.1"}
    assert statuses(front.append, "/nobody", ONE, ONE, ONE, ONE) == [200, 200, 429]
    log = gunicorn.log.read_text()
    assert log.count("with a X-Forwarded-For header, and no proxy is trusted") == 1


def test_an_exemption_is_out_of_reach(front: Nginx) -> None:
    """127.0.0.3 is exempt, and nginx's own address too; 127.0.0.2 reaches neither by any header."""
    lies = [OTHER, "127.0.0.1", "unknown", "", f"{OTHER}, 127.0.0.5"]
    assert statuses(front.append, "/exempt", ONE, *lies) == [200, 200, 429, 429, 429]
    assert statuses(front.append, "/exempt", OTHER, *lies) == [200] * 5
    assert ask(front.append, "/exempt/", OTHER)[0] == 200

"""Slots under servers that people run: each closes bodies in its own way, and each slot comes back."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection

import pytest

from tests.acceptance.served import SIZE
from tests.servers import Served, connect, free_port, run_gunicorn, run_process, wait_until

APP = "tests.acceptance.served:app"
Get = Callable[[str], tuple[int, bytes]]


@contextmanager
def run_waitress() -> Iterator[Served]:
    """Serve the app by waitress."""
    with tempfile.TemporaryDirectory(prefix="waitress-") as folder:
        address = f"127.0.0.1:{free_port()}"
        with run_process(
            [sys.executable, "-m", "waitress", f"--listen={address}", APP], address, folder
        ) as it:
            yield it


@pytest.fixture(scope="module", params=["gunicorn", "waitress"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the app is served, by a server with several threads."""
    gunicorn = run_gunicorn(APP, "--threads", "4", worker="gthread")
    with gunicorn if request.param == "gunicorn" else run_waitress() as served:
        yield served.address


@pytest.fixture
def get(address: str) -> Get:
    """What a path is answered, over a connection of its own."""

    def get(path: str) -> tuple[int, bytes]:
        connection = HTTPConnection(address, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    return get


def free_again(get: Get) -> None:
    """Wait until the slot is free: a server may close a body after its last byte is out."""
    wait_until(lambda: get("/free")[1] == b"1", what="the slot is free")


@pytest.mark.parametrize(("path", "answer"), [("/download", (200, SIZE)), ("/crash", (500, None))])
def test_one_after_the_other_passes(get: Get, path: str, answer: tuple[int, int | None]) -> None:
    """Three downloads in turn, whole, and three crashes, of one at a time."""
    for _ in range(3):
        status, body = get(path)
        assert (status, len(body) if answer[1] else None) == answer
        free_again(get)


@pytest.mark.parametrize("path", ["/download", "/endless"])
def test_who_hangs_up_gives_the_slot_back(address: str, get: Get, path: str) -> None:
    """The connection is cut in the middle of the body; the next caller finds room."""
    for _ in range(2):
        with connect(address) as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert connection.recv(12) == b"HTTP/1.1 200"
        free_again(get)


def test_a_body_under_way_holds_the_slot(address: str, get: Get) -> None:
    """As long as the caller reads, others are refused."""
    with connect(address) as connection:
        connection.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"
        assert [get("/download")[0] for _ in range(3)] == [429] * 3
        assert len(connection.recv(65_536)) > 0
    free_again(get)

"""Several workers under one master: each with connections of its own, and together exactly at the limit."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from itertools import combinations
from typing import Any

import pytest

from tests.servers import Served, StoreServer, connect, run_gunicorn, wait_until

VENUE = "tests.faults.venue:application"
WORKERS = {
    "sync": ("sync", ()),
    "gthread": ("gthread", ("--threads", "8")),
    "gevent": ("gevent", ()),
}


@pytest.fixture(scope="module")
def server() -> Iterator[StoreServer]:
    """A server of these tests' own."""
    with StoreServer() as server:
        yield server


@pytest.fixture(scope="module", params=WORKERS)
def served(request: pytest.FixtureRequest, server: StoreServer) -> Iterator[Served]:
    """The app, loaded before four workers are forked."""
    worker, options = WORKERS[request.param]
    with run_gunicorn(
        VENUE,
        *("--workers", "4", "--preload", *options),
        worker=worker,
        FLASK_SECRET_KEY="s",
        FLASK_VENUELIMIT_STORAGE_URI=server.url,
        FLASK_STORAGE_PORT=str(server.port),
    ) as served:
        yield served


def ask(served: Served, path: str = "/") -> tuple[int, bytes]:
    """The status and body of one answer; 0 where nobody answers."""
    connection = HTTPConnection("venue.example")
    try:
        connection.sock = connect(served.address)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


def who(served: Served) -> dict[str, Any]:
    """Which process answers, under which master, and what sockets to the storage it has."""
    answer: dict[str, Any] = json.loads(ask(served, "/who")[1])
    return answer


@pytest.fixture(autouse=True)
def _nothing_is_counted(server: StoreServer) -> None:
    with server.client() as client:
        client.flushall()


def test_four_workers_admit_exactly_the_limit(served: Served) -> None:
    """Forked with an open connection, and asked by sixteen clients at once: 300 of 400 pass, no failure."""
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: ask(served), range(400)))
    assert sorted(status for status, _ in answers) == [200] * 300 + [429] * 100
    assert "storage" not in served.log.read_text()


def test_no_two_workers_share_a_socket(served: Served, server: StoreServer) -> None:
    """Whatever was open when they were forked, each speaks over connections of its own."""
    sockets: dict[int, set[int]] = {}

    def all_are_known() -> bool:
        with ThreadPoolExecutor(8) as pool:
            for answer in pool.map(lambda _: who(served), range(8)):
                sockets[answer["worker"]] = set(answer["sockets"])
        return len(sockets) == 4

    wait_until(all_are_known, what="each worker has answered")
    assert all(sockets.values())
    assert not any(one & other for one, other in combinations(sockets.values(), 2))


def test_a_killed_master_takes_its_workers_along(served: Served, server: StoreServer) -> None:
    """Under load, by SIGKILL: nobody hangs, and every connection to the storage is closed."""
    master = who(served)["master"]
    with ThreadPoolExecutor(8) as pool, server.client() as client:
        answers = pool.map(lambda _: ask(served), range(60))
        os.kill(master, signal.SIGKILL)
        assert {status for status, _ in answers} <= {0, 200, 429}
        wait_until(lambda: len(client.client_list()) == 1, 20, what="the workers are gone")

"""A primary that dies or freezes under load, and the replica that Sentinel puts in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask

from flask_venuelimit import Limit
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, statuses
from tests.servers import StoreServer, wait_until
from tests.several import SERVICE, Watched, run_sentinel


@pytest.fixture
def watched() -> Iterator[Watched]:
    """A primary, its replica and a Sentinel of this test's own."""
    with run_sentinel() as watched:
        yield watched


@pytest.fixture
def uri(watched: Watched) -> str:
    """The service, with the time-outs an app has, since a failover is to be noticed."""
    return f"{watched.hasty_url}?socket_timeout=0.3&socket_connect_timeout=0.3"


def holds(server: StoreServer) -> int:
    """How many keys a server has."""
    with server.client() as client:
        return int(client.dbsize())


def wait_for_failover(watched: Watched) -> None:
    """Wait until Sentinel names the replica as the primary."""
    with watched.sentinel.client(decode_responses=True) as client:
        wait_until(
            lambda: client.sentinel_get_master_addr_by_name(SERVICE) == ("127.0.0.1", watched.replica.port),
            20,
            what="the replica is the primary",
        )


def until_counted_by(server: StoreServer, app: Flask, clock: ManualClock) -> Callable[[], bool]:
    """Whether requests are counted, and by that server."""

    def is_so() -> bool:
        clock.advance(30)
        return "RateLimit" in caller(app).get("/").headers and holds(server) > 0

    return is_so


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_failover_under_load_fails_no_request(
    app: Flask, limit: Limit, watched: Watched, clock: ManualClock, how: str
) -> None:
    """Requests pass uncounted until the replica has taken over, and are counted by it from then on."""
    statuses(caller(app), "/", 2)
    taken_over = until_counted_by(watched.replica, app, clock)
    with ThreadPoolExecutor(4) as pool:
        getattr(watched.primary, how)()
        load = [pool.submit(statuses, caller(app), "/", 100) for _ in range(4)]
        wait_for_failover(watched)
        assert all(set(each.result(20)) == {200} for each in load)
        wait_until(taken_over, 20, what="the new primary counts")
    limit.reset(C)
    statuses(caller(app), "/", 3)
    assert limit.peek(subject=C).remaining == 997


def test_a_primary_that_thaws_after_the_failover_counts_nobody(
    app: Flask, limit: Limit, watched: Watched, clock: ManualClock
) -> None:
    """It believes to be primary still; connections to it were closed, and the new one is asked."""
    statuses(caller(app), "/", 1)
    watched.primary.pause()
    wait_for_failover(watched)
    statuses(caller(app), "/", 1)
    watched.primary.resume()
    wait_until(until_counted_by(watched.replica, app, clock), 20, what="the new primary counts")
    limit.reset(C)
    statuses(caller(app), "/", 3)
    assert (limit.peek(subject=C).remaining, holds(watched.replica)) == (997, 1)


def test_a_dead_sentinel_harms_nobody_who_is_connected(
    app: Flask, limit: Limit, watched: Watched, told: list[str], counts_again: Callable[[], None]
) -> None:
    """It is asked for the primary's address alone; without it and without a connection, requests pass."""
    statuses(caller(app), "/", 1)
    watched.sentinel.kill()
    assert "RateLimit" in caller(app).get("/").headers
    with watched.primary.client() as client:
        client.client_kill_filter(_type="normal", skipme=True)
    assert (statuses(caller(app), "/", 3), told) == ([200] * 3, ["failed"])
    watched.sentinel.start()
    counts_again()

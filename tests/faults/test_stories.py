"""Outages as operators know them, from the onset to the end."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from flask import Flask

from benchmarks.outage import flapping
from flask_venuelimit import Limit, VenueLimit, by_ip
from flask_venuelimit.storage import open_storage
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, statuses
from tests.faults.conftest import PLENTY
from tests.faults.proxy import Proxy
from tests.servers import StoreServer, connect, wait_until

PATIENCE = "?socket_timeout=10&socket_connect_timeout=10"
HASTE = "?socket_timeout=0.2&socket_connect_timeout=0.2"


@pytest.fixture(params=[PATIENCE])
def uri(proxy: Proxy, request: pytest.FixtureRequest) -> str:
    """Through the network, with time for a busy machine where a test does not ask for haste."""
    return f"{proxy.url}{request.param}"


hasty = pytest.mark.parametrize("uri", [HASTE], indirect=True)


def at_once(app: Flask, threads: int) -> list[int]:
    """The statuses of so many requests at the same time."""
    gate = Barrier(threads)

    def ask(_: int) -> int:
        gate.wait()
        return caller(app).get("/").status_code

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(ask, range(threads)))


def test_a_restart_between_two_requests_is_no_failure(
    app: Flask, limit: Limit, server: StoreServer, told: list[str]
) -> None:
    """The server has forgotten the script and dropped the connection; both are noticed without losing any."""
    statuses(caller(app), "/", 3)
    server.kill()
    server.start()
    assert statuses(caller(app), "/", 3) == [200] * 3
    assert (limit.peek(subject=C).remaining, told) == (997, [])


def test_a_flush_of_scripts_within_a_request_is_no_failure(
    app: Flask, limiter: VenueLimit, server: StoreServer, told: list[str]
) -> None:
    """Charged, forgotten, and given back by a script that is sent again: one charge, one refund."""
    failures = limiter.failures(PLENTY, name="f")

    def flush() -> str:
        with server.client() as client:
            client.script_flush()
        return "ok"

    app.add_url_rule("/", "home", failures(flush))
    assert statuses(caller(app), "/", 4) == [200] * 4
    assert (failures.peek(subject=C).remaining, told) == (1000, [])


@hasty
def test_the_wait_for_a_silent_server_is_paid_once(
    app: Flask, limit: Limit, proxy: Proxy, told: list[str]
) -> None:
    """Of five hundred requests one waits, over the connection there is; others follow a second apart."""
    statuses(caller(app), "/", 1)
    proxy.silent, proxy.connections = True, 0
    assert set(statuses(caller(app), "/", 500)) == {200}
    assert (told, proxy.connections <= 2) == (["failed"], True)


@hasty
def test_requests_that_wait_together_are_one_failure(
    app: Flask, limit: Limit, proxy: Proxy, told: list[str], counts_again: Callable[[], None]
) -> None:
    """Many threads wait for the same silence, side by side, and one of them is told of it."""
    proxy.silent = True
    assert at_once(app, 30) == [200] * 30
    proxy.silent = False
    counts_again()
    assert told == ["failed", "recovered"]


def test_a_hundred_and_fifty_requests_at_once_are_no_failure(
    app: Flask, limit: Limit, told: list[str]
) -> None:
    """Whoever asks at once with many others is counted: a flood must not turn the limits off."""
    assert at_once(app, 150) == [200] * 150
    assert (limit.peek(subject=C).remaining, told) == (850, [])


@hasty
def test_connections_that_lie_idle_do_not_fail_one_after_the_other(
    app: Flask, limit: Limit, proxy: Proxy, told: list[str], clock: ManualClock
) -> None:
    """A firewall forgets them all at once: one request finds out, and no other meets a dead one."""
    at_once(app, 20)
    proxy.forget()
    assert statuses(caller(app), "/", 3) == [200] * 3
    clock.advance(30)
    assert at_once(app, 20) == [200] * 20
    assert (told, limit.peek(subject=C).remaining >= 960) == (["failed", "recovered"], True)


def test_a_primary_that_was_demoted_is_left_for_the_new_one(
    app: Flask, limit: Limit, server: StoreServer, proxy: Proxy, clock: ManualClock, told: list[str]
) -> None:
    """The address leads to another server now; connections to the old one, which is read-only, are closed."""
    statuses(caller(app), "/", 2)
    with StoreServer() as other, server.client() as client:
        client.replicaof("127.0.0.1", str(other.port))
        proxy.target = other.port
        assert statuses(caller(app), "/", 2) == [200] * 2
        clock.advance(1)
        assert statuses(caller(app), "/", 2) == [200] * 2
        assert (told, limit.peek(subject=C).remaining) == (["failed", "recovered"], 998)


def test_a_server_that_reads_its_data_in_is_waited_for(app: Flask, clock: ManualClock) -> None:
    """LOADING, for real: after a restart with much to read, requests pass uncounted, then count on."""
    slow = (
        *("--key-load-delay", "30000", "--rdbcompression", "no"),
        *("--loading-process-events-interval-bytes", "1024"),
    )
    with StoreServer(*slow) as server, server.client() as client, ThreadPoolExecutor(1) as pool:
        limiter = VenueLimit(app, storage=open_storage(server.url, clock=clock))
        limit = limiter.limit(PLENTY, name="it", key=by_ip)
        app.add_url_rule("/", "home", limit(lambda: "ok"))
        statuses(caller(app), "/", 5)
        client.mset({f"other {number}": "x" * 1000 for number in range(40)})
        client.save()
        server.kill()
        starting = pool.submit(server.start)
        wait_until(lambda: _says(server, b"-LOADING"), what="the server loads")
        assert "RateLimit" not in caller(app).get("/").headers
        starting.result()
        clock.advance(1)
        statuses(caller(app), "/", 1)
        assert limit.peek(subject=C).remaining == 994


def test_a_password_that_was_changed_is_a_failure_until_it_is_right(
    app: Flask, server: StoreServer, clock: ManualClock, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Requests pass uncounted, and the log says what is wrong without saying the password."""
    with server.client() as client:
        client.config_set("requirepass", "hunter2")
        limiter = VenueLimit(app, storage=open_storage(server.url.replace("//", "//:hunter2@"), clock=clock))
        app.add_url_rule("/", "home", limiter.limit(PLENTY, name="it", key=by_ip)(lambda: "ok"))
        assert "RateLimit" in caller(app).get("/").headers
        client.config_set("requirepass", "rotated")
        client.client_kill_filter(_type="normal", skipme=True)
        assert "RateLimit" not in caller(app).get("/").headers
        client.config_set("requirepass", "hunter2")
        clock.advance(1)
        assert "RateLimit" in caller(app).get("/").headers
    assert (told, "password" in caplog.text, "hunter2" in caplog.text) == (
        ["failed", "recovered"],
        True,
        False,
    )


def test_a_host_that_nobody_knows_is_a_failure(app: Flask, told: list[str]) -> None:
    """A name that does not resolve makes no request fail."""
    app.config["VENUELIMIT_STORAGE_URI"] = "redis://no-such-host.invalid:6379"
    app.add_url_rule("/", "home", VenueLimit(app).limit(PLENTY, name="it", key=by_ip)(lambda: "ok"))
    assert (statuses(caller(app), "/", 5), told) == ([200] * 5, ["failed"])


def test_flapping_leaves_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    """Hundreds of requests through dozens of outages: files, threads and connections stay as they were."""
    # what is logged would be kept, and counted
    with caplog.at_level(logging.CRITICAL, "flask_venuelimit"):
        early, late, failures = flapping(800)
    assert failures >= 10
    # the proxy itself may hold two sockets and a thread more at the moment
    assert late.files <= early.files + 4
    assert late.threads <= early.threads + 2
    assert late.clients <= early.clients + 1
    assert late.kilobytes <= early.kilobytes + 100


def _says(server: StoreServer, what: bytes) -> bool:
    try:
        with connect(f"127.0.0.1:{server.port}") as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(100).startswith(what)
    except OSError:
        return False

"""A storage that dies: requests pass, it is said once, and all is as before when it comes back."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    FixedWindow,
    Limit,
    VenueLimit,
    by_ip,
    storage_failed,
    storage_recovered,
)
from tests.acceptance.callers import NAVIGATING, C, caller, statuses
from tests.servers import StoreServer, free_port, wait_until


@pytest.fixture
def limiter(app: Flask, server: StoreServer) -> VenueLimit:
    """A limiter over that server, set up as users do: by its URI."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    return VenueLimit(app)


@pytest.fixture
def limit(app: Flask, limiter: VenueLimit) -> Limit:
    """Two requests a minute of ``/``."""
    limit = limiter.limit(FixedWindow(2, 60), name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


def counts_again(app: Flask) -> None:
    """Wait until an answer carries limit state again."""
    wait_until(lambda: "RateLimit" in caller(app).get("/").headers, what="limits count again")


def test_a_dead_storage_lets_requests_pass(app: Flask, limit: Limit, server: StoreServer) -> None:
    """Fail open: the third and the thirtieth request are answered as if there were no limit."""
    assert statuses(caller(app), "/", 1) == [200]
    server.kill()
    assert statuses(caller(app), "/", 30) == [200] * 30


def test_a_dead_storage_shows_no_limit_state(app: Flask, limit: Limit, server: StoreServer) -> None:
    """Where nobody counted, no header says what is left."""
    server.kill()
    answer = caller(app).get("/")
    assert [name for name, _ in answer.headers if "ratelimit" in name.lower()] == []


def test_a_failure_is_logged_once(app: Flask, limit: Limit, server: StoreServer, warnings: list[str]) -> None:
    """One line at the onset, not one a request, and it does not show where the storage lies in secret."""
    statuses(caller(app), "/", 1)
    server.kill()
    statuses(caller(app), "/", 10)
    assert len(warnings) == 1
    assert "storage" in warnings[0]


def test_recovery_is_logged_once_and_limits_count_again(
    app: Flask, limit: Limit, server: StoreServer, warnings: list[str]
) -> None:
    """When the server is back, without a restart of the app, limits hold again."""
    server.kill()
    statuses(caller(app), "/", 3)
    server.start()
    counts_again(app)
    statuses(caller(app), "/", 2)
    assert statuses(caller(app), "/", 2) == [429, 429]
    assert len(warnings) == 2


def test_onset_and_recovery_are_signalled(app: Flask, limit: Limit, server: StoreServer) -> None:
    """``storage_failed`` carries the error; both are sent once, by the app."""
    seen: list[tuple[str, object, object]] = []

    def failed(sender: object, error: object) -> None:
        seen.append(("failed", sender, type(error).__name__))

    def recovered(sender: object) -> None:
        seen.append(("recovered", sender, None))

    with storage_failed.connected_to(failed), storage_recovered.connected_to(recovered):
        server.kill()
        statuses(caller(app), "/", 3)
        server.start()
        counts_again(app)
    assert seen == [("failed", app, "ConnectionError"), ("recovered", app, None)]


def test_a_server_that_is_down_at_the_start_lets_the_app_start(app: Flask, warnings: list[str]) -> None:
    """Nothing is asked of the storage before the first request."""
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis://127.0.0.1:{free_port()}"
    limiter = VenueLimit(app)
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    assert warnings == []
    assert statuses(caller(app), "/", 3) == [200] * 3
    assert len(warnings) == 1


def test_a_storage_that_never_answers_costs_little(app: Flask, server: StoreServer) -> None:
    """A server that accepts and is silent makes no request fail."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.hasty_url
    app.add_url_rule("/", "home", VenueLimit(app).limit("5/minute", key=by_ip)(lambda: "ok"))
    statuses(caller(app), "/", 1)
    server.pause()
    assert statuses(caller(app), "/", 2) == [200] * 2
    server.resume()


def test_a_storage_that_dies_within_a_request_loses_a_refund_only(
    app: Flask, limiter: VenueLimit, server: StoreServer, warnings: list[str]
) -> None:
    """Charge, then death, then the refund: the response is sent as it is, with no 500."""
    view: Any = limiter.failures("5/minute", name="f")(lambda: str(server.kill()))  # type: ignore[func-returns-value]
    app.add_url_rule("/", "home", view)
    assert statuses(caller(app), "/", 1) == [200]
    assert len(warnings) == 1


def test_what_was_not_charged_is_not_refunded(app: Flask, limiter: VenueLimit, server: StoreServer) -> None:
    """A request that passed uncounted gives nothing back when the storage is there again."""
    limit = limiter.failures(FixedWindow(3, 60), name="f")
    app.add_url_rule("/<int:status>", "login", limit(lambda status: ("", status)))
    app.add_url_rule("/", "home", limit(lambda: str(server.start())))
    server.kill()
    assert statuses(caller(app), "/", 1) == [200]
    wait_until(lambda: "RateLimit" in caller(app).get("/200").headers, what="limits count again")
    statuses(caller(app), "/401", 3)
    assert limit.peek(subject=C).remaining == 0


def test_by_hand_a_dead_storage_raises_nothing(
    limiter: VenueLimit, limit: Limit, server: StoreServer
) -> None:
    """Hit, peek, refund, reset and guard go on; the decision is nobody's."""
    charged = limit.hit(subject=C)
    server.kill()
    for decision in (limit.hit(subject=C), limit.peek(subject=C)):
        assert (decision.allowed, decision.remaining, decision.retry_after) == (True, 2, 0.0)
    limit.refund(charged)
    limit.reset(C)
    with limit.guard(subject=C) as decision:
        assert decision.reset_after == 0.0


def test_the_limit_page_needs_no_storage(app: Flask, limit: Limit, server: StoreServer) -> None:
    """Whoever was sent to the page before the storage died still sees it."""
    statuses(caller(app), "/", 2)
    location = caller(app).get("/", headers=NAVIGATING).headers["Location"]
    server.kill()
    assert statuses(caller(app), location, 1) == [429]


@pytest.mark.parametrize(
    "setting", [("maxmemory", "1"), ("requirepass", "secret"), ("min-replicas-to-write", "1")]
)
def test_a_server_that_will_not_write_is_a_failure(
    app: Flask, limit: Limit, server: StoreServer, warnings: list[str], setting: tuple[str, str]
) -> None:
    """Out of memory, no password, not allowed to write: requests pass, and it is told once."""
    with server.client() as client:
        client.config_set(*setting)
    assert statuses(caller(app), "/", 4) == [200] * 4
    assert len(warnings) == 1


def test_a_read_only_replica_is_a_failure(
    app: Flask, limit: Limit, server: StoreServer, warnings: list[str]
) -> None:
    """READONLY after a failover: requests pass, and it is told once."""
    with server.client() as client:
        client.replicaof("127.0.0.1", str(free_port()))
    assert statuses(caller(app), "/", 4) == [200] * 4
    assert len(warnings) == 1


def test_no_log_line_shows_the_password(app: Flask, caplog: pytest.LogCaptureFixture) -> None:
    """A refused connection is logged without the URI's secrets."""
    caplog.set_level(0)
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis://user:hunter2@127.0.0.1:{free_port()}"
    limiter = VenueLimit(app)
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    statuses(caller(app), "/", 2)
    assert "hunter2" not in caplog.text + repr(limiter)

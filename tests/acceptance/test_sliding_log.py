"""``SlidingLog`` through requests: each admitted hit is remembered for exactly as long as it counts."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import Limit, SlidingLog, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, left, room, statuses


@pytest.fixture
def ten(app: Flask, limiter: VenueLimit) -> Limit:
    """Ten requests of ``/`` in any sixty seconds."""
    limit = limiter.limit(SlidingLog(10, per=60), name="log", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


def at(app: Flask, clock: ManualClock, second: float, times: int = 1) -> list[int]:
    """What so many requests are answered once the clock reads ``second``."""
    clock.advance(second - clock())
    return statuses(caller(app), "/", times)


def test_ten_in_any_minute(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """The table of the ``limits`` documentation: 1, 2, 4 and 3 requests, one more, then none before 80."""
    for second, times in ((10, 1), (20, 2), (30, 4), (50, 3), (71, 1)):
        assert at(app, clock, second, times) == [200] * times
    clock.advance(1)
    refused = caller(app).get("/")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "8")
    assert at(app, clock, 79.99) + at(app, clock, 80, 3) == [429, 200, 200, 429]


def test_who_knocks_every_second_gets_two_in_ten_for_ever(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Refused hits leave no trace: they neither lock anybody out nor move the window."""
    app.add_url_rule("/", "home", limiter.limit(SlidingLog(2, per=10), key=by_ip)(lambda: "ok"))
    admitted = [second for second in range(60) if at(app, clock, second) == [200]]
    assert admitted == [0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51]


def test_a_hit_exactly_as_old_as_the_window_is_outside(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """At sixty seconds the tenth place is free, a microsecond earlier it is not."""
    assert at(app, clock, 0, 10) == [200] * 10
    assert at(app, clock, 59.999999) + at(app, clock, 60) == [429, 200]


def test_waiting_as_told_admits_and_waiting_less_does_not(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """The hint is the time at which the entry in the way leaves."""
    assert at(app, clock, 3.5, 9) + at(app, clock, 20.25) == [200] * 10
    clock.advance(10)
    decision = ten.peek(subject=C)
    assert decision.retry_after == 33.25
    assert at(app, clock, 30.25 + 33.25 * 0.95) + at(app, clock, 63.5) == [429, 200]


def test_places_come_back_one_by_one(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """Each as its own entry leaves, and the reset is when the last one does."""
    for second in range(0, 50, 5):
        at(app, clock, second)
    clock.advance(15)
    seen = []
    for _ in range(3):
        peeked = ten.peek(subject=C)
        seen.append((peeked.remaining, peeked.reset_after))
        clock.advance(5)
    assert seen == [(1, 45.0), (2, 40.0), (3, 35.0)]


def test_a_cost_takes_as_many_places(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """A request that costs four of ten waits until four have left."""
    limit = limiter.limit(SlidingLog(10, per=60), name="log", key=by_ip, cost=4)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert at(app, clock, 0) + at(app, clock, 20) + at(app, clock, 40) == [200, 200, 429]
    assert limit.peek(4, subject=C).retry_after == 20.0
    assert at(app, clock, 60) == [200]


def test_a_refund_takes_its_own_entries_out(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """What was hit at another time stays, and leaves when it would have."""
    first = ten.hit(3, subject=C)
    clock.advance(30)
    ten.hit(7, subject=C)
    ten.refund(first)
    ten.refund(first)
    assert left(ten) == 3
    clock.advance(30)
    assert left(ten) == 3
    clock.advance(30)
    assert left(ten) == 10


def test_successes_leave_no_entry(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """As a failure limit it remembers failures alone."""
    limit = limiter.failures(SlidingLog(3, per=60), name="f")
    app.add_url_rule("/<int:status>", "login", limit(lambda status: ("", status)))
    seen = [caller(app).get(f"/{status}").status_code for status in (200, 401, 200, 401, 200, 401, 200)]
    assert seen == [200, 401, 200, 401, 200, 401, 429]
    clock.advance(60)
    assert left(limit) == 3


@pytest.mark.parametrize("headers", [("draft",), ("trio",)])
def test_it_is_shown_as_any_window(app: Flask, storage: Any, clock: ManualClock, headers: Any) -> None:
    """Its quota and window, what is left, and when all of it has left."""
    app.config["VENUELIMIT_HEADERS"] = headers
    limit = VenueLimit(app, storage=storage).limit(SlidingLog(10, per=60), name="log", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    at(app, clock, 0)
    clock.advance(20)
    answer = caller(app).get("/")
    if headers == ("draft",):
        assert items(answer, "RateLimit-Policy") == {"log": {"q": 10, "w": 60}}
        assert items(answer, "RateLimit") == {"log": {"r": 8, "t": 60}}
    else:
        shown = [answer.headers[f"RateLimit-{what}"] for what in ("Limit", "Remaining", "Reset")]
        assert shown == ["10", "8", "60"]


def test_a_clock_that_steps_back_gives_nothing_back(app: Flask, ten: Limit, clock: ManualClock) -> None:
    """Ten before the step are ten after it, and a caller waits at most one window longer."""
    at(app, clock, 100, 10)
    assert at(app, clock, 50) == [429]
    assert 60 <= (ten.peek(subject=C).retry_after or 0) <= 120
    assert at(app, clock, 160) == [200]


def test_a_closed_log_admits_nobody(app: Flask, limiter: VenueLimit) -> None:
    """A limit of 0 refuses everything, and no wait helps."""
    app.add_url_rule("/", "home", limiter.limit(SlidingLog(0, per=60), name="it", key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/")
    assert (answer.status_code, "Retry-After" in answer.headers, room(answer, "it")) == (429, False, 0)

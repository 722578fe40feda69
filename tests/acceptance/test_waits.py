"""How long a refused caller is told to wait, and whether that is enough."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    FixedWindow,
    TokenBucket,
    VenueLimit,
    by_ip,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, statuses


@pytest.mark.parametrize(("used", "told"), [(59.8, 1), (59.0, 1), (58.1, 2), (1.999, 59), (0, 60), (45, 15)])
def test_retry_after_is_the_wait_rounded_up(
    app: Flask, limiter: VenueLimit, clock: ManualClock, used: float, told: int
) -> None:
    """A window opened at 0 and refused at 45 ends in 15 seconds, not 60; 58.001 s are told as 59."""
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(1, 60), key=by_ip)(lambda: "ok"))
    client = caller(app)
    client.get("/")
    clock.advance(used)
    answer = client.get("/")
    assert (answer.headers["Retry-After"], answer.get_json()["retry_after"]) == (str(told), told)


def test_a_sliding_window_s_wait_is_its_own_arithmetic(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Previous 60, current 12, 12 seconds in: one second to wait, not 48, and it is enough."""
    app.add_url_rule("/", "home", limiter.limit("60/minute", key=by_ip)(lambda: "ok"))
    client = caller(app)
    statuses(client, "/", 60)
    clock.advance(72)
    assert statuses(client, "/", 12) == [200] * 12
    answer = client.get("/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    clock.advance(1)
    assert statuses(client, "/", 1) == [200]


@pytest.mark.parametrize("policy", ["3/minute", FixedWindow(3, 60), TokenBucket(3, 7, per=60)])
def test_who_waits_as_told_is_admitted(
    app: Flask, limiter: VenueLimit, clock: ManualClock, policy: Any
) -> None:
    """``decision.retry_after`` is enough, and noticeably less is not."""
    limit = limiter.limit(policy, name="it", key=by_ip)
    limit.hit(3, subject=C)
    clock.advance(1.3)
    wait = limit.hit(2, subject=C).retry_after
    assert wait is not None
    clock.advance(wait - 0.01)
    assert not limit.hit(2, subject=C).allowed
    clock.advance(0.01)
    assert limit.hit(2, subject=C).allowed


def test_jitter_only_adds(storage: Any) -> None:
    """Retry-After grows by up to the share that is set, is never less than the wait, and differs."""
    app = Flask("venue")
    app.config.update(SECRET_KEY="s", VENUELIMIT_RETRY_JITTER=0.5)
    limiter = VenueLimit(app, storage=storage)
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(1, 60), key=by_ip)(lambda: "ok"))
    client = caller(app)
    client.get("/")
    answers = [client.get("/") for _ in range(100)]
    told = [int(answer.headers["Retry-After"]) for answer in answers]
    assert told == [answer.get_json()["retry_after"] for answer in answers]
    assert told == [items(answer, "RateLimit")["home"]["t"] for answer in answers]
    assert (min(told) >= 60, max(told) <= 90, len(set(told)) > 5) == (True, True, True)


def test_where_no_wait_helps_there_is_no_retry_after(app: Flask, limiter: VenueLimit) -> None:
    """A limit of nothing refuses for ever, and says so by saying no time."""
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(0, 60), name="closed", key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/")
    assert (answer.status_code, answer.get_json()["retry_after"]) == (429, None)
    assert "Retry-After" not in answer.headers
    assert items(answer, "RateLimit") == {"closed": {"r": 0}}
    assert (answer.headers["RateLimit-Limit"], answer.headers["RateLimit-Remaining"]) == ("0", "0")


def test_a_cost_no_wait_can_pay_has_no_retry_after(app: Flask, limiter: VenueLimit) -> None:
    """A cost that is asked and is over what the policy ever holds is refused without a hint."""
    limit = limiter.limit("5/minute", name="it", key=by_ip, cost=lambda: 6)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    answer = caller(app).get("/")
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, False)

"""``LeakyBucket``: a request waits for its turn before the view, or is refused if that is too long."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.request import urlopen

import pytest
from flask import Flask

from flask_venuelimit import LeakyBucket, Limit, MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, left, statuses
from tests.acceptance.decorators import known_late
from tests.servers import run_app

#: Turns of the requests here, in seconds: long enough to be measured.
TURN = 0.04
HOUR = 3600


class Stopwatch:
    """Measures how long each request was held back before the view."""

    def __init__(self, app: Flask, limit: Limit, limiter: VenueLimit) -> None:
        self.app = app
        self.hooked: list[float] = []
        self.viewed: list[float] = []
        self.delays: list[float] = []
        app.before_request(lambda: self.hooked.append(time.monotonic()))

        def view() -> str:
            self.viewed.append(time.monotonic())
            self.delays.append(limiter.decisions[-1].delay)
            return "ok"

        app.add_url_rule("/", "home", limit(view))

    def ask(self) -> tuple[int, float]:
        """The status of a request, and after how many seconds it was answered."""
        began = time.monotonic()
        status = caller(self.app).get("/").status_code
        return status, time.monotonic() - began


def queue(app: Flask, limiter: VenueLimit, turns: float = 3, **terms: Any) -> tuple[Limit, Stopwatch]:
    """A queue for ``/`` whose turns are short, and in which one waits for so many of them at most."""
    limit = limiter.limit(
        LeakyBucket(1, per=TURN, max_delay=turns * TURN), **{"name": "it", "key": by_ip, **terms}
    )
    return limit, Stopwatch(app, limit, limiter)


@pytest.fixture
def slow(limiter: VenueLimit) -> Limit:
    """A turn an hour, in which one may be asked to wait for two; nobody could sit through it."""
    return limiter.limit(LeakyBucket(1, per=HOUR, max_delay=2 * HOUR), name="slow", key=by_ip)


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_request_waits_for_its_turn_before_the_view(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """The first goes at once, the second after one turn, the third after two: none is refused."""
    _, watch = queue(app, limiter, key=key)
    for turn in range(3):
        status, took = watch.ask()
        assert (status, watch.delays[turn]) == (200, turn * TURN)
        assert took >= turn * TURN


def test_a_front_limit_waits_before_the_app_s_hooks(app: Flask, limiter: VenueLimit) -> None:
    """What is decided at the front holds back all of the app's own work."""
    limit, watch = queue(app, limiter)
    limit.hit(subject=C)
    began = time.monotonic()
    watch.ask()
    assert watch.hooked[0] - began >= TURN


def test_a_view_limit_waits_right_before_the_view(app: Flask, limiter: VenueLimit) -> None:
    """Hooks have run by then; the view has not."""
    limit, watch = queue(app, limiter, key=known_late)
    limit.hit(subject="somebody")
    watch.ask()
    assert watch.viewed[0] - watch.hooked[0] >= TURN


def test_a_turn_that_comes_too_late_is_refused(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """At once, with the wait after which its turn is near enough."""
    slow = limiter.limit(LeakyBucket(1, per=HOUR, max_delay=HOUR), name="slow", key=by_ip)
    watch = Stopwatch(app, slow, limiter)
    slow.hit(2, subject=C)
    clock.advance(600)
    answer = caller(app).get("/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, str(HOUR - 600))
    assert watch.viewed == []
    clock.advance(HOUR - 600)
    assert slow.peek(subject=C).allowed


def test_without_a_delay_nobody_waits(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """``max_delay=0``: a request that comes before its turn is refused, and told when that is."""
    limit = limiter.limit(LeakyBucket(2, per=60), name="it", key=by_ip)
    watch = Stopwatch(app, limit, limiter)
    seen = [watch.ask()[0] for _ in range(2)]
    assert (seen, limit.peek(subject=C).retry_after) == ([200, 429], 30.0)
    clock.advance(30)
    assert watch.ask()[0] == 200
    assert watch.delays == [0.0, 0.0]


def test_a_quiet_queue_holds_nobody_back(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """Whoever comes once in a while never waits, and no turn is saved up."""
    _, watch = queue(app, limiter)
    for _ in range(3):
        watch.ask()
        clock.advance(10 * TURN)
    watch.ask()
    watch.ask()
    assert watch.delays == [0.0, 0.0, 0.0, 0.0, TURN]


def test_by_hand_a_hit_tells_the_delay_and_never_sleeps(slow: Limit) -> None:
    """What to do about it is the caller's: hours here, and no time passes."""
    began = time.monotonic()
    decisions = [slow.hit(subject=C) for _ in range(4)]
    assert [(d.allowed, d.delay) for d in decisions[:3]] == [(True, 0.0), (True, HOUR), (True, 2 * HOUR)]
    assert (decisions[3].allowed, decisions[3].retry_after) == (False, HOUR)
    assert time.monotonic() - began < 60


def test_a_peek_tells_what_a_hit_would_wait(slow: Limit) -> None:
    """It takes no turn."""
    slow.hit(subject=C)
    assert [slow.peek(subject=C).delay for _ in range(3)] == [HOUR] * 3
    assert slow.hit(subject=C).delay == HOUR


def test_a_cost_takes_as_many_turns(slow: Limit, clock: ManualClock) -> None:
    """Whose last turn comes within the delay passes; what never can has no wait."""
    assert slow.hit(2, subject=C).delay == HOUR
    assert (slow.hit(2, subject=C).allowed, left(slow)) == (False, 1)
    clock.advance(HOUR)
    assert slow.hit(2, subject=C).delay == 2 * HOUR
    assert slow.hit(4, subject=C).retry_after is None


def test_its_state_is_what_an_idle_queue_takes(app: Flask, slow: Limit) -> None:
    """Three at once, and three hours until those are through."""
    app.add_url_rule("/", "home", slow(lambda: "ok"))
    answer = caller(app).get("/")
    assert items(answer, "RateLimit-Policy") == {"slow": {"q": 3, "w": 3 * HOUR}}
    assert items(answer, "RateLimit") == {"slow": {"r": 2, "t": HOUR}}
    assert (slow.peek(subject=C).quota, slow.peek(subject=C).window) == (3, 3 * HOUR)


def test_a_refund_gives_the_turn_back(slow: Limit) -> None:
    """Once; whoever comes next is that much earlier."""
    slow.hit(subject=C)
    second = slow.hit(subject=C)
    slow.refund(second)
    slow.refund(second)
    assert slow.hit(subject=C).delay == HOUR


def test_who_is_refused_elsewhere_neither_waits_nor_takes_a_turn(
    app: Flask, limiter: VenueLimit, slow: Limit
) -> None:
    """All or none: a refusal is answered at once."""
    closed = limiter.limit("0/minute", name="closed", key=by_ip)
    app.add_url_rule("/", "home", slow(closed(lambda: "ok")))
    slow.hit(subject=C)
    assert statuses(caller(app), "/", 3) == [429] * 3
    assert left(slow) == 2


def test_a_shadow_holds_nobody_back(app: Flask, limiter: VenueLimit) -> None:
    """A queue that only watches says what the wait would have been."""
    limit = limiter.limit(LeakyBucket(1, per=HOUR, max_delay=HOUR), name="it", key=by_ip, shadow=True)
    watch = Stopwatch(app, limit, limiter)
    assert [watch.ask()[0] for _ in range(3)] == [200] * 3
    assert watch.delays[:2] == [0.0, HOUR]


def test_of_several_queues_the_slowest_is_waited_for(app: Flask, limiter: VenueLimit) -> None:
    """Not one after the other: turns come while one waits for another."""
    limits = [limiter.limit(LeakyBucket(1, per=n / 10, max_delay=1), key=by_ip) for n in (1, 4, 3)]
    view: Any = lambda: str(sum(decision.delay for decision in limiter.decisions))  # noqa: E731
    for limit in limits:
        view = limit(view)
    app.add_url_rule("/", "home", view)
    caller(app).get("/")
    began = time.monotonic()
    assert float(caller(app).get("/").text) == pytest.approx(0.8)
    assert 0.4 <= time.monotonic() - began < 0.8


def test_several_policies_wait_for_the_slowest_too(app: Flask, limiter: VenueLimit) -> None:
    """A queue with a ceiling, as one limit: the ceiling refuses, the queue delays."""
    policies: list[Any] = [LeakyBucket(1, per=TURN, max_delay=9 * TURN), "3/minute"]
    watch = Stopwatch(app, limiter.limit(policies, name="it", key=by_ip), limiter)
    seen = [watch.ask() for _ in range(4)]
    assert [status for status, _ in seen] == [200, 200, 200, 429]
    assert seen[2][1] >= 2 * TURN


def test_those_who_come_together_leave_one_by_one(app: Flask) -> None:
    """Five at once over a real server: none is refused, and no view runs before its turn."""
    limiter = VenueLimit(app, storage=MemoryStorage())
    watch = Stopwatch(app, limiter.limit(LeakyBucket(1, per=TURN, max_delay=60), key=by_ip), limiter)
    with run_app(app) as address, ThreadPoolExecutor(5) as pool:
        began = time.monotonic()
        list(pool.map(lambda _: urlopen(address, timeout=20).close(), range(5)))
    assert len(watch.viewed) == 5
    assert all(seen - began >= turn * TURN for turn, seen in enumerate(sorted(watch.viewed)))

"""Slots taken by hand and in a ``guard``, and what callers are told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask, Response

from flask_venuelimit import Concurrency, Decision, Limit, RateLimited, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, items, left, statuses
from tests.acceptance.streams import chunks, started
from tests.servers import StoreServer


@pytest.fixture
def two(limiter: VenueLimit) -> Limit:
    """Two at a time, for sixty seconds at most."""
    return limiter.limit(Concurrency(2, lease=60), name="slots", key=by_ip)


# -- what a caller is told -----------------------------------------------------------------------


def test_who_finds_no_slot_is_told_to_try_in_a_second(app: Flask, two: Limit) -> None:
    """Nobody can know when a slot is given back, so it says 1."""
    app.add_url_rule("/", "home", two(lambda: "ok"))
    taken = [two.hit(subject=C) for _ in range(2)]
    answer = caller(app).get("/")
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert answer.get_json()["retry_after"] == 1
    assert items(answer, "RateLimit") == {"slots": {"r": 0, "t": 1}}
    two.refund(taken[0])
    assert statuses(caller(app), "/", 1) == [200]


def test_its_policy_counts_requests_under_way(app: Flask, two: Limit) -> None:
    """No window: the unit of the quota is told instead."""
    app.add_url_rule("/", "home", two(lambda: "ok"))
    answer = caller(app).get("/")
    assert items(answer, "RateLimit-Policy") == {"slots": {"q": 2, "qu": "concurrent-requests"}}
    assert items(answer, "RateLimit") == {"slots": {"r": 1, "t": 1}}


def test_a_decision_of_slots(two: Limit) -> None:
    """Quota, no window, what is free now, and a second."""
    first, second, third = (two.hit(subject=C) for _ in range(3))
    assert [(d.allowed, d.quota, d.window, d.remaining) for d in (first, second, third)] == [
        (True, 2, None, 1),
        (True, 2, None, 0),
        (False, 2, None, 0),
    ]
    assert [(d.retry_after, d.reset_after, d.delay) for d in (second, third)] == [
        (0.0, 1.0, 0.0),
        (1.0, 1.0, 0.0),
    ]


def test_a_closed_limit_has_no_wait(app: Flask, limiter: VenueLimit) -> None:
    """With no slot at all no wait helps."""
    app.add_url_rule("/", "home", limiter.limit(Concurrency(0), key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/")
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, False)


def test_a_cost_takes_as_many_slots(app: Flask, limiter: VenueLimit) -> None:
    """A heavy export holds two of three, and gives both back."""
    limit = limiter.limit(Concurrency(3), name="slots", key=by_ip)
    app.add_url_rule("/inner", "inner", limit(cost=2)(lambda: "ok"))
    app.add_url_rule(
        "/", "home", limit(cost=2)(lambda: f"{left(limit)} {statuses(caller(app), '/inner', 1)}")
    )
    assert caller(app).get("/").text == "1 [429]"
    assert left(limit) == 3
    with pytest.raises(ValueError, match="4 can never be admitted"):
        limit(cost=4)


def test_each_caller_has_slots_of_its_own(app: Flask, two: Limit) -> None:
    """Who is at work at one address does not stand in the way of another."""
    app.add_url_rule("/", "home", two(lambda: "ok"))
    for _ in range(2):
        two.hit(subject=C)
    assert statuses(caller(app, C), "/", 1) + statuses(caller(app, A), "/", 1) == [429, 200]


def test_refused_requests_take_no_slot(app: Flask, two: Limit) -> None:
    """However many knock while it is full: what is given back is free."""
    app.add_url_rule("/", "home", two(lambda: "ok"))
    taken = [two.hit(subject=C) for _ in range(2)]
    assert statuses(caller(app), "/", 5) == [429] * 5
    for decision in taken:
        two.refund(decision)
    assert left(two) == 2


# -- by hand -------------------------------------------------------------------------------------


def test_by_hand_a_slot_is_held_until_it_is_given_back(two: Limit) -> None:
    """Outside a request too; twice is once, and a refusal gives nothing back."""
    first, second = two.hit(subject=C), two.hit(subject=C)
    two.refund(two.hit(subject=C))
    assert left(two) == 0
    two.refund(first)
    two.refund(first)
    assert left(two) == 1
    two.refund(second)
    assert left(two) == 2


def test_by_hand_a_slot_outlasts_its_request(app: Flask, two: Limit) -> None:
    """A job that the request started goes on: what was hit by hand is given back by hand, or lapses."""
    app.add_url_rule("/", "home", lambda: str(two.hit().remaining))
    assert [caller(app).get("/").text for _ in range(2)] == ["1", "0"]
    assert left(two) == 0


def test_by_hand_a_slot_lapses(two: Limit, clock: ManualClock) -> None:
    """A lease after it was taken, each for itself; given back after that it changes nothing."""
    first = two.hit(subject=C)
    clock.advance(30)
    two.hit(subject=C)
    clock.advance(30)
    assert left(two) == 1
    two.hit(subject=C)
    two.refund(first)
    assert left(two) == 0
    clock.advance(30)
    assert left(two) == 1


def test_a_peek_takes_no_slot(two: Limit) -> None:
    """However often one looks."""
    assert [two.peek(subject=C).remaining for _ in range(5)] == [2] * 5
    assert [two.peek(cost, subject=C).allowed for cost in (2, 3)] == [True, False]


def test_a_reset_frees_all_slots(two: Limit) -> None:
    """And one that was held by then is not given back from what is taken since."""
    before = two.hit(2, subject=C)
    two.reset(C)
    two.hit(2, subject=C)
    two.refund(before)
    assert left(two) == 0


# -- guard ---------------------------------------------------------------------------------------


def test_a_guard_holds_a_slot_for_its_block(two: Limit) -> None:
    """Nested ones hold one each; each is free with the end of its block."""
    with two.guard(subject=C) as outer:
        with two.guard(subject=C) as inner:
            assert (outer.remaining, inner.remaining, left(two)) == (1, 0, 0)
        assert left(two) == 1
    assert left(two) == 2


def test_a_guard_whose_block_fails_gives_its_slot_back(two: Limit) -> None:
    """Whatever leaves the block."""
    for error in (LookupError, KeyboardInterrupt):
        with pytest.raises(error), two.guard(2, subject=C):
            raise error
        assert left(two) == 2


def test_a_guard_without_a_free_slot_raises(two: Limit) -> None:
    """The block does not run, and no slot is held by who was refused."""
    with two.guard(2, subject=C):
        with pytest.raises(RateLimited) as caught, two.guard(subject=C):
            pytest.fail("the block ran")
        assert (caught.value.retry_after, caught.value.decision.limit) == (1, "slots")
    assert left(two) == 2


def test_a_guard_s_slot_that_was_given_back_is_given_back_once(two: Limit) -> None:
    """Ended by hand inside the block, the end of the block frees nobody else's."""
    with two.guard(subject=C) as decision:
        two.refund(decision)
        two.hit(subject=C)
    assert left(two) == 1


def test_a_guard_s_slot_that_lapsed_is_nobody_else_s(two: Limit, clock: ManualClock) -> None:
    """A block that takes longer than the lease ends without freeing what others took."""
    with two.guard(2, subject=C):
        clock.advance(60)
        two.hit(2, subject=C)
    assert left(two) == 0


def test_a_guard_in_a_view_holds_for_the_block_alone(app: Flask, two: Limit) -> None:
    """Not for the request: the slot is free as soon as the expensive part is over."""

    @app.get("/")
    def home() -> str:
        with two.guard():
            inside = left(two)
        return f"{inside} {left(two)}"

    assert caller(app).get("/").text == "1 2"


def test_a_guard_in_a_body_holds_while_that_streams(app: Flask, two: Limit) -> None:
    """Around the chunks of a generator, until it ends or the caller is gone."""

    def body() -> Iterator[bytes]:
        with app.app_context(), two.guard(2, subject=C):
            yield from (b"one", b"two")

    app.add_url_rule("/stream", "stream", lambda: Response(body()))
    ended, left_early = started(app, "stream"), None
    assert left(two) == 0
    assert b"".join(chunks(ended)) == b"onetwo"
    assert left(two) == 2
    left_early = started(app, "stream")
    assert left(two) == 0
    left_early.close()
    assert left(two) == 2
    ended.close()


# -- with other terms ----------------------------------------------------------------------------


def test_beside_a_rate_only_the_slot_is_given_back(app: Flask, limiter: VenueLimit) -> None:
    """One at a time and three a minute, as one limit: three in turn pass, the fourth does not."""
    limit = limiter.limit([Concurrency(1), "3/minute"], name="both", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    with limit.guard(subject=C):
        assert statuses(caller(app), "/", 1) == [429]
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert limit.peek(subject=C).quota == 3


def test_a_refund_of_both_gives_both_back(limiter: VenueLimit) -> None:
    """By hand a decision is given back whole."""
    limit = limiter.limit([Concurrency(1), "3/minute"], name="both", key=by_ip)
    limit.refund(limit.hit(subject=C))
    assert (left(limit), limit.hit(subject=C).allowed, limit.hit(subject=C).allowed) == (1, True, False)


def test_a_shadow_counts_slots_and_refuses_nobody(
    app: Flask, limiter: VenueLimit, told: list[Decision]
) -> None:
    """It tells who would have found none, and gives back what it took."""
    limit = limiter.limit(Concurrency(1), name="slots", key=by_ip, shadow=True)
    app.add_url_rule("/inner", "inner", limit(lambda: "ok"))
    app.add_url_rule("/", "home", limit(lambda: str(statuses(caller(app), "/inner", 1))))
    assert caller(app).get("/").text == "[200]"
    assert ([decision.limit for decision in told], left(limit)) == (["slots"], 1)


@pytest.mark.parametrize("terms", [{"per_process": True}, {"on_error": "local"}])
def test_slots_may_be_this_process_s(app: Flask, server: StoreServer, terms: dict[str, Any]) -> None:
    """As a first filter, or while the server is down: held for the request, and given back."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    limit = VenueLimit(app).limit(Concurrency(1), name="slots", key=by_ip, **terms)
    app.add_url_rule("/inner", "inner", limit(lambda: "ok"))
    app.add_url_rule("/", "home", limit(lambda: str(statuses(caller(app), "/inner", 1))))
    app.add_url_rule("/stream", "stream", limit(lambda: Response(iter([b"one", b"two"]))))
    server.kill()
    assert [caller(app).get("/").text for _ in range(2)] == ["[429]"] * 2
    answer = started(app, "stream")
    assert left(limit) == 0
    answer.close()
    assert left(limit) == 1


def test_a_plan_may_tell_how_many(app: Flask, limiter: VenueLimit) -> None:
    """Slots by plan are held and given back like any others."""
    plan = [Concurrency(1)]
    limit = limiter.limit(lambda: plan[-1], name="slots", key=by_ip)
    app.add_url_rule("/inner", "inner", limit(lambda: "ok"))
    app.add_url_rule("/", "home", limit(lambda: str(statuses(caller(app), "/inner", 1))))
    seen = [caller(app).get("/").text]
    plan.append(Concurrency(2))
    assert [*seen, caller(app).get("/").text] == ["[429]", "[200]"]
    assert left(limit) == 2

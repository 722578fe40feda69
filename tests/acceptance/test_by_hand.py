"""Limits asked by hand: in a view, in a job, in a shell."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    Decision,
    FixedWindow,
    Limit,
    RateLimited,
    TokenBucket,
    VenueLimit,
    by_ip,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, room, signed_in, statuses

# -- hit and peek --------------------------------------------------------------------------------


def test_a_hit_charges_and_tells_all_about_it(mails: Limit, clock: ManualClock) -> None:
    """A Decision is the whole record of what was decided."""
    mails.hit(subject="p1")
    clock.advance(20)
    hit = mails.hit(2, subject="p1")
    assert isinstance(hit, Decision)
    assert (hit.limit, hit.allowed, hit.quota, hit.window, hit.remaining) == ("mails", True, 3, 60, 0)
    assert (hit.retry_after, hit.reset_after, hit.delay, hit.shadow) == (0.0, 40.0, 0.0, False)
    assert re.fullmatch(r"participant:[\w-]{8}", hit.subject)


def test_a_refused_hit_never_raises_and_charges_nothing(mails: Limit, clock: ManualClock) -> None:
    """``hit`` tells; whether to refuse is the caller's."""
    mails.hit(2, subject="p1")
    clock.advance(20)
    refused = [mails.hit(2, subject="p1") for _ in range(3)]
    assert [(r.allowed, r.remaining, r.retry_after) for r in refused] == [(False, 1, 40.0)] * 3
    assert mails.hit(subject="p1").allowed


def test_a_cost_that_can_never_fit_has_no_wait(mails: Limit) -> None:
    """Four of three fit at no time: ``retry_after`` is None."""
    hit = mails.hit(4, subject="p1")
    assert (hit.allowed, hit.retry_after, hit.remaining) == (False, None, 3)


def test_a_peek_answers_what_a_hit_would(mails: Limit, clock: ManualClock) -> None:
    """Peeking charges nothing, however often, and tells the room there is."""
    assert [mails.peek(subject="p1").remaining for _ in range(5)] == [3] * 5
    mails.hit(2, subject="p1")
    clock.advance(15)
    fits, too_much = mails.peek(subject="p1"), mails.peek(2, subject="p1")
    assert (fits.allowed, fits.remaining, fits.retry_after) == (True, 1, 0.0)
    assert (too_much.allowed, too_much.remaining, too_much.retry_after) == (False, 1, 45.0)


@pytest.mark.parametrize("cost", [0, -1, 1.5, "2", None, True])
def test_a_cost_below_one_is_a_value_error(mails: Limit, cost: Any) -> None:
    """A cost is a whole number of at least 1; the error quotes what it was given."""
    for ask in (mails.hit, mails.peek):
        with pytest.raises(ValueError, match="at least 1") as caught:
            ask(cost, subject="p1")
        assert repr(cost) in str(caught.value)
    with pytest.raises(ValueError, match="at least 1"), mails.guard(cost, subject="p1"):
        pass


def test_a_bucket_s_window_is_the_time_to_fill_it(limiter: VenueLimit, clock: ManualClock) -> None:
    """TokenBucket(20, 240 per 60) holds 20 and fills in five seconds."""
    limit = limiter.limit(TokenBucket(capacity=20, rate=240, per=60), name="api", key=by_ip)
    hit = limit.hit(20, subject=C)
    assert (hit.quota, hit.window, hit.remaining, hit.reset_after) == (20, 5, 0, 5.0)
    clock.advance(1)
    assert (limit.peek(subject=C).remaining, limit.hit(5, subject=C).retry_after) == (4, 0.25)


def test_several_policies_report_the_tightest(limiter: VenueLimit, clock: ManualClock) -> None:
    """Of policies that all agree the one with the least room speaks, and on a refusal the longest wait."""
    limit = limiter.limit(["2/second", FixedWindow(3, 60)], name="both", key=by_ip)
    assert [limit.hit(subject=C).quota for _ in range(2)] == [2, 2]
    clock.advance(2)
    hit = limit.hit(subject=C)
    assert (hit.quota, hit.remaining) == (3, 0)
    refused = limit.hit(subject=C)
    assert (refused.quota, refused.window, refused.retry_after) == (3, 60, 58.0)


def test_a_text_of_several_policies_needs_them_all(limiter: VenueLimit) -> None:
    """``"2/second; 3/minute"`` is two policies."""
    limit = limiter.limit("5/second; 3/minute", name="both", key=by_ip)
    assert [limit.hit(subject=C).allowed for _ in range(4)] == [True, True, True, False]


# -- refund and reset ----------------------------------------------------------------------------


def test_a_refund_gives_a_charge_back_once(mails: Limit) -> None:
    """Two refunds of one decision give back one charge."""
    first, second = mails.hit(subject="p1"), mails.hit(subject="p1")
    mails.refund(first)
    mails.refund(first)
    assert mails.peek(subject="p1").remaining == 2
    mails.refund(second)
    assert mails.peek(subject="p1").remaining == 3


def test_a_refund_gives_the_whole_cost_back(mails: Limit) -> None:
    """What cost two is given back as two."""
    mails.refund(mails.hit(2, subject="p1"))
    assert mails.peek(subject="p1").remaining == 3


def test_refunding_a_refusal_or_a_peek_gives_nothing(mails: Limit) -> None:
    """What was not charged is not given back: never below zero used."""
    mails.hit(3, subject="p1")
    mails.refund(mails.hit(subject="p1"))
    mails.refund(mails.peek(subject="p1"))
    assert mails.peek(subject="p1").remaining == 0


def test_a_refund_after_a_reset_gives_nothing(mails: Limit) -> None:
    """A charge that was forgotten is not given back to what was charged since."""
    charged = mails.hit(subject="p1")
    mails.reset("p1")
    mails.hit(2, subject="p1")
    mails.refund(charged)
    assert mails.peek(subject="p1").remaining == 1


def test_a_refund_lets_the_refused_in(app: Flask, limiter: VenueLimit) -> None:
    """The room is there at the very next request."""
    limit = limiter.limit("1/minute", name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    charged = limit.hit(subject=C)
    assert statuses(caller(app), "/", 2) == [429, 429]
    limit.refund(charged)
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_a_reset_forgets_one_subject(app: Flask, limiter: VenueLimit) -> None:
    """Support lets one caller in again; others stay refused."""
    app.add_url_rule("/", "home", (limit := limiter.limit("1/minute", name="it", key=by_ip))(lambda: "ok"))
    assert statuses(caller(app, C), "/", 2) + statuses(caller(app, A), "/", 2) == [200, 429, 200, 429]
    limit.reset(C)
    assert statuses(caller(app, C), "/", 1) + statuses(caller(app, A), "/", 1) == [200, 429]


# -- guard ---------------------------------------------------------------------------------------


def test_a_guard_lets_the_block_run_and_charges(mails: Limit) -> None:
    """The block is given the decision."""
    with mails.guard(2, subject="p1") as decision:
        assert (decision.allowed, decision.remaining) == (True, 1)
    assert mails.peek(subject="p1").remaining == 1


def test_a_guard_raises_where_there_is_no_room(mails: Limit, clock: ManualClock) -> None:
    """The block does not run; the error carries the decision and whole seconds to wait."""
    mails.hit(3, subject="p1")
    clock.advance(0.5)
    with pytest.raises(RateLimited) as caught, mails.guard(subject="p1"):
        pytest.fail("the block ran")
    assert (caught.value.decision.limit, caught.value.decision.retry_after) == ("mails", 59.5)
    assert caught.value.retry_after == 60


def test_a_guard_keeps_the_charge_of_a_block_that_fails(mails: Limit) -> None:
    """What the block does afterwards is its own affair."""
    with pytest.raises(LookupError), mails.guard(subject="p1"):
        raise LookupError
    assert mails.peek(subject="p1").remaining == 2


def test_a_guard_in_a_view_refuses_like_a_decorator(app: Flask, limiter: VenueLimit, mails: Limit) -> None:
    """RateLimited out of a guard is answered 429, with its Retry-After and limit state."""

    @app.get("/")
    def home() -> str:
        with mails.guard(2):
            return "ok"

    client = signed_in(app, participant_id="p")
    first, second = client.get("/"), client.get("/")
    assert (first.status_code, second.status_code) == (200, 429)
    assert (second.get_json()["limit"], second.headers.getlist("Retry-After")) == ("mails", ["60"])
    assert second.headers["Cache-Control"] == "no-store"
    assert room(second, "mails") == 0


@pytest.mark.parametrize("where", ["hook", "view"])
def test_a_guard_s_refusal_that_the_app_answers_has_its_headers(
    app: Flask, limiter: VenueLimit, mails: Limit, where: str
) -> None:
    """Wherever a guard refuses and whoever renders it, the hint and ``no-store`` are there."""

    def guarded() -> Any:
        with mails.guard(4, subject="p"):
            pass

    app.register_error_handler(429, lambda error: ("come back later", 429))
    app.add_url_rule("/", "home", guarded if where == "view" else lambda: "ok")
    if where == "hook":
        app.before_request(guarded)
    answer = caller(app).get("/")
    assert (answer.status_code, answer.text) == (429, "come back later")
    assert answer.headers["Cache-Control"] == "no-store"


def test_an_unnamed_limit_may_be_asked_by_hand(app: Flask, limiter: VenueLimit) -> None:
    """In and out of a request, a limit without a name counts and never raises."""
    limit = limiter.limit("5/minute", key=by_ip)
    app.add_url_rule("/", "home", lambda: str(limit.hit().remaining))
    assert [caller(app).get("/").text for _ in range(2)] == ["4", "3"]
    assert [limit.hit(subject=C).remaining for _ in range(2)] == [4, 3]

"""Policies told at each request: by plan, by time, by anything a function can know."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from flask import Flask, g, request

from flask_venuelimit import (
    Decision,
    FixedWindow,
    Limit,
    MemoryStorage,
    SlidingWindow,
    TokenBucket,
    VenueLimit,
    by_ip,
    by_participant,
)
from tests.acceptance.callers import A, C, caller, items, left, room, signed_in, statuses
from tests.acceptance.decorators import known_late


class Told:
    """A function that says how much: what it is set to, and how often it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def __call__(self) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def covered(app: Flask, limiter: VenueLimit, told: Any, **terms: Any) -> Limit:
    """Put a limit whose policy is told on ``/``."""
    limit = limiter.limit(told, **{"name": "it", "key": by_ip, **terms})
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


# -- what may be told ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        "2/minute",
        "2/minute; 9/hour",
        FixedWindow(2, 60),
        SlidingWindow(2, 60),
        TokenBucket(2, 1),
        [FixedWindow(2, 60)],
        ("9/minute", TokenBucket(2, 1)),
    ],
)
@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_function_may_tell_whatever_a_policy_may_be(
    app: Flask, limiter: VenueLimit, key: Any, answer: Any
) -> None:
    """A text, a policy, or a list of these, at the front and at the decorator."""
    covered(app, limiter, lambda: answer, key=key)
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_none_is_not_limited(app: Flask, limiter: VenueLimit) -> None:
    """Nothing is charged and nothing shown for a request that is not limited."""
    told = Told(None)
    limit = covered(app, limiter, told)
    assert statuses(caller(app), "/", 9) == [200] * 9
    assert "RateLimit" not in caller(app).get("/").headers
    told.answer = "2/minute"
    assert left(limit) == 2


def test_what_is_not_limited_leaves_no_decision(app: Flask, limiter: VenueLimit) -> None:
    """``limiter.decisions`` lists what was decided; by hand a decision is nobody's."""
    limit = limiter.limit(lambda: None, name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: str(limiter.decisions)))
    assert caller(app).get("/").text == "[]"
    hit = limit.hit(7, subject=C)
    assert (hit.allowed, hit.remaining == hit.quota, hit.window) == (True, True, None)
    assert (hit.retry_after, hit.reset_after, hit.delay) == (0.0, 0.0, 0.0)


def test_each_plan_has_its_number(app: Flask, limiter: VenueLimit) -> None:
    """What a subscription allows is looked up where the app knows who is asking."""
    plans = {"free": "1/minute", "pub": "3/minute", "brewery": None}

    @app.before_request
    def load() -> None:
        g.plan = request.args["plan"]

    limit = limiter.limit(lambda: plans[g.plan], name="export", key=lambda: g.plan)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    admitted = [statuses(caller(app), f"/?plan={plan}", 5).count(200) for plan in plans]
    assert admitted == [1, 3, 5]


def test_changing_plans_keeps_what_was_used(app: Flask, limiter: VenueLimit) -> None:
    """Who upgrades has used what was used; another window starts anew."""
    told = Told("2/minute")
    covered(app, limiter, told)
    seen = statuses(caller(app), "/", 3)
    told.answer = "3/minute"
    seen += statuses(caller(app), "/", 2)
    told.answer = "2/hour"
    assert seen + statuses(caller(app), "/", 3) == [200, 200, 429, 200, 429, 200, 200, 429]


def test_a_smaller_plan_shows_no_less_than_nothing(app: Flask, limiter: VenueLimit) -> None:
    """Who has used more than is allowed now has nothing left, and is refused."""
    told = Told("9/minute")
    limit = covered(app, limiter, told)
    statuses(caller(app), "/", 7)
    told.answer = "5/minute"
    answer = caller(app).get("/")
    assert (answer.status_code, room(answer, "it"), left(limit)) == (429, 0, 0)


def test_the_policy_told_is_the_one_that_is_shown(app: Flask, limiter: VenueLimit) -> None:
    """Header fields and decisions carry its quota and window."""
    limit = covered(app, limiter, lambda: FixedWindow(7, 90))
    answer = caller(app).get("/")
    assert items(answer, "RateLimit-Policy") == {"it": {"q": 7, "w": 90}}
    assert (limit.peek(subject=C).quota, limit.peek(subject=C).window) == (7, 90)


def test_the_address_may_be_told_its_own(app: Flask, limiter: VenueLimit) -> None:
    """``per_address`` takes a function as well, and each is asked for those it is for."""
    person, building = Told("1/minute"), Told("2/minute")
    covered(app, limiter, person, key=by_participant, per_address=building)
    assert statuses(signed_in(app, participant_id="p"), "/", 2) == [200, 429]
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert (person.asked, building.asked) == (2, 3)


def test_a_cost_that_the_policy_told_can_never_hold_has_no_wait(app: Flask, limiter: VenueLimit) -> None:
    """It could not be known at the declaration; at the request no wait helps."""
    covered(app, limiter, lambda: "3/minute", cost=5)
    answer = caller(app).get("/")
    assert (answer.status_code, answer.get_json()["retry_after"]) == (429, None)


# -- when it is asked ----------------------------------------------------------------------------


def test_it_is_asked_once_a_request(app: Flask, limiter: VenueLimit) -> None:
    """However many limits and calls by hand share the function."""
    told = Told("9/minute")
    one, two = (limiter.limit(told, name=name, key=by_ip) for name in ("one", "two"))
    app.add_url_rule("/", "home", one(two(lambda: f"{one.peek().remaining} {two.hit().remaining}")))
    assert [caller(app).get("/").text for _ in range(2)] == ["8 7", "7 5"]
    assert told.asked == 2


def test_it_is_not_asked_where_the_limit_does_not_apply(app: Flask, limiter: VenueLimit) -> None:
    """Neither for another method, nor where ``unless`` skips it, nor for the exempt."""
    told = Told("9/minute")
    limit = limiter.limit(told, key=by_ip, methods={"POST"}, unless=lambda: "skip" in request.args)
    app.add_url_rule("/", "home", limit(lambda: "ok"), methods=["GET", "POST"])
    app.add_url_rule("/exempt", "exempt", limiter.exempt(limit(lambda: "ok")), methods=["POST"])
    statuses(caller(app), "/", 1)
    statuses(caller(app), "/?skip=1", 1, method="POST")
    statuses(caller(app), "/exempt", 1, method="POST")
    assert told.asked == 0


def test_it_may_be_async(app: Flask, limiter: VenueLimit) -> None:
    """A look-up that is awaited is a policy like any other, in plain and async views."""

    async def told() -> str:
        return "2/minute"

    async def view() -> str:
        return "ok"

    limit = limiter.limit(told, key=known_late)
    app.add_url_rule("/plain", "plain", limit(lambda: "ok"))
    app.add_url_rule("/async", "async", limit(view))
    assert [statuses(caller(app), path, 3) for path in ("/plain", "/async")] == [[200, 200, 429]] * 2


def test_by_hand_outside_a_request_it_is_asked_too(limiter: VenueLimit) -> None:
    """A job has the policy of its moment."""
    told = Told("2/minute")
    limit = limiter.limit(told, name="it", key=by_ip)
    assert [limit.hit(subject=C).allowed for _ in range(3)] == [True, True, False]
    limit.reset(C)
    assert (left(limit), told.asked) == (2, 5)


def test_an_equal_function_declares_the_same_limit(app: Flask, limiter: VenueLimit) -> None:
    """A factory that runs twice makes a new function of one declaration."""

    def declare() -> Limit:
        return limiter.limit(lambda: "2/minute", name="it", key=by_ip)

    assert declare() is declare()


@pytest.mark.parametrize("policy", [SlidingWindow, TokenBucket, str, 5, object(), b"5/minute"])
def test_what_is_neither_function_nor_policy_is_an_error(limiter: VenueLimit, policy: Any) -> None:
    """A class that was not called, above all, is told of where it is declared."""
    for terms in ({"policy": policy}, {"policy": "5/minute", "per_address": policy}):
        with pytest.raises(ValueError) as caught:
            limiter.limit(**terms)
        assert repr(policy) in str(caught.value)


# -- what cannot be told -------------------------------------------------------------------------

NONSENSE = [
    RuntimeError("no plan"),
    "",
    "often",
    "5/fortnight",
    "5/minute;",
    5,
    2.5,
    True,
    (),
    [],
    [None],
    {"limit": 5},
    object(),
    lambda: "5/minute",
]


@pytest.mark.parametrize("answer", NONSENSE)
def test_what_is_no_policy_is_logged_and_the_request_passes(
    app: Flask, limiter: VenueLimit, warnings: list[str], answer: Any
) -> None:
    """It names the limit; nobody counts, so nothing is shown."""
    covered(app, limiter, Told(answer))
    answered = caller(app).get("/")
    assert (answered.status_code, "RateLimit" in answered.headers) == (200, False)
    (warning,) = warnings
    assert "'it'" in warning


@pytest.mark.parametrize("answer", NONSENSE)
@pytest.mark.parametrize("key", [by_ip, known_late])
def test_what_is_no_policy_is_denied_by_a_limit_that_denies(
    app: Flask, limiter: VenueLimit, answer: Any, key: Any
) -> None:
    """``on_error`` decides, and a budget's is ``deny``: 503, and the hint to come again."""
    covered(app, limiter, Told(answer), key=key, budget=True)
    refused = caller(app).get("/")
    assert (refused.status_code, refused.get_json()["error"]) == (503, "limiter_unavailable")
    assert (refused.get_json()["limit"], int(refused.headers["Retry-After"]) >= 1) == ("it", True)


@pytest.mark.parametrize(("on_error", "status"), [("allow", 200), ("local", 200), ("deny", 503)])
@pytest.mark.parametrize("app_s", [True, False])
def test_on_error_decides(app: Flask, storage: Any, app_s: bool, on_error: str, status: int) -> None:
    """The limit's or the app's; counted in this process there is nothing to count by either."""
    app.config["VENUELIMIT_ON_ERROR"] = on_error if app_s else None
    covered(app, VenueLimit(app, storage=storage), Told(KeyError("x")), on_error=None if app_s else on_error)
    assert statuses(caller(app), "/", 2) == [status] * 2


def test_the_exception_is_in_the_log(
    app: Flask, limiter: VenueLimit, caplog: pytest.LogCaptureFixture
) -> None:
    """With its traceback, so that it can be found."""
    covered(app, limiter, Told(ZeroDivisionError("no plan")))
    statuses(caller(app), "/", 1)
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


def test_turned_away_for_want_of_a_policy_charges_nobody_else(app: Flask, limiter: VenueLimit) -> None:
    """All or none: what a limit that denies turns away costs nothing elsewhere, save in failure limits."""
    other = limiter.limit("9/minute", name="other", key=by_ip)
    failures = limiter.failures("9/minute", name="failures")
    untold = limiter.limit(Told("often"), name="untold", key=by_ip, on_error="deny")
    app.add_url_rule("/", "home", failures(other(untold(lambda: "ok"))))
    assert statuses(caller(app), "/", 3) == [503] * 3
    assert (left(other), left(failures)) == (9, 6)


def test_a_policy_that_is_missing_once_is_missing_once(app: Flask, limiter: VenueLimit) -> None:
    """The next caller is limited again, with what was used before."""
    told = Told("2/minute")
    covered(app, limiter, told)
    seen = statuses(caller(app), "/", 1)
    told.answer = LookupError("database gone")
    seen += statuses(caller(app), "/", 3)
    told.answer = "2/minute"
    assert seen + statuses(caller(app), "/", 2) == [200, 200, 200, 200, 200, 429]


def test_a_shadow_whose_policy_is_missing_denies_nobody(
    app: Flask, limiter: VenueLimit, told: list[Decision]
) -> None:
    """It only watches, whatever its ``on_error``."""
    covered(app, limiter, Told("often"), shadow=True, on_error="deny")
    assert statuses(caller(app), "/", 2) == [200] * 2


def test_by_hand_a_missing_policy_never_raises(limiter: VenueLimit) -> None:
    """``hit``, ``peek``, ``refund``, ``reset`` and ``guard`` go on."""
    limit = limiter.limit(Told(KeyError("x")), name="it", key=by_ip)
    limit.refund(limit.hit(subject=C))
    limit.reset(C)
    with limit.guard(3, subject=A) as decision:
        assert (decision.allowed, limit.peek(subject=A).allowed) == (True, True)


def test_without_storage_a_missing_policy_closes_nothing(app: Flask) -> None:
    """Limiting is off: budgets admit too, in requests and by hand."""
    limit = covered(app, VenueLimit(app), Told("often"), budget=True)
    assert statuses(caller(app), "/", 1) == [200]
    assert limit.hit(subject=C).allowed


def test_switched_off_nobody_is_asked(app: Flask) -> None:
    """While limiting is off, requests ask for no policy."""
    told = Told("2/minute")
    covered(app, VenueLimit(app, storage=MemoryStorage()), told)
    app.config["VENUELIMIT_ENABLED"] = False
    assert (statuses(caller(app), "/", 3), told.asked) == ([200] * 3, 0)

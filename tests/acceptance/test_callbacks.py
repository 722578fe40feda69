"""Who the app says is asking, and what a request costs: functions of the app's own, asked once a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, g

from flask_venuelimit import (
    Key,
    Stage,
    VenueLimit,
    by_identity,
    by_ip,
    by_participant,
    by_user,
)
from tests.acceptance.callers import A, C, caller, items, room, signed_in, statuses, whose_bucket

# -- callbacks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["participant", "user"])
def test_a_bare_callback_is_asked_at_the_view(app: Flask, limiter: VenueLimit, role: str) -> None:
    """What the app's hooks found out is there when ``identify_...`` asks."""
    identify = limiter.identify_participant if role == "participant" else limiter.identify_user

    @app.before_request
    def authenticate() -> None:
        from flask import request

        g.who = request.args["who"]

    @identify
    def who() -> Any:
        return g.who

    whose = whose_bucket(app, limiter, by_participant if role == "participant" else by_user)
    client = caller(app)
    assert [client.get(f"/?who={w}").status_code for w in "aab"] == [200, 429, 200]
    assert whose().startswith(f"{role}:")


def test_a_callback_with_a_front_stage_is_asked_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """``stage=Stage.FRONT`` decides the callback's limits before any hook."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))

    @limiter.identify_user(stage=Stage.FRONT)
    def who() -> str:
        return "u"

    whose_bucket(app, limiter, by_user)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert seen == ["hook"]


def test_one_late_callback_makes_the_identity_late(app: Flask, limiter: VenueLimit) -> None:
    """``by_identity`` is as late as the later of its two callbacks, though the session names somebody."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))
    limiter.identify_user(lambda: "u")
    whose_bucket(app, limiter, by_identity)
    assert statuses(signed_in(app, participant_id="p"), "/", 2) == [200, 429]
    assert seen == ["hook", "hook"]


def test_a_callback_may_be_declared_after_the_limits(app: Flask, limiter: VenueLimit) -> None:
    """The order of declarations says nothing."""
    whose = whose_bucket(app, limiter, by_user)
    limiter.identify_user(lambda: "u")
    caller(app).get("/")
    assert whose().startswith("user:")


def test_a_callback_is_still_a_function(limiter: VenueLimit) -> None:
    """Decorating hands the function back, bare or with a stage."""

    def who() -> str:
        return "u"

    assert limiter.identify_user(who) is who
    assert limiter.identify_participant(stage=Stage.VIEW)(who) is who


def test_callbacks_keys_predicates_and_costs_may_be_async(app: Flask, limiter: VenueLimit) -> None:
    """A coroutine is awaited, and never taken for a name."""

    async def yes() -> bool:
        return True

    async def two() -> int:
        return 2

    async def who() -> Any:
        return g.who

    limiter.identify_user(who)
    app.before_request(lambda: setattr(g, "who", "u"))
    view = limiter.limit("5/minute", name="user", key=by_user, cost=two)(lambda: "ok")
    view = limiter.limit("5/minute", name="own", key=who)(view)
    view = limiter.limit("0/minute", name="skipped", unless=yes)(view)
    app.add_url_rule("/", "home", view)
    answer = caller(app).get("/")
    assert items(answer, "RateLimit") == {"own": {"r": 4, "t": 60}, "user": {"r": 3, "t": 60}}


def test_an_async_view_may_have_an_async_callback(app: Flask, limiter: VenueLimit) -> None:
    """A coroutine asked inside a running coroutine is awaited as well."""

    @limiter.identify_user
    async def who() -> str:
        return "u"

    @app.get("/")
    @limiter.limit("1/minute", key=by_user)
    async def home() -> str:
        return limiter.decisions[0].subject

    first, second = (caller(app, address).get("/") for address in (C, A))
    assert (first.text.partition(":")[0], second.status_code) == ("user", 429)


def test_a_callback_that_raises_is_logged_and_is_nobody(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A broken look-up costs an identity, never a request."""

    @limiter.identify_participant
    def who() -> str:
        raise LookupError("no such table")

    whose = whose_bucket(app, limiter, by_identity)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert whose().startswith("ip:")
    assert warnings


def test_everybody_is_asked_once_a_request(app: Flask, limiter: VenueLimit) -> None:
    """A callback, a key, a predicate and a cost answer once, however many limits want to know."""
    asked: list[str] = []

    def answers(name: str, value: Any) -> Callable[[], Any]:
        return lambda: (asked.append(name), value)[1]  # type: ignore[func-returns-value]

    limiter.identify_user(answers("callback", "u"))
    limiter.exempt_if(answers("exempt_if", False))
    terms: dict[str, Any] = {"unless": answers("unless", False), "cost": answers("cost", 1)}
    key = Key("own", answers("key", "k"))
    for name in ("one", "two"):
        limiter.limit("9/minute", name=f"{name} everywhere", key=key, **terms).everywhere()
    view = limiter.limit("9/minute", name="v", key=by_user, **terms)(lambda: "ok")
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="w", key=key & by_user, **terms)(view))
    assert caller(app).get("/").status_code == 200
    assert sorted(asked) == ["callback", "cost", "exempt_if", "key", "unless"]


def test_the_next_request_is_asked_anew(app: Flask, limiter: VenueLimit) -> None:
    """What a key said of one request is forgotten with it."""
    asked: list[int] = []

    def who() -> str:
        asked.append(1)
        return "x"

    whose_bucket(app, limiter, who, "9/minute")
    statuses(caller(app), "/", 3)
    assert len(asked) == 3


# -- costs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "charged"), [(2, 2), (1.2, 2), (3.0, 3), (0, 1), (-1, 1), ("5", 1), (None, 1)]
)
def test_a_cost_may_be_asked(
    app: Flask, limiter: VenueLimit, warnings: list[str], answer: Any, charged: int
) -> None:
    """A whole number is the cost, a fraction is rounded up, anything else is logged and taken as 1."""
    whose_bucket(app, limiter, by_ip, "10/minute", cost=lambda: answer)
    assert room(caller(app).get("/"), "it") == 10 - charged
    assert bool(warnings) == (isinstance(answer, str | None) or answer < 1)


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), [1]])
def test_a_cost_that_makes_no_sense_is_one(
    app: Flask, limiter: VenueLimit, warnings: list[str], answer: Any
) -> None:
    """No answer of a cost can fail a request."""
    whose_bucket(app, limiter, by_ip, "10/minute", cost=lambda: answer)
    assert room(caller(app).get("/"), "it") == 9
    assert len(warnings) == 1


def test_a_cost_that_raises_is_one(app: Flask, limiter: VenueLimit, warnings: list[str]) -> None:
    """A cost that fails is logged and taken as 1."""
    whose_bucket(app, limiter, by_ip, "10/minute", cost=lambda: 1 // 0)
    assert room(caller(app).get("/"), "it") == 9
    assert warnings

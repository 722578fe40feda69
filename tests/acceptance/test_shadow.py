"""Limits that only watch: they decide, count and tell, and never stand in the way."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import Decision, FixedWindow, Limit, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, left, statuses
from tests.acceptance.decorators import known_late


@pytest.fixture
def watched(app: Flask, limiter: VenueLimit) -> Limit:
    """One request a minute of ``/``, which says what was decided, and is never refused."""
    limit = limiter.limit(FixedWindow(1, 60), name="watched", key=by_ip, shadow=True)

    @app.get("/")
    @limit
    def home() -> str:
        (decision,) = limiter.decisions
        return f"{decision.allowed} {decision.retry_after}"

    return limit


@pytest.mark.parametrize("key", [by_ip, known_late])
@pytest.mark.parametrize("most", [0, 1])
def test_a_shadow_limit_never_refuses(app: Flask, limiter: VenueLimit, key: Any, most: int) -> None:
    """At the front or at the decorator, over its number or closed altogether: the view answers."""
    limit = limiter.limit(FixedWindow(most, 60), key=key, shadow=True)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(caller(app), "/", 3) == [200] * 3


def test_a_shadow_limit_says_what_would_have_been(app: Flask, watched: Limit, clock: ManualClock) -> None:
    """``allowed`` and ``retry_after`` are those of a limit that refuses."""
    seen = [caller(app).get("/").text]
    clock.advance(20)
    seen.append(caller(app).get("/").text)
    assert seen == ["True 0.0", "False 40.0"]


def test_a_shadow_limit_counts(app: Flask, watched: Limit, clock: ManualClock) -> None:
    """It counts as if it refused: what would not have passed is not charged."""
    statuses(caller(app), "/", 2)
    assert (left(watched), watched.peek(subject=C).shadow) == (0, True)
    clock.advance(60)
    assert caller(app).get("/").text == "True 0.0"


def test_each_refusal_that_was_none_is_signalled(app: Flask, watched: Limit, told: list[Decision]) -> None:
    """``limit_refused`` tells of it, once a request, and that the limit only watches."""
    statuses(caller(app), "/", 3)
    assert [(d.limit, d.allowed, d.shadow) for d in told] == [("watched", False, True)] * 2


def test_a_shadow_limit_shows_nothing(app: Flask, watched: Limit) -> None:
    """No header tells callers of a limit that does not bind them."""
    for answer in (caller(app).get("/"), caller(app).get("/")):
        shown = [name for name, _ in answer.headers if "ratelimit" in name.lower() or name == "Retry-After"]
        assert shown == []


def test_a_shadow_limit_does_not_stand_in_the_way_of_others(app: Flask, limiter: VenueLimit) -> None:
    """A real limit beside it decides, counts and is shown as if it were alone."""
    real = limiter.limit(FixedWindow(3, 60), name="real", key=by_ip)
    shadow = limiter.limit(FixedWindow(1, 60), name="shadow", key=by_ip, shadow=True)
    app.add_url_rule("/", "home", real(shadow(lambda: "ok")))
    assert items(caller(app).get("/"), "RateLimit") == {"real": {"r": 2, "t": 60}}
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_what_a_real_limit_refuses_is_not_charged_to_a_shadow(app: Flask, limiter: VenueLimit) -> None:
    """All or none holds for those who watch, or their numbers would mislead."""
    real = limiter.limit("1/minute", name="real", key=by_ip)
    shadow = limiter.limit("9/minute", name="shadow", key=by_ip, shadow=True)
    app.add_url_rule("/", "home", real(shadow(lambda: "ok")))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert left(shadow) == 8


def test_a_refusal_names_the_limits_that_refused_and_no_shadow(app: Flask, limiter: VenueLimit) -> None:
    """A shadow that would have refused for longer is neither the reason nor among the reasons."""
    real = limiter.limit(FixedWindow(1, 60), name="real", key=by_ip)
    shadow = limiter.limit(FixedWindow(1, 3600), name="shadow", key=by_ip, shadow=True)
    app.add_url_rule("/", "home", real(shadow(lambda: "ok")))
    caller(app).get("/")
    told = caller(app).get("/").get_json()
    assert (told["limit"], told["retry_after"], told["violated-policies"]) == ("real", 60, ["real"])


def test_a_shadow_guard_never_raises(watched: Limit, told: list[Decision]) -> None:
    """The block runs, knows what would have been, and that is signalled as in a request."""
    seen = []
    for _ in range(2):
        with watched.guard(subject=C) as decision:
            seen.append(decision.allowed)
    assert seen == [True, False]
    assert [decision.allowed for decision in told] == [False]


def test_a_shadow_guard_in_a_view_leaves_the_view_s_own_429_alone(app: Flask, watched: Limit) -> None:
    """What never refuses adds neither its hint nor ``no-store`` to an answer of the app's."""

    @app.get("/own")
    def own() -> tuple[str, int]:
        with watched.guard(subject=C), watched.guard(subject=C):
            return "mine", 429

    answer = caller(app).get("/own")
    assert (answer.status_code, answer.text) == (429, "mine")
    assert "Retry-After" not in answer.headers
    assert "no-store" not in answer.headers.get("Cache-Control", "")


def test_a_shadow_of_failures_gives_successes_back(app: Flask, limiter: VenueLimit) -> None:
    """Trying out a failure limit counts failures, not requests."""
    limit = limiter.failures("2/minute", name="f", shadow=True)
    app.add_url_rule("/<int:status>", "login", limit(lambda status: ("", status)))
    assert statuses(caller(app), "/200", 5) + statuses(caller(app), "/401", 3) == [200] * 5 + [401] * 3
    assert left(limit) == 0

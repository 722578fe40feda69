"""What is warned about: once an app, by the logger ``flask_venuelimit``."""

from __future__ import annotations

import logging
from typing import Any, ClassVar

import pytest
from flask import Blueprint, Flask
from flask.views import MethodView

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, signed_in, statuses


def about(warnings: list[str], what: str) -> list[str]:
    """The warnings that speak of something."""
    return [said for said in warnings if what in said]


def test_a_decorator_above_the_route_is_warned_about_by_view_name(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """``@limiter.limit`` above ``@app.route`` limits nothing; the first request tells, naming the view."""

    @limiter.limit("0/minute")
    @app.get("/login")
    def login() -> str:
        return "welcome"

    assert statuses(caller(app), "/login", 3) == [200] * 3
    (warning,) = about(warnings, "covers nothing")
    assert "login" in warning
    assert "@app.route" in warning


def test_a_limit_that_is_put_on_nothing_is_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A declaration that somebody forgot to use is named at the first request, and never again."""
    limiter.limit("5/minute", name="forgotten")
    assert about(warnings, "forgotten") == []
    statuses(caller(app), "/", 3)
    assert len(about(warnings, "forgotten")) == 1


def test_a_limit_on_an_unregistered_blueprint_is_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A blueprint that no app has covers nothing."""
    limiter.limit("5/minute", name="on a blueprint")(Blueprint("elsewhere", __name__))
    statuses(caller(app), "/", 1)
    assert len(about(warnings, "on a blueprint")) == 1


def test_a_limit_on_a_view_of_an_unregistered_blueprint_is_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """The same goes for a view that is routed only there."""
    bp = Blueprint("elsewhere", __name__)
    bp.add_url_rule("/", "home", limiter.limit("5/minute", name="on its view")(lambda: "ok"))
    statuses(caller(app), "/", 1)
    assert len(about(warnings, "on its view")) == 1


def test_limits_that_cover_something_are_not_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """On a view, a class, a method, a blueprint, everything, or asked by hand: nothing to say."""

    class Form(MethodView):
        decorators: ClassVar = [limiter.limit("5/minute", name="class")]

        @limiter.limit("5/minute", name="method")
        def post(self) -> str:
            return "sent"

    app.add_url_rule("/form", view_func=Form.as_view("form"))
    app.add_url_rule("/", "home", limiter.limit("5/minute", name="view")(lambda: "ok"))
    bp = Blueprint("bp", __name__)
    app.register_blueprint(bp)
    limiter.limit("5/minute", name="blueprint")(bp)
    limiter.limit("5/minute", name="everywhere").everywhere()
    limiter.limit("5/minute", name="by hand", key=by_ip).hit(subject=C)
    statuses(caller(app), "/", 1)
    assert warnings == []


def test_a_limit_that_the_first_request_asks_by_hand_is_not_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """Its use is known by the time anything would be said."""
    limit = limiter.limit("5/minute", name="by hand", key=by_ip)
    app.add_url_rule("/", "home", lambda: str(limit.hit().remaining))
    statuses(caller(app), "/", 2)
    assert warnings == []


def test_each_app_is_warned_once(warnings: list[str]) -> None:
    """Two apps of one limiter are two set-ups: each has its say."""
    limiter = VenueLimit()
    for name in ("one", "two"):
        app = Flask(name)
        app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
        limiter.init_app(app)
        app.add_url_rule("/", "home", limiter.limit("9/minute", name="it", key=by_ip)(lambda: "ok"))
        for _ in range(3):
            caller(app, "").get("/")
    assert len(about(warnings, "peer address")) == 2


def test_a_quiet_app_is_not_warned_at_all(
    app: Flask, limiter: VenueLimit, caplog: pytest.LogCaptureFixture
) -> None:
    """An app that is set up well hears nothing, through admissions, refusals and refunds."""
    caplog.set_level(logging.WARNING)
    view: Any = limiter.failures("9/minute", name="f")(limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    app.add_url_rule("/", "home", view)
    statuses(caller(app), "/", 3)
    statuses(signed_in(app, participant_id="p"), "/nowhere", 3)
    assert caplog.records == []


def test_a_misspelt_setting_is_warned_about(app: Flask, warnings: list[str]) -> None:
    """A name that no code reads says so, and what it may have been meant to be."""
    app.config["VENUELIMIT_HEADER"] = ["trio"]
    VenueLimit(app, storage=MemoryStorage())
    assert warnings == [
        "VENUELIMIT_HEADER is not a setting of flask_venuelimit; did you mean VENUELIMIT_HEADERS?"
    ]


def test_a_limit_without_a_name_that_requests_declare_is_warned_about(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """Each request would make another one, and none of them refuse; one with a name is the same each time."""
    app.add_url_rule("/unnamed", "unnamed", lambda: str(limiter.limit("1/minute").hit().allowed))
    app.add_url_rule("/named", "named", lambda: str(limiter.limit("1/minute", name="it").hit().allowed))
    assert [caller(app).get("/named").text for _ in range(2)] == ["True", "False"]
    assert about(warnings, "inside a request") == []
    statuses(caller(app), "/unnamed", 3)
    (warning,) = about(warnings, "inside a request")
    assert "without a name (1/minute)" in warning
    assert "give it a name" in warning

"""A drill is refused as the app refuses: by its own handlers, templates and URLs, broken ones included."""

from __future__ import annotations

from typing import Any

import pytest
from flask import (
    Blueprint,
    Flask,
    Response,
    current_app,
    g,
    jsonify,
    redirect,
    render_template_string,
    request,
    url_for,
)
from flask_restx import Api

from flask_venuelimit import RateLimited, VenueLimit, by_ip
from tests.commands.drilling import drilled, forbidden, quiz, said, venue, verdicts


@pytest.mark.parametrize(
    ("handler", "complaint"),
    [
        (lambda _: "slow down", "answered 200 instead of 429; a client takes that for success"),
        (lambda _: ("slow down", 503), "answered 503 instead of 429"),
        (lambda _: redirect("/slow"), "answered 302 instead of 429; a client takes that for success"),
        (lambda _: ({"retry_after": 1}, 429), "the body's retry_after is 1, and Retry-After is "),
        (lambda _: Response("{", 429, mimetype="application/json"), "application/json, and is not"),
        (lambda _: g.nothing, "the app's own answer raised AttributeError (nothing)."),
    ],
)
@pytest.mark.parametrize("where", ["app", "blueprint"])
def test_a_handler_that_breaks_the_refusal_fails(handler: Any, complaint: str, where: str) -> None:
    """A status that looks like success, two hints that differ, no answer at all: exit code 1."""
    app, bp = quiz()
    (app if where == "app" else bp).register_error_handler(429, handler)
    app.register_blueprint(bp)
    answer = drilled(app)
    assert answer.code == 1
    assert said(answer, "refusal", "answers").startswith("FAILED: ")
    assert complaint in said(answer, "refusal", "answers")


def test_a_handler_of_the_app_s_own_may_say_what_it_likes() -> None:
    """Status and hint are what has to be there; the finding says whose the body is."""
    app, bp = quiz()
    app.register_error_handler(RateLimited, lambda error: (f"Slow down: {error.retry_after}", 429))
    app.register_blueprint(bp)
    answer = drilled(app)
    assert verdicts(answer) == ["ok"] * 3
    assert said(answer, "refusal", "answers").endswith(", the app's own text/html; a browser: 429, text/html")


def test_a_handler_finds_what_it_is_used_to() -> None:
    """The app's URLs, config, extensions, context processors; and its blueprint's handler comes first."""
    app, bp = quiz()
    app.config["MOTTO"] = "last orders"
    app.extensions["till"] = "open"
    app.context_processor(lambda: {"host": "Ann"})
    text = "{{ host }} {{ config.MOTTO }} {{ url_for('quiz.round', number=3) }}"

    def own(_: RateLimited) -> tuple[Response, int]:
        assert render_template_string(text) == "Ann last orders /round/3"
        return jsonify(till=current_app.extensions["till"], home=url_for("quiz.round", number=1)), 429

    bp.register_error_handler(429, own)
    app.register_error_handler(429, forbidden)
    app.register_blueprint(bp)
    assert "the app's own application/json" in said(drilled(app), "refusal", "answers")


def test_a_limit_everywhere_is_answered_by_the_app() -> None:
    """By no blueprint of which it covers a view, among others."""
    app, limiter = venue()
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", forbidden)
    bp.register_error_handler(429, forbidden)
    app.register_blueprint(bp)
    limiter.limit("5/minute", name="global", key=by_ip).everywhere()
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_a_catch_all_does_not_stand_in_the_way() -> None:
    """A handler for everything that goes wrong answers no refusal, as in the app; nor does Flask-RESTX's."""
    app, limiter = venue()
    limiter.limit("5/minute", name="it", key=by_ip)
    app.register_error_handler(Exception, lambda _: ("broken", 500))
    Api(app).errorhandler(Exception)(lambda _: ({"message": "broken"}, 500))
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_a_browser_may_be_sent_to_a_page_of_the_app_s_own() -> None:
    """That is the app's affair, as long as programs get a 429."""
    app, bp = quiz()

    def own(error: RateLimited) -> Any:
        return redirect("/slow") if _navigates() else (jsonify(error.problem()), 429)

    app.register_error_handler(RateLimited, own)
    app.register_blueprint(bp)
    answer = drilled(app)
    assert answer.code == 0
    assert said(answer, "refusal", "answers").endswith("a browser: 302 to /slow, the app's own")


def _navigates() -> bool:
    return request.headers.get("Sec-Fetch-Mode") == "navigate"


@pytest.mark.parametrize(
    "settings",
    [
        {"PAGE_MODE": "inline", "HEADERS": "x"},
        {"PAGE_PATH": "/slow", "HEADERS": ""},
        {"HEADERS": "draft,trio,x", "ROBOTS_TXT": True},
        {"EXEMPT_NETWORKS": "0.0.0.0/0", "TRUSTED_PROXIES": "10.0.0.0/8"},
        {"IPV6_PREFIX": 64, "KEY_PREFIX": "pub", "RETRY_JITTER": 1},
    ],
    ids=str,
)
def test_settings_are_the_app_s_own(settings: dict[str, Any]) -> None:
    """Page, headers and all; only whom the app exempts or believes plays no part."""
    app, bp = quiz(**settings)
    app.register_blueprint(bp)
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_a_stampede_is_a_failure() -> None:
    """With too little jitter a crowd that was refused together comes back together."""
    app, bp = quiz(RETRY_JITTER=0.01)
    app.register_blueprint(bp)
    answer = drilled(app)
    assert answer.code == 1
    assert said(answer, "recovery", "answers") == (
        "FAILED: 50 callers who were refused together come back in one second, 62 s later: raise "
        "VENUELIMIT_RETRY_JITTER, which is 0.01"
    )


def test_a_stampede_that_somebody_chose_is_said() -> None:
    """Where the setting says that nobody is to be spread, the drill does not fail for it."""
    app, bp = quiz(RETRY_JITTER=0)
    app.register_blueprint(bp)
    answer = drilled(app)
    assert answer.code == 0
    assert "all in one second, as VENUELIMIT_RETRY_JITTER=0 has it" in said(answer, "recovery", "answers")


class _Odd(Flask):
    """An app whose constructor wants something, and that names hosts."""

    def __init__(self, motto: str) -> None:
        super().__init__("odd", template_folder=None, static_folder=None, host_matching=True)
        self.motto = motto

    def make_response(self, rv: Any) -> Response:
        """Need what the constructor was given."""
        assert self.motto == "last orders"
        return super().make_response(rv)


def test_an_app_of_a_class_of_its_own_is_drilled() -> None:
    """Whatever its constructor asks for; and on whatever hosts its routes are."""
    app = _Odd("last orders")
    app.config.update(SECRET_KEY="s", SERVER_NAME="pub.example", VENUELIMIT_STORAGE_URI="memory://")
    limited = VenueLimit(app).limit("5/minute", name="it", key=by_ip)(forbidden)
    app.add_url_rule("/", "home", limited, host="pub.example")
    assert verdicts(drilled(app)) == ["ok"] * 3

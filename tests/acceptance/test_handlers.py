"""Whoever renders a refusal, handlers and hooks of the app's own included: what is always there."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask, Response, abort, make_response
from werkzeug.exceptions import HTTPException, TooManyRequests

from flask_venuelimit import (
    FixedWindow,
    RateLimited,
    VenueLimit,
    by_ip,
)
from tests.acceptance.callers import (
    NAVIGATING,
    Refused,
    caller,
    items,
)


@pytest.mark.parametrize("handled", [429, RateLimited, TooManyRequests])
@pytest.mark.parametrize("where", ["app", "blueprint"])
def test_an_app_s_own_handler_is_used(app: Flask, limiter: VenueLimit, handled: Any, where: str) -> None:
    """A handler for the class or its code answers, on the app or on the blueprint, with all the headers."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", limiter.limit(FixedWindow(1, 60), name="it", key=by_ip)(lambda: "ok"))
    (app if where == "app" else bp).register_error_handler(handled, lambda error: ("mine", 429))
    app.register_blueprint(bp)
    client = caller(app)
    client.get("/")
    answer = client.get("/")
    assert (answer.status_code, answer.text) == (429, "mine")
    assert answer.headers.getlist("Retry-After") == ["60"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert {"Accept", "Sec-Fetch-Mode"} <= set(answer.vary)
    assert items(answer, "RateLimit") == {"it": {"r": 0, "t": 60}}


@pytest.mark.parametrize("broad", [HTTPException, Exception, 500])
@pytest.mark.parametrize("where", ["app", "blueprint"])
def test_a_catch_all_is_not_used(app: Flask, limiter: VenueLimit, broad: Any, where: str) -> None:
    """A handler for everything that goes wrong never makes a 500 of a refusal."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", limiter.limit("0/minute", name="it", key=by_ip)(lambda: "ok"))
    bp.add_url_rule("/late", "late", limiter.limit("0/minute", key=lambda: 1)(lambda: "ok"))
    (app if where == "app" else bp).register_error_handler(broad, lambda error: ("broken", 500))
    app.register_blueprint(bp)
    answers = [caller(app).get(path) for path in ("/", "/late")]
    assert [(answer.status_code, answer.mimetype) for answer in answers] == [(429, "application/json")] * 2


def _with_a_hint_of_its_own(error: RateLimited) -> Response:
    response = make_response("mine", 429)
    response.headers.add("Retry-After", "7")
    response.headers.add("Retry-After", "8")
    return response


@pytest.mark.parametrize(
    "make", [lambda error: error, lambda error: error.get_response(), _with_a_hint_of_its_own]
)
def test_there_is_one_retry_after_whatever_a_handler_sends(app: Flask, refused: Refused, make: Any) -> None:
    """The error, its response or one with hints of its own: the number is the refusal's, and there once."""
    app.register_error_handler(429, make)
    answer = refused()
    assert (answer.status_code, answer.headers.getlist("Retry-After")) == (429, ["60"])


def test_a_handler_s_redirect_carries_no_hint(app: Flask, refused: Refused) -> None:
    """On a redirect Retry-After would mean something else, the handler's own too; ``no-store`` stays."""

    @app.errorhandler(RateLimited)
    def send_away(error: RateLimited) -> Response:
        response = _with_a_hint_of_its_own(error)
        response.status_code, response.location = 302, "/sorry"
        return response

    answer = refused()
    assert (answer.status_code, answer.headers["Cache-Control"]) == (302, "no-store")
    assert [name for name in ("Retry-After", "RateLimit", "RateLimit-Reset") if name in answer.headers] == []


def test_where_no_wait_helps_a_handler_s_hint_is_taken_away(app: Flask, limiter: VenueLimit) -> None:
    """A handler that always says to come back later does not say it of a limit that never admits."""
    app.register_error_handler(429, _with_a_hint_of_its_own)
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(0, 60), key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/")
    assert (answer.status_code, answer.text, "Retry-After" in answer.headers) == (429, "mine", False)


def test_a_handler_that_fails_is_the_app_s_500(app: Flask, refused: Refused) -> None:
    """An error in the app's own handler is its error, and no refusal is hidden in it."""
    app.register_error_handler(429, lambda error: str(1 // 0))
    assert refused().status_code == 500


def test_after_request_hooks_run(app: Flask, refused: Refused) -> None:
    """CORS headers are on a refusal as on any answer."""

    @app.after_request
    def cors(response: Response) -> Response:
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    assert refused().headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("when", ["before init_app", "after init_app", "blueprint"])
@pytest.mark.parametrize("headers", [{}, NAVIGATING])
def test_no_store_whatever_hooks_say(app: Flask, storage: Any, when: str, headers: dict[str, str]) -> None:
    """A hook that makes everything cacheable does not make a refusal so."""
    bp = Blueprint("quiz", __name__)

    def cache(response: Response) -> Response:
        response.headers["Cache-Control"] = "public, max-age=3600"
        response.headers["Vary"] = "Origin"
        return response

    (bp if when == "blueprint" else app).after_request(cache) if when != "after init_app" else None
    limiter = VenueLimit(app, storage=storage)
    if when == "after init_app":
        app.after_request(cache)
    bp.add_url_rule("/", "home", limiter.limit("0/minute", key=by_ip)(lambda: "ok"))
    app.register_blueprint(bp)
    answer = caller(app).get("/", headers=headers)
    assert answer.headers.getlist("Cache-Control") == ["no-store"]
    assert {"Origin", "Accept", "Sec-Fetch-Mode"} <= set(answer.vary)


def test_an_admitted_response_is_left_cacheable(app: Flask, limiter: VenueLimit) -> None:
    """Only refusals are ``no-store``; what is admitted keeps its own headers, Retry-After among them."""
    mine = {"Cache-Control": "public", "Retry-After": "5"}
    app.add_url_rule("/", "home", limiter.limit("9/minute", key=by_ip)(lambda: ("ok", 503, mine)))
    answer = caller(app).get("/")
    assert (answer.headers["Cache-Control"], answer.headers.getlist("Retry-After")) == ("public", ["5"])
    assert "Vary" not in answer.headers


def test_an_app_s_own_429_is_left_alone(app: Flask, limiter: VenueLimit) -> None:
    """``abort(429)`` is the app's: no page, no JSON, no hint, no ``no-store``."""
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="it", key=by_ip)(lambda: abort(429)))
    answer = caller(app).get("/", headers=NAVIGATING)
    assert (answer.status_code, "Retry-After" in answer.headers, "no-store" in str(answer.headers)) == (
        429,
        False,
        False,
    )
    assert "This user has exceeded" in answer.text
    assert items(answer, "RateLimit") == {"it": {"r": 8, "t": 60}}


def test_a_refusal_that_a_view_catches_is_no_refusal(app: Flask, limiter: VenueLimit) -> None:
    """A view that does without answers as it likes, and is no ``no-store`` for it."""
    limit = limiter.limit("0/minute", name="extra", key=by_ip)

    @app.get("/")
    def home() -> str:
        try:
            with limit.guard():
                return "with extras"
        except RateLimited:
            return "plain"

    answer = caller(app).get("/")
    assert (answer.status_code, answer.text) == (200, "plain")
    assert [name for name in ("Retry-After", "Cache-Control") if name in answer.headers] == []

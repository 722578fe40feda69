"""What a refusal says, and whose handler says it."""

from __future__ import annotations

import json

import pytest
from flask import Blueprint, Flask, abort
from werkzeug.exceptions import HTTPException, TooManyRequests
from werkzeug.test import TestResponse
from werkzeug.wrappers import Response

from flask_venuelimit.refusals import LimiterUnavailable, RateLimited, finish, retry_seconds
from tests.refusing import NAVIGATE, decided, refusing_app


def refused(headers: dict[str, str] | None = None, method: str = "GET", **app: object) -> TestResponse:
    client = refusing_app(**app).test_client()  # type: ignore[arg-type]
    return client.open("/quiz?round=2", method=method, headers=headers)


def test_a_script_is_told_in_json() -> None:
    """The body is a problem document with the number that Retry-After has."""
    response = refused({"Accept": "*/*"})
    assert (response.status_code, response.mimetype) == (429, "application/json")
    assert response.json == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too Many Requests",
        "status": 429,
        "error": "rate_limited",
        "detail": "Too many requests. Please slow down.",
        "retry_after": 3,
        "limit": "join",
        "violated-policies": ["join"],
    }
    assert response.headers.getlist("Retry-After") == ["3"]


def test_problem_json_is_the_same_under_its_own_name() -> None:
    """RFC 9457 by name gets the same document."""
    response = refused({"Accept": "application/problem+json"})
    assert response.mimetype == "application/problem+json"
    assert json.loads(response.text) == refused().json


def test_a_limits_own_sentence_is_the_detail() -> None:
    """``message`` reaches programs as well."""
    response = refused(message="One answer at a time, please.")
    assert response.json is not None
    assert response.json["detail"] == "One answer at a time, please."


def test_where_no_wait_helps_there_is_no_hint() -> None:
    """No Retry-After, and null in the body."""
    response = refused(wait=None)
    assert "Retry-After" not in response.headers
    assert response.json is not None
    assert response.json["retry_after"] is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_person_is_redirected_to_the_page(method: str) -> None:
    """303 whatever the method, relative, and without fields that mean something else there."""
    response = refused(NAVIGATE, method)
    assert response.status_code == 303
    assert response.location is not None
    assert response.location.startswith("/too-many-requests?t=")
    assert "Retry-After" not in response.headers


def test_the_redirect_keeps_to_the_prefix() -> None:
    """Under SCRIPT_NAME the page is under it too."""
    client = refusing_app().test_client()
    response = client.get("/quiz", headers=NAVIGATE, environ_overrides={"SCRIPT_NAME": "/pub"})
    assert response.location.startswith("/pub/too-many-requests?t=")


@pytest.mark.parametrize("prefix", ["//evil.example", "/\\evil.example", "evil.example"])
def test_no_prefix_makes_the_redirect_leave_the_site(prefix: str) -> None:
    """A SCRIPT_NAME that a proxy took from a header does not name another host."""
    client = refusing_app().test_client()
    response = client.get("/quiz", headers=NAVIGATE, environ_overrides={"SCRIPT_NAME": prefix})
    assert response.location[0] == "/"
    assert response.location[1] not in "/\\"


def test_inline_shows_the_page_where_it_was_asked_for() -> None:
    """VENUELIMIT_PAGE_MODE=inline: a 429 with Retry-After whose body is the page."""
    response = refused(NAVIGATE, page_mode="inline")
    assert (response.status_code, response.mimetype) == (429, "text/html")
    assert response.headers["Retry-After"] == "3"
    assert 'href="/quiz?round=2"' in response.text


def test_whoever_names_only_html_gets_the_page_as_a_429() -> None:
    """A script that reads HTML is refused in HTML, and not redirected."""
    response = refused({"Sec-Fetch-Mode": "cors", "Accept": "text/html"})
    assert (response.status_code, response.mimetype) == (429, "text/html")


@pytest.mark.parametrize("headers", [{}, NAVIGATE, {"Accept": "text/html", "Sec-Fetch-Mode": "cors"}])
def test_no_cache_keeps_a_refusal(headers: dict[str, str]) -> None:
    """Neither kind of answer may be stored, and it says what it depends on."""
    response = refused(headers)
    assert response.headers["Cache-Control"] == "no-store"
    assert {"Accept", "Sec-Fetch-Mode"} <= set(response.vary)


def test_finishing_outranks_other_hooks() -> None:
    """One Retry-After, no-store, and Vary merged with what is there."""
    response = Response(headers={"Cache-Control": "public, max-age=60", "Vary": "Cookie, accept"})
    response.headers.add("Retry-After", "9")
    response.headers.add("Retry-After", "10")
    finish(response, RateLimited(decided(wait=2.0)))
    assert response.headers.getlist("Retry-After") == ["2"]
    assert response.headers.getlist("Cache-Control") == ["no-store"]
    assert response.headers["Vary"] == "Cookie, accept, Sec-Fetch-Mode"


def test_a_handlers_redirect_carries_no_retry_after() -> None:
    """On a redirect it would say when to follow, RFC 9110 section 10.2.3."""
    response = Response(status=302, headers={"Retry-After": "2"})
    finish(response, RateLimited(decided(wait=2.0)))
    assert "Retry-After" not in response.headers


@pytest.mark.parametrize(("wait", "seconds"), [(0.2, 1), (1.0, 1), (1.9, 2), (58.001, 59), (None, None)])
def test_retry_after_is_the_wait_rounded_up(wait: float | None, seconds: int | None) -> None:
    """Without jitter it is the arithmetic's wait in whole seconds, at least one."""
    assert RateLimited(decided(wait=wait)).retry_after == seconds


def test_jitter_spreads_callers_and_never_shortens_the_wait() -> None:
    """A tenth of a minute's wait is up to six seconds more, every one of them."""
    waits = {retry_seconds(59.5, 0.1) for _ in range(500)}
    assert waits == set(range(60, 67))


def test_short_waits_are_not_stretched() -> None:
    """A tenth of five seconds is no whole second."""
    assert {retry_seconds(5.0, 0.1) for _ in range(50)} == {5}


def test_htmx_is_told_to_put_the_json_nowhere() -> None:
    """htmx 4 would show any answer in the page, and nobody wants to read JSON there."""
    assert refused({"HX-Request": "true"}).headers["HX-Reswap"] == "none"
    assert "HX-Reswap" not in refused().headers


def test_several_refusing_limits_are_all_named() -> None:
    """The wait is the longest one's; the body tells of the others too."""
    refusal = RateLimited(decided("join", wait=9.0), violated=["global", "join"])
    assert refusal.problem()["violated-policies"] == ["global", "join"]
    assert refusal.problem()["limit"] == "join"


def test_storage_down_and_denied_is_a_503() -> None:
    """A script learns that it is not its fault, and when to come back."""
    response = refused(unavailable=True)
    assert (response.status_code, response.headers["Retry-After"]) == (503, "3")
    assert response.json is not None
    assert response.json["error"] == "limiter_unavailable"
    assert response.json["type"].endswith("#temporary-reduced-capacity")


def test_a_person_sees_a_503_where_they_are() -> None:
    """The page comes inline in either mode: there is no limit to wait for."""
    response = refused(NAVIGATE, unavailable=True)
    assert (response.status_code, response.mimetype) == (503, "text/html")
    assert "HTTP 503" in response.text


def handled(app: Flask, path: str = "/quiz") -> tuple[int, str]:
    response = app.test_client().get(path)
    return response.status_code, response.text


@pytest.mark.parametrize("what", [RateLimited, TooManyRequests, 429])
def test_an_apps_own_handler_answers_instead(what: type[Exception] | int) -> None:
    """A handler for the class or for its code wins over ours."""
    app = refusing_app()
    app.register_error_handler(what, lambda error: (f"slow down: {error.retry_after}", 429))
    assert handled(app) == (429, "slow down: 3")


@pytest.mark.parametrize("what", [RateLimited, 429])
def test_a_blueprints_own_handler_answers_instead(what: type[Exception] | int) -> None:
    """It wins for the blueprint's views, even where the app has one."""
    app, blueprint = refusing_app(), Blueprint("own", "own")
    app.register_error_handler(what, lambda error: ("the app's", 429))
    blueprint.register_error_handler(what, lambda error: ("the blueprint's", 429))
    blueprint.add_url_rule("/inside", view_func=lambda: "never reached")
    app.register_blueprint(blueprint)
    assert handled(app, "/inside") == (429, "the blueprint's")
    assert handled(app, "/outside") == (429, "the app's")


@pytest.mark.parametrize("what", [HTTPException, Exception])
@pytest.mark.parametrize("unavailable", [False, True])
def test_a_catch_all_does_not_turn_a_refusal_into_an_error(what: type[Exception], unavailable: bool) -> None:
    """An app's handler for everything is not meant for refusals."""
    app = refusing_app(unavailable=unavailable)
    app.register_error_handler(what, lambda error: ("caught", 500))
    assert handled(app)[0] == (503 if unavailable else 429)


@pytest.mark.parametrize("what", [LimiterUnavailable, 503])
def test_an_apps_own_handler_answers_for_the_503(what: type[Exception] | int) -> None:
    """Handlers work for it as they do for a refusal."""
    app = refusing_app(unavailable=True)
    app.register_error_handler(what, lambda error: ("closed", 503))
    assert handled(app) == (503, "closed")


def test_an_apps_own_429_is_left_alone() -> None:
    """``abort(429)`` is the app's: its page, and none of our fields."""
    app = refusing_app()
    app.before_request_funcs[None].clear()
    app.add_url_rule("/own", view_func=lambda: abort(429))
    response = app.test_client().get("/own", headers=NAVIGATE)
    assert response.status_code == 429
    assert "Cache-Control" not in response.headers

"""What a refused caller gets, from an app that is limited and set up as apps are."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from werkzeug.exceptions import TooManyRequests

from flask_venuelimit import (
    Decision,
    FixedWindow,
    RateLimited,
    VenueLimit,
    by_ip,
    limit_refused,
)
from tests.acceptance.callers import (
    CHROME_IMAGE,
    CHROME_PAGE,
    NAVIGATING,
    Refused,
    caller,
    items,
    statuses,
)

PAGE = "/too-many-requests"


# -- everyone else -------------------------------------------------------------------------------


def test_a_script_is_told_in_json(refused: Refused) -> None:
    """The body is the promised one, to the letter, and carries the number of Retry-After."""
    answer = refused()
    assert (answer.status_code, answer.mimetype) == (429, "application/json")
    assert answer.get_json() == {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too Many Requests",
        "status": 429,
        "error": "rate_limited",
        "detail": "Too many requests. Please slow down.",
        "retry_after": 60,
        "limit": "submit-answer",
        "violated-policies": ["submit-answer"],
    }
    assert answer.headers.getlist("Retry-After") == ["60"]


def test_problem_json_is_given_to_who_names_it(refused: Refused) -> None:
    """The same body, under the name the caller asked for."""
    answer = refused(Accept="application/problem+json")
    assert (answer.status_code, answer.mimetype) == (429, "application/problem+json")
    assert answer.get_json()["retry_after"] == 60


@pytest.mark.parametrize("accept", ["text/html", "application/xhtml+xml, text/html;q=0.9, */*;q=0.1"])
def test_who_names_only_html_is_given_the_page(refused: Refused, accept: str) -> None:
    """Not navigating, and reading HTML: the page as the body of the 429."""
    answer = refused(Accept=accept, Sec_Fetch_Mode="cors")
    assert (answer.status_code, answer.mimetype) == (429, "text/html")
    assert "HTTP 429" in answer.text
    assert answer.headers.getlist("Retry-After") == ["60"]


def test_a_limit_s_own_message_is_the_detail(app: Flask, limiter: VenueLimit) -> None:
    """``message=`` is what the refused caller reads."""
    limit = limiter.limit("0/minute", name="closed", key=by_ip, message="The bar is closed.")
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert caller(app).get("/").get_json()["detail"] == "The bar is closed."
    page = caller(app).get("/", headers=NAVIGATING, follow_redirects=True)
    assert "The bar is closed." in page.text


def test_all_limits_that_refused_are_named(app: Flask, limiter: VenueLimit) -> None:
    """``limit`` is the one with the longest wait, ``violated-policies`` are all."""
    view = limiter.limit(FixedWindow(1, 60), name="minute", key=by_ip)(lambda: "ok")
    view = limiter.limit("9/minute", name="roomy", key=by_ip)(view)
    view = limiter.limit(FixedWindow(1, 3600), name="hour", key=by_ip)(view)
    app.add_url_rule("/", "home", view)
    told = [caller(app).get("/") for _ in range(2)][1].get_json()
    assert (told["limit"], told["retry_after"]) == ("hour", 3600)
    assert told["violated-policies"] == ["hour", "minute"]


def test_the_view_does_not_run(app: Flask, limiter: VenueLimit) -> None:
    """A refused request does nothing."""
    ran: list[int] = []
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: str(ran.append(1))))  # type: ignore[func-returns-value]
    statuses(caller(app), "/", 5)
    assert ran == [1]


def test_a_refused_head_has_no_body(refused: Refused) -> None:
    """HEAD is answered with the header fields alone."""
    answer = refused("HEAD")
    assert (answer.status_code, answer.data, answer.headers["Retry-After"]) == (429, b"", "60")


def test_a_refusal_is_signalled_once(app: Flask, refused: Refused) -> None:
    """``limit_refused`` is sent with the decision, by the app."""
    seen: list[tuple[object, Decision]] = []

    def receive(sender: object, decision: Decision) -> None:
        seen.append((sender, decision))

    with limit_refused.connected_to(receive):
        refused()
    ((sender, decision),) = seen
    assert (sender, decision.limit, decision.allowed) == (app, "submit-answer", False)


@pytest.mark.parametrize(("shadow", "statuses_seen"), [(False, [200, 429, 429]), (True, [200, 200, 200])])
def test_a_receiver_that_raises_changes_no_answer(
    app: Flask, limiter: VenueLimit, warnings: list[str], shadow: bool, statuses_seen: list[int]
) -> None:
    """An alarm that cannot be sent is logged: the refused read 429, and who is only watched passes."""
    limit = limiter.limit("1/minute", name="it", key=by_ip, shadow=shadow)
    app.add_url_rule("/", "home", limit(lambda: "ok"))

    def alarm(sender: object, decision: Decision) -> None:
        raise RuntimeError("no network")

    with limit_refused.connected_to(alarm, sender=app):
        assert statuses(caller(app), "/", 3) == statuses_seen
    assert warnings == ["a receiver of limit_refused raised"] * 2


def test_rate_limited_says_all_that_a_handler_needs(app: Flask, refused: Refused) -> None:
    """It is a werkzeug TooManyRequests with the decision and the seconds of Retry-After."""
    caught: list[RateLimited] = []

    @app.errorhandler(RateLimited)
    def handle(error: RateLimited) -> tuple[str, int]:
        caught.append(error)
        return "later", 429

    refused()
    (error,) = caught
    assert isinstance(error, TooManyRequests)
    assert (error.code, error.retry_after, error.decision.limit) == (429, 60, "submit-answer")


# -- a person ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": CHROME_PAGE}, 303),
        ({"Accept": CHROME_IMAGE}, 429),
        ({"Accept": "*/*"}, 429),
        ({}, 429),
        ({"Accept": "text/html;q=0, */*"}, 429),
        ({"Accept": "application/json, text/html"}, 429),
        ({"Sec-Fetch-Mode": "cors", "Accept": "text/html"}, 429),
        ({"Sec-Fetch-Mode": "navigate", "Accept": "*/*"}, 303),
        ({"Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch"}, 429),
        ({"Sec-Fetch-Mode": "navigate", "Purpose": "prefetch"}, 429),
        ({"Sec-Fetch-Mode": "navigate", "HX-Request": "true"}, 429),
        ({"Accept": "text/html", "X-Requested-With": "XMLHttpRequest"}, 429),
    ],
)
def test_a_person_navigating_is_sent_to_the_page(
    refused: Refused, headers: dict[str, str], status: int
) -> None:
    """Who sees pages gets one; images, scripts and prefetches get a 429 they can read."""
    answer = refused(**headers)
    assert answer.status_code == status
    assert ("Location" in answer.headers) == (status == 303)
    assert ("Retry-After" in answer.headers) == (status == 429)
    assert {"Accept", "Sec-Fetch-Mode"} <= set(answer.vary)


def test_htmx_is_answered_in_json(refused: Refused) -> None:
    """htmx would swap a page into another: it gets JSON, though it names HTML only."""
    answer = refused(HX_Request="true", Accept="text/html")
    assert (answer.status_code, answer.mimetype) == (429, "application/json")


@pytest.mark.parametrize(("method", "status"), [("GET", 303), ("HEAD", 303), ("POST", 303), ("PUT", 429)])
def test_a_form_is_sent_by_303(refused: Refused, method: str, status: int) -> None:
    """303, so that the browser asks for the page with GET; methods no person sends get no page."""
    assert refused(method, Sec_Fetch_Mode="navigate").status_code == status


def test_the_redirect_is_relative_and_says_nothing_of_limits(refused: Refused) -> None:
    """Retry-After and RateLimit fields would mean something else there; ``no-store`` is there."""
    answer = refused(Sec_Fetch_Mode="navigate")
    assert answer.headers["Location"].startswith(f"{PAGE}?")
    assert answer.headers["Cache-Control"] == "no-store"
    assert [name for name, _ in answer.headers if "ratelimit" in name.lower() or name == "Retry-After"] == []


def test_the_redirect_keeps_to_script_name(app: Flask, refused: Refused) -> None:
    """Mounted under a prefix, the page is under it too, and is found there."""
    refused()
    mounted = {"SCRIPT_NAME": "/pub"}
    answer = caller(app).get("/submit", headers=NAVIGATING, environ_overrides=mounted)
    assert answer.headers["Location"].startswith(f"/pub{PAGE}?")
    query = answer.headers["Location"].partition("?")[2]
    page = caller(app).get(f"{PAGE}?{query}", environ_overrides=mounted)
    assert (page.status_code, 'href="/pub/submit"' in page.text) == (429, True)


def test_inline_shows_the_page_where_it_was_asked_for(storage: Any) -> None:
    """``VENUELIMIT_PAGE_MODE="inline"``: 429 with Retry-After, and the page at the URL asked for."""
    app = Flask("inline", template_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_PAGE_MODE="inline", VENUELIMIT_RETRY_JITTER=0)
    limiter = VenueLimit(app, storage=storage)
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(1, 60), name="it", key=by_ip)(lambda: "ok"))
    client = caller(app)
    client.get("/")
    answer = client.get("/", headers=NAVIGATING)
    assert (answer.status_code, answer.headers["Retry-After"], answer.mimetype) == (429, "60", "text/html")
    assert items(answer, "RateLimit") == {"it": {"r": 0, "t": 60}}
    assert ("HTTP 429" in answer.text, answer.headers["X-Robots-Tag"]) == (True, "noindex, nofollow")
    assert client.get("/", headers={"Accept": "*/*"}).mimetype == "application/json"

"""The limit page as part of an app that is limited: always there, never limited, no way round."""

from __future__ import annotations

import re
from typing import Any

import pytest
from flask import Flask, Response, abort, redirect

from flask_venuelimit import Limit, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import NAVIGATING, C, caller, signed_in, statuses
from tests.acceptance.pages import Links, sent_away

PAGE = "/too-many-requests"
ASSET = f"{PAGE}/static/page.css"


# -- never limited -------------------------------------------------------------------------------


def test_over_every_limit_the_page_is_there(app: Flask, closed: Limit) -> None:
    """A hundred visits to the page are a hundred pages, and nothing is charged."""
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert statuses(caller(app), PAGE, 100) == [200] * 100
    assert statuses(caller(app), ASSET, 5, buffered=True) == [200] * 5


def test_the_page_charges_nothing(app: Flask, closed: Limit) -> None:
    """Page, assets and a token of whatever text leave every bucket as it is."""
    for path in (PAGE, ASSET, f"{PAGE}?t=made-up"):
        statuses(caller(app), path, 3, buffered=True)
    assert closed.peek(subject=C).remaining == 1


def test_following_the_redirect_never_loops_nor_spends(app: Flask, closed: Limit) -> None:
    """One hop from the refusal to the page, and that is the end: a 429 for scripts that follow."""
    statuses(caller(app), "/", 1)
    answer = caller(app).get("/", headers=NAVIGATING, follow_redirects=True)
    assert (len(answer.history), answer.status_code, answer.request.path) == (1, 429, PAGE)
    assert answer.headers["Retry-After"] == "60"
    assert "RateLimit" not in answer.headers


def test_the_page_says_what_it_is_and_who_may_keep_it(app: Flask, closed: Limit) -> None:
    """HTTP 429 in words; out of indexes, caches and referrers, in every rendering of it."""
    for answer in (caller(app).get(PAGE), caller(app).get(sent_away(app))):
        assert "HTTP 429" in answer.text
        assert re.search(r'<meta name="robots" content="noindex, nofollow">', answer.text)
        assert answer.headers["X-Robots-Tag"] == "noindex, nofollow"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_after_request_hooks_cannot_make_the_page_cacheable(app: Flask, closed: Limit) -> None:
    """Whatever hooks set for all responses, the page keeps its own header fields."""

    @app.after_request
    def set_for_all(response: Response) -> Response:
        response.headers.update(
            {"Cache-Control": "public", "X-Robots-Tag": "all", "Referrer-Policy": "origin"}
        )
        return response

    answer = caller(app).get(PAGE)
    assert answer.headers.getlist("Cache-Control") == ["no-store"]
    assert (answer.headers["X-Robots-Tag"], answer.headers["Referrer-Policy"]) == (
        "noindex, nofollow",
        "no-referrer",
    )


# -- no gate before it ---------------------------------------------------------------------------


@pytest.mark.parametrize("gate", [lambda: redirect("/login"), lambda: abort(401), lambda: 1 // 0])
def test_an_auth_gate_cannot_bounce_the_page(app: Flask, storage: Any, gate: Any) -> None:
    """The page is answered before the app's before-request hooks, registered before or after."""
    app.before_request(gate)
    VenueLimit(app, storage=storage)
    app.before_request(gate)
    assert statuses(caller(app), PAGE, 1) + statuses(caller(app), ASSET, 1, buffered=True) == [200, 200]


def test_the_page_does_not_touch_the_session(app: Flask, closed: Limit) -> None:
    """A visitor with a session is given the page without one being read, saved or varied on."""
    answer = signed_in(app, participant_id="p").get(PAGE)
    assert ("Set-Cookie" in answer.headers, "Cookie" in answer.vary) == (False, False)


@pytest.mark.parametrize("host", ["pub.example", "other.example:8080"])
def test_the_page_is_there_on_every_host(app: Flask, closed: Limit, host: str) -> None:
    """Whatever the Host header says."""
    assert statuses(caller(app), PAGE, 1, headers={"Host": host}) == [200]


def test_the_page_is_there_where_hosts_are_matched(storage: Any) -> None:
    """An app that routes by host refuses to its page on each of them."""
    app = Flask("venue", host_matching=True, static_folder=None, template_folder=None)
    app.config["SECRET_KEY"] = "s"
    limiter = VenueLimit(app, storage=storage)
    app.add_url_rule("/", "home", limiter.limit("0/minute", key=by_ip)(lambda: "ok"), host="pub.example")
    on = {"Host": "pub.example"}
    location = caller(app).get("/", headers=NAVIGATING | on).headers["Location"]
    assert location.startswith(f"{PAGE}?")
    assert statuses(caller(app), PAGE, 1, headers=on) == [200]
    assert statuses(caller(app), PAGE, 1, headers={"Host": "elsewhere.example"}) == [200]


def test_a_catch_all_route_does_not_hide_the_page(app: Flask, closed: Limit) -> None:
    """A single-page app that answers every path leaves this one alone."""
    app.add_url_rule("/<path:anything>", "spa", lambda anything: "the app")
    assert "HTTP 429" in caller(app).get(PAGE).text


def test_the_page_lives_where_it_is_put() -> None:
    """``VENUELIMIT_PAGE_PATH`` moves the page and its assets."""
    app = Flask("venue", template_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_PAGE_PATH="/slow-down")
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("0/minute", key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/", headers=NAVIGATING, follow_redirects=True)
    assert answer.request.path == "/slow-down"
    assert all(link.startswith("/slow-down/static/") for link in Links(answer).found if link != "/")
    assert statuses(caller(app), PAGE, 1) == [404]


def test_without_storage_the_page_is_there_as_well(app: Flask) -> None:
    """An app that limits nothing yet shows what it will show."""
    VenueLimit(app)
    assert statuses(caller(app), PAGE, 1) == [200]


def test_switched_off_the_page_is_there_as_well(app: Flask, closed: Limit) -> None:
    """A link that somebody still has leads to the page."""
    location = sent_away(app)
    app.config["VENUELIMIT_ENABLED"] = False
    assert statuses(caller(app), location, 1) == [429]


def test_everything_the_page_loads_is_its_own(app: Flask, closed: Limit) -> None:
    """``default-src 'self'`` is enough: no script or style inline, nothing from elsewhere."""
    answer = caller(app).get(sent_away(app, "/?round=2"))
    loaded = [link for link in Links(answer).found if "static" in link]
    assert loaded
    assert statuses(caller(app), loaded[0], 1, buffered=True) == [200]
    assert re.search(r"<style|<script(?![^>]* src=)| style=| on\w+=", answer.text) is None


# -- robots.txt ----------------------------------------------------------------------------------


def test_robots_txt_has_lines_for_the_page(app: Flask, limiter: VenueLimit) -> None:
    """``limiter.robots_txt()`` is what an app puts into its own file; by itself nothing is served."""
    assert f"Disallow: {PAGE}" in limiter.robots_txt().splitlines()
    assert statuses(caller(app), "/robots.txt", 1) == [404]


def test_robots_txt_is_served_where_asked_for(app: Flask, storage: Any) -> None:
    """``VENUELIMIT_ROBOTS_TXT=True`` serves these lines as text."""
    app.config["VENUELIMIT_ROBOTS_TXT"] = True
    limiter = VenueLimit(app, storage=storage)
    answer = caller(app).get("/robots.txt")
    assert (answer.status_code, answer.mimetype, answer.text) == (200, "text/plain", limiter.robots_txt())

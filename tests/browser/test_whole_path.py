"""From a site to its limit, to the page, and back: the extension, a real server, a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from flask import Flask, Response, redirect, request, session

from flask_venuelimit import FixedWindow, MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Page

LINK = "[data-limit-way-back]"
FORM = """<form method="post" action="/answers">
  <label>Answer <input name="it"></label> <button>Send</button>
</form>"""


@pytest.fixture
def site() -> Flask:
    """An app under a strict policy, whose waits have no jitter."""
    app = Flask("site", static_folder=None, template_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)

    @app.after_request
    def only_self(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = "default-src 'self'"
        return response

    return app


def gate() -> Any:
    """Let nobody see anything who is not signed in."""
    return None if "who" in session else redirect("/login")


@pytest.fixture
def limiter(site: Flask, clock: ManualClock) -> VenueLimit:
    """Its limiter, on the test's clock."""
    return VenueLimit(site, storage=MemoryStorage(clock=clock))


@pytest.fixture
def address(site: Flask) -> Iterator[str]:
    """Where it is."""
    with run_app(site) as address:
        yield address


def test_limited_the_page_the_countdown_and_back(
    site: Flask, limiter: VenueLimit, clock: ManualClock, address: str, page: Page
) -> None:
    """Who asks too often waits on the page, and the button leads to what was asked for, which is there."""
    limit = limiter.limit(FixedWindow(2, 60), name="rounds", key=by_ip)
    site.add_url_rule("/rounds", "rounds", limit(lambda: f"<h1>Round {request.args['round']}</h1>"))
    page.clock.install()
    for number in (1, 2, 3):
        page.goto(f"{address}/rounds?round={number}")
    assert page.get_by_role("heading").inner_text() == "Too many people from this network at once"
    clock.advance(60)
    page.clock.run_for(61_000)
    page.locator(LINK).click()
    assert page.get_by_role("heading").inner_text() == "Round 3"
    assert page.url == f"{address}/rounds?round=3"


def test_a_form_and_back_to_what_was_typed(
    site: Flask, limiter: VenueLimit, clock: ManualClock, address: str, page: Page
) -> None:
    """A person who sent too much finds the text again, and it is taken when the wait is over."""
    limit = limiter.limit(FixedWindow(1, 60), name="answers", key=lambda: "kim")
    site.add_url_rule("/", "form", lambda: FORM)
    site.add_url_rule(
        "/answers", "answers", limit(lambda: f"<h1>{request.form['it']}</h1>"), methods=["POST"]
    )
    page.clock.install()
    for text in ("a gallon", "eight pints"):
        page.goto(address)
        page.get_by_label("Answer").fill(text)
        page.get_by_role("button", name="Send").click()
    assert page.get_by_role("heading").inner_text() == "You are going a little fast"
    clock.advance(60)
    page.clock.run_for(61_000)
    page.get_by_role("button", name="Go back").click()
    assert page.get_by_label("Answer").input_value() == "eight pints"
    page.get_by_role("button", name="Send").click()
    assert page.get_by_role("heading").inner_text() == "eight pints"


@pytest.mark.parametrize("first", ["gate", "limiter"])
def test_everything_limited_and_guarded_makes_no_loop(
    site: Flask, clock: ManualClock, page: Page, first: str
) -> None:
    """An auth gate before every page, and every page over its limit: one redirect, and the page is there."""
    if first == "gate":
        site.before_request(gate)
    limiter = VenueLimit(site, storage=MemoryStorage(clock=clock))
    if first == "limiter":
        site.before_request(gate)
    limit = limiter.limit(FixedWindow(1, 60), name="all", key=by_ip).everywhere()
    limit.hit(subject="127.0.0.1")
    with run_app(site) as address:
        for path in ("/", "/login", "/nowhere"):
            response = page.goto(address + path)
            assert response is not None
            sent = response.request.redirected_from
            assert sent is not None
            assert (sent.url, sent.redirected_from) == (address + path, None)
            assert (response.status, page.locator("h1").inner_text()[:15]) == (429, "Too many people")
            assert page.evaluate("document.styleSheets[0].cssRules.length") > 0


def test_inline_the_page_is_where_it_was_asked_for(site: Flask, clock: ManualClock, page: Page) -> None:
    """No redirect: the address stays, a reload asks again, and gets what was asked for when it can."""
    site.config["VENUELIMIT_PAGE_MODE"] = "inline"
    limiter = VenueLimit(site, storage=MemoryStorage(clock=clock))
    limit = limiter.limit(FixedWindow(1, 60), name="rounds", key=by_ip)
    site.add_url_rule("/rounds", "rounds", limit(lambda: "<h1>The round</h1>"))
    limit.hit(subject="127.0.0.1")
    with run_app(site) as address:
        response = page.goto(f"{address}/rounds")
        assert response is not None
        assert (response.status, page.url) == (429, f"{address}/rounds")
        clock.advance(60)
        page.reload()
        assert page.get_by_role("heading").inner_text() == "The round"


def test_a_budget_that_nobody_can_count_says_so(site: Flask, page: Page) -> None:
    """With the storage away a budget is closed: a page that is no rate limit's."""
    site.config["VENUELIMIT_STORAGE_URI"] = "redis://127.0.0.1:1"
    limiter = VenueLimit(site)
    buy = limiter.limit(
        "5/minute", name="checkout", budget=True, key=lambda: "kim", message="Enough for now."
    )
    site.add_url_rule("/checkout", "checkout", buy(lambda: "bought"))
    with run_app(site) as address:
        response = page.goto(f"{address}/checkout")
        assert response is not None
        assert (response.status, page.url) == (503, f"{address}/checkout")
        said = page.inner_text("main")
        script = page.evaluate("fetch('/checkout').then((answer) => answer.json())")
    assert said.startswith("This is not possible right now\n")
    assert [word for word in ("429", "Too many", "fast", "0:", "Enough") if word in said] == []
    assert (script["status"], script["error"], script["limit"]) == (503, "limiter_unavailable", "checkout")
    assert script["retry_after"] >= 1
    assert "violated-policies" not in script

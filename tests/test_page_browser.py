"""The limit page as people meet it: a real browser, its clock moved, under ``default-src 'self'``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from flask import Response

from tests.refusing import refusing_app
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LINK = "[data-limit-way-back]"
TIME = "[data-limit-time]"
OVER = "[data-limit-over]"


@pytest.fixture(scope="module")
def quiz() -> Iterator[str]:
    """An address where everybody is to wait for 75 seconds."""
    app = refusing_app(wait=75.0, retry_jitter=0.0)

    @app.after_request
    def only_self(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = "default-src 'self'"
        return response

    with run_app(app) as address:
        yield f"{address}/quiz?round=2"


@pytest.fixture
def waiting(page: Page, quiz: str) -> Page:
    """The limit page, right after the refusal, in a browser whose clock the test moves."""
    page.clock.install()
    page.goto(quiz)
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 0.5)
    return page


def test_a_person_lands_on_the_page(page: Page, quiz: str) -> None:
    """The browser follows the redirect, and the page answers with the truth."""
    response = page.goto(quiz)
    assert response is not None
    assert response.status == 429
    assert "/too-many-requests?t=" in page.url
    assert page.get_by_role("heading", name="Too many people from this network at once").is_visible()


def test_the_page_counts_down(waiting: Page) -> None:
    """Minutes and seconds, in digits that need no translation."""
    minutes, _, seconds = waiting.inner_text(TIME).partition(":")
    assert minutes == "1"
    waiting.clock.run_for(30_000)
    assert waiting.inner_text(TIME) == f"0:{60 + int(seconds) - 30}"


def test_the_way_back_opens_when_the_wait_is_over(waiting: Page) -> None:
    """Until then the link leads nowhere and says so; then it leads back, and a live region tells."""
    assert waiting.get_attribute(LINK, "href") is None
    assert waiting.get_attribute(LINK, "aria-disabled") == "true"
    assert waiting.inner_text(OVER) == ""
    waiting.clock.run_for(76_000)
    assert waiting.get_attribute(LINK, "href") == "/quiz?round=2"
    assert waiting.get_attribute(LINK, "aria-disabled") is None
    assert waiting.inner_text(OVER) == "You can go on now."
    assert waiting.get_attribute(OVER, "aria-live") == "polite"


def test_a_slept_through_wait_is_over_at_once(waiting: Page) -> None:
    """A phone that was locked meanwhile counts by the clock, not by its ticks."""
    waiting.clock.fast_forward(600_000)
    assert waiting.get_attribute(LINK, "href") == "/quiz?round=2"


def test_without_javascript_nothing_is_missing(browser: Browser, quiz: str) -> None:
    """The wait in words, and a link that works."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(quiz)
    assert page.inner_text(TIME) == "75 seconds"
    assert page.get_attribute(LINK, "href") == "/quiz?round=2"
    context.close()


def test_nothing_on_the_page_breaks_a_strict_policy(page: Page, quiz: str) -> None:
    """The browser has nothing to complain of but the 429, and asks for nothing but page and assets."""
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(quiz)
    page.wait_for_load_state("networkidle")
    assert [text for text in complaints if "429" not in text] == []
    assert all("/too-many-requests" in url for url in asked[1:])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(browser: Browser, quiz: str, scheme: str) -> None:
    """Axe finds nothing, contrast included, in either colour scheme."""
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    page.goto(quiz)
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    context.close()


def test_dark_mode_is_dark(browser: Browser, quiz: str) -> None:
    """Nobody in a dim room is dazzled."""
    grounds = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
        page = context.new_page()
        page.goto(quiz)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        context.close()
    assert grounds == ["rgb(245, 243, 238)", "rgb(23, 21, 18)"]


def test_a_small_phone_shows_all_of_it(page: Page, quiz: str) -> None:
    """On 320 pixels nothing has to be scrolled sideways, and the link is big enough for a thumb."""
    page.set_viewport_size({"width": 320, "height": 560})
    page.goto(quiz)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    box = page.locator(LINK).bounding_box()
    assert box is not None
    assert box["height"] >= 44

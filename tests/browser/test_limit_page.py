"""The limit page as people meet it: a real browser, its clock moved, under ``default-src 'self'``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from flask import Flask, Response

from flask_venuelimit.page.texts import TEXTS
from tests.refusing import refusing_app
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LINK = "[data-limit-way-back]"
BACK = "[data-limit-back]"
TIME = "[data-limit-time]"
OVER = "[data-limit-over]"
BAR = "[data-limit-progress]"
MESSAGE = "That is a lot of answers to one question. Think it over for a moment."

#: What is wider than the screen, or holds what is wider than itself.
WIDER = """[...document.querySelectorAll("body, body *")].filter((element) =>
  element.getBoundingClientRect().right > innerWidth ||
  (getComputedStyle(element).display !== "inline" && element.scrollWidth > element.clientWidth)
).map((element) => element.outerHTML)"""

#: The states a visitor can find the page in; each waits for 75 seconds where it waits at all.
STATES: dict[str, dict[str, Any]] = {
    "network": {},
    "person": {"kind": "participant", "message": MESSAGE},
    "closed": {"wait": None},
    "unavailable": {"unavailable": True},
}


def strict(app: Flask) -> Flask:
    """The app under the strictest useful policy."""

    @app.after_request
    def only_self(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = "default-src 'self'"
        return response

    return app


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """What to open to find the page in each of its states."""
    with ExitStack() as running:
        bases = {
            state: running.enter_context(
                run_app(strict(refusing_app(**{"wait": 75.0, "retry_jitter": 0.0, **options})))
            )
            for state, options in STATES.items()
        }
        shown = {state: f"{base}/quiz?round=2" for state, base in bases.items()}
        yield {**shown, "plain": f"{bases['network']}/too-many-requests"}


@pytest.fixture
def quiz(addresses: dict[str, str]) -> str:
    """Where everybody on the network is to wait for 75 seconds."""
    return addresses["network"]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open an address in a browsing context with these options."""
    contexts = []

    def visit(url: str, **options: Any) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.goto(url)
        return page

    yield visit
    for context in contexts:
        context.close()


def stop_clock(page: Page) -> Page:
    """Let time stand still in all that the page opens from now on, until the test moves it."""
    page.clock.install(time=0)
    page.clock.pause_at(1)
    return page


@pytest.fixture
def waiting(page: Page, quiz: str) -> Page:
    """The limit page, right after the refusal, in a browser whose clock the test moves."""
    stop_clock(page).goto(quiz)
    return page


# -- the wait ------------------------------------------------------------------------------------


def test_a_person_lands_on_the_page(page: Page, quiz: str) -> None:
    """The browser follows the redirect, and the page answers with the truth."""
    response = page.goto(quiz)
    assert response is not None
    assert response.status == 429
    assert "/too-many-requests?t=" in page.url
    assert page.get_by_role("heading", name="Too many people from this network at once").is_visible()


def test_there_is_nothing_else_to_read(page: Page, quiz: str) -> None:
    """What happened, how long, one button, and the small print."""
    page.goto(quiz)
    lines = [line for line in page.inner_text("body").splitlines() if line.strip()]
    assert lines[:2] == ["Too many people from this network at once", "You can go on in"]
    assert lines[3:] == ["Try again", "HTTP 429 · join"]


def test_the_page_counts_down(waiting: Page) -> None:
    """Minutes and seconds, in digits that need no translation, and the button fills."""
    assert waiting.inner_text(TIME) == "1:15"
    waiting.clock.run_for(30_000)
    assert waiting.inner_text(TIME) == "0:45"
    assert waiting.evaluate(f"document.querySelector('{BAR}').position") == pytest.approx(0.4)


def test_the_button_wakes_when_the_wait_is_over(waiting: Page) -> None:
    """Until then it leads nowhere and says so; then it leads back, and a live region tells, politely."""
    assert waiting.get_attribute(LINK, "href") is None
    assert waiting.get_attribute(LINK, "aria-disabled") == "true"
    assert waiting.inner_text(OVER) == ""
    waiting.clock.run_for(75_000)
    assert waiting.get_attribute(LINK, "href") == "/quiz?round=2"
    assert waiting.get_attribute(LINK, "aria-disabled") is None
    assert waiting.inner_text(OVER) == "You can go on now."
    assert waiting.get_attribute(OVER, "aria-live") == "polite"


def test_the_button_does_not_move_when_it_wakes(waiting: Page) -> None:
    """A thumb that is already there does not press something else."""
    asleep = waiting.locator(LINK).bounding_box()
    waiting.clock.run_for(75_000)
    assert waiting.locator(LINK).bounding_box() == asleep
    assert not waiting.locator(TIME).is_visible()


def test_who_waits_on_the_button_is_still_on_it(waiting: Page) -> None:
    """By keyboard it can be reached asleep, and Enter leads back as soon as it is awake."""
    waiting.keyboard.press("Tab")
    waiting.keyboard.press("Enter")
    assert "/too-many-requests" in waiting.url
    waiting.clock.run_for(75_000)
    with waiting.expect_request("**/quiz?round=2"):
        waiting.keyboard.press("Enter")


def test_a_slept_through_wait_is_over_at_once(waiting: Page) -> None:
    """A phone that was locked meanwhile counts by the clock, not by its ticks."""
    waiting.clock.fast_forward(600_000)
    assert waiting.get_attribute(LINK, "href") == "/quiz?round=2"


def test_a_room_comes_back_over_some_seconds(browser: Browser) -> None:
    """Of phones that were refused together, each adds a part of its own to the wait, and none goes early."""
    woken = []
    with run_app(refusing_app(wait=5.0)) as address:
        for chance in (0.0, 0.5, 0.999):
            page = browser.new_page()
            page.add_init_script(f"Math.random = () => {chance}")
            stop_clock(page).goto(address)
            halves = 0
            while page.get_attribute(LINK, "href") is None:
                page.clock.run_for(500)
                halves += 1
            woken.append(halves / 2)
            page.close()
    assert woken == [5.0, 6.0, 7.0]


# -- the way back --------------------------------------------------------------------------------


def test_a_refused_form_leads_back_to_what_was_typed(page: Page, addresses: dict[str, str]) -> None:
    """There is no link to a form that was sent; the button goes back to the page that still holds it."""
    page.clock.install()
    page.goto(addresses["plain"])
    page.evaluate(
        "const form = document.createElement('form'); form.method = 'post'; form.action = '/quiz';"
        "document.body.append(form); form.submit()"
    )
    page.wait_for_url("**/too-many-requests?t=*")
    page.locator(BACK).click(force=True)
    assert page.locator(BACK).get_attribute("aria-disabled") == "true"
    assert not page.locator("[data-limit-hint]").is_visible()
    page.clock.run_for(77_000)
    page.locator(BACK).click()
    page.wait_for_url(addresses["plain"])


def test_without_javascript_nothing_is_missing(visit: Callable[..., Page], quiz: str) -> None:
    """The wait in words, and a link that works."""
    page = visit(quiz, java_script_enabled=False)
    assert page.inner_text(TIME) == "75 seconds"
    assert page.get_attribute(LINK, "href") == "/quiz?round=2"
    assert not page.locator(BAR).is_visible()


def test_where_limits_cannot_be_checked_there_is_nothing_to_count(
    page: Page, addresses: dict[str, str]
) -> None:
    """The fault is not the visitor's: no clock, no bar, and a button that works at once."""
    response = page.goto(addresses["unavailable"])
    assert response is not None
    assert response.status == 503
    assert page.get_by_role("heading").inner_text() == "This is not possible right now"
    assert page.locator(f"{TIME}, {BAR}, [aria-disabled]").count() == 0
    assert page.get_attribute(LINK, "href") == "/quiz?round=2"


# -- for everybody -------------------------------------------------------------------------------


def test_nothing_on_the_page_breaks_a_strict_policy(page: Page, quiz: str) -> None:
    """The browser has nothing to complain of but the 429, and asks for nothing but page and assets."""
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.clock.install()
    page.goto(quiz)
    page.wait_for_load_state("networkidle")
    page.clock.run_for(80_000)
    assert [text for text in complaints if "429" not in text] == []
    assert all(url.startswith(quiz.partition("/quiz")[0] + "/too-many-requests") for url in asked[1:])


@pytest.mark.parametrize("state", [*STATES, "plain"])
def test_the_page_is_accessible(page: Page, addresses: dict[str, str], state: str) -> None:
    """Axe finds nothing, contrast included: in every state, before and after the wait, by day and night."""
    page.emulate_media(reduced_motion="reduce")
    page.clock.install()
    page.goto(addresses[state])
    for seconds in (0, 100) if page.locator(BAR).count() else (0,):
        page.clock.fast_forward(seconds * 1_000)
        for dark in (False, True):
            page.emulate_media(color_scheme="dark" if dark else "light")
            results = Axe().run(page)
            assert results.violations_count == 0, results.generate_report()


def test_dark_mode_is_dark(page: Page, quiz: str) -> None:
    """Nobody in a dim room is dazzled."""
    page.goto(quiz)
    grounds = []
    for dark in (False, True):
        page.emulate_media(color_scheme="dark" if dark else "light")
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(245, 243, 238)", "rgb(23, 21, 18)"]


def test_nothing_moves_for_who_asked_for_stillness(page: Page, quiz: str) -> None:
    """Whatever glides is said to only for those who did not ask for reduced motion."""
    page.goto(quiz)
    moving = page.evaluate("""() => {
      const found = (rules) => [...rules].flatMap((rule) =>
        rule.cssRules?.length && rule.conditionText ? found(rule.cssRules).map(() => rule.conditionText)
          : /transition|animation/.test(rule.cssText) ? [""] : []);
      return [...document.styleSheets].flatMap((sheet) => found(sheet.cssRules));
    }""")
    assert moving == ["(prefers-reduced-motion: no-preference)"] * 2


@pytest.mark.parametrize("language", TEXTS)
def test_a_small_phone_shows_all_of_it(page: Page, addresses: dict[str, str], language: str) -> None:
    """On 320 pixels, with letters of twice the size as well, nothing is cut off or lies to the side."""
    page.set_viewport_size({"width": 320, "height": 560})
    page.set_extra_http_headers({"Accept-Language": language})
    for state in ("network", "person", "unavailable"):
        page.goto(addresses[state])
        for zoom in (1, 2):
            page.evaluate(f"document.documentElement.style.fontSize = '{zoom * 100}%'")
            assert page.evaluate(WIDER) == []
            box = page.locator(LINK).bounding_box()
            assert box is not None
            assert box["height"] >= 44


def test_a_german_reads_german(visit: Callable[..., Page], quiz: str) -> None:
    """Every word of it, the announcement included, and the document says so."""
    page = visit(quiz, locale="de-DE")
    assert page.get_attribute("html", "lang") == "de"
    assert page.get_by_role("heading").inner_text() == "Zu viele Leute auf einmal aus diesem Netz"
    assert page.title() == "Zu viele Leute auf einmal aus diesem Netz (HTTP 429)"
    assert page.locator(LINK).inner_text() == "Erneut versuchen"
    assert page.get_attribute(OVER, "data-text") == "Jetzt geht es weiter."

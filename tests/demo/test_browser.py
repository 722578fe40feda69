"""The quiz in a real browser: the scores come by themselves, and a refused page stays away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import urljoin

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.demo.pub import Pub
from tests.servers import run_app

Scheme = Literal["light", "dark"]


@pytest.fixture
def guest(pub: Pub, page: Page) -> Iterator[Page]:
    """A guest who has just joined, in a browser whose clock the test moves."""
    with run_app(pub.app) as base:
        page.clock.install()
        page.goto(base)
        page.get_by_label("Code").fill(pub.code.lower())
        page.get_by_label("Your name tonight").fill("Kim")
        page.get_by_role("button", name="Join").click()
        page.get_by_role("heading", name="You are in").wait_for()
        page.wait_for_load_state()
        yield page


def test_the_scores_come_by_themselves(pub: Pub, guest: Page) -> None:
    """Somebody who joins appears on the others' pages within ten seconds."""
    pub.guest("Al <b>")
    guest.clock.run_for(10_000)
    guest.get_by_role("cell", name="Al <b>").wait_for()
    assert guest.locator("tbody td").all_inner_texts() == ["Al <b>", "0", "Kim", "0"]


def test_the_question_comes_by_itself(pub: Pub, guest: Page) -> None:
    """When the host begins, the guests' pages show the question."""
    pub.ask_next(0)
    guest.clock.run_for(10_000)
    assert guest.locator("legend").inner_text() == "How many pints are in a gallon?"


def test_a_refused_page_stays_away_for_as_long_as_it_was_told(pub: Pub, guest: Page) -> None:
    """The page says why there are no new scores, and does not ask again before the wait is over."""
    state = guest.url + "/state"
    while guest.request.get(state).ok:
        pass
    asked: list[str] = []
    guest.on("request", lambda request: asked.append(request.url))
    guest.clock.run_for(10_000)
    guest.get_by_text("The scores do not change that fast. Next look in").wait_for()
    wait = int(guest.locator("#scoreboard-note").inner_text().split()[-2])
    guest.clock.run_for((wait - 1) * 1_000)
    assert asked == [state]
    guest.clock.run_for(1_000)
    assert asked == [state, state]


def test_six_names_in_a_minute_lead_to_the_limit_page(guest: Page) -> None:
    """What the demo's README promises: the sixth new name within a minute shows the page."""
    for number in range(6):
        guest.get_by_label("Change your name").fill(f"Kim {number}")
        guest.get_by_role("button", name="Change").click()
    guest.wait_for_url("**/too-many-requests?*")
    assert guest.get_by_role("heading").inner_text() == "Easy there"
    assert "Nobody can remember all those names." in guest.locator("main").inner_text()


def barriers(page: Page) -> list[str]:
    """What axe holds against a page: the element, and why."""
    found = Axe().run(page).response["violations"]
    return [f"{node['html']} {node['failureSummary']}" for rule in found for node in rule["nodes"]]


PAGES = ["/g/CODE", "/", "/host/login", "/host/sign-up", "/too-many-requests", "/nowhere"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_the_pages(pub: Pub, guest: Page, path: str, scheme: Scheme) -> None:
    """axe finds nothing that shuts anybody out: contrast, labels, structure, by day and by night."""
    guest.emulate_media(color_scheme=scheme)
    guest.goto(urljoin(guest.url, path.replace("CODE", pub.code)))
    assert barriers(guest) == []


@pytest.mark.parametrize("path", PAGES)
def test_pages_fit_a_small_phone(pub: Pub, guest: Page, path: str) -> None:
    """No page is wider than 320 pixels."""
    guest.set_viewport_size({"width": 320, "height": 560})
    guest.goto(urljoin(guest.url, path.replace("CODE", pub.code)))
    assert guest.evaluate("document.documentElement.scrollWidth") == 320

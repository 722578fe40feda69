"""Whom Chromium is when it asks: what it sends of itself for each way to ask, and what that is answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.venue import Answered, Site
from tests.servers import run_app, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGE = "**/too-many-requests?t=*"
FORM = """(method) => {
  const form = document.createElement("form");
  Object.assign(form, {action: "/limited/asked", method});
  document.body.append(form);
  form.submit();
}"""
ELEMENT = """([tag, attributes]) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  document.body.append(element);
}"""
ASKED = "/limited/asked"

#: What no person looks at, as script.
SCRIPTED = {
    "fetch": "fetch('/limited/asked')",
    "fetch for JSON": "fetch('/limited/asked', {headers: {Accept: 'application/json'}})",
    "fetch by POST": "fetch('/limited/asked', {method: 'POST', body: 'x'})",
    "XHR": "new Promise((end) => { const x = new XMLHttpRequest(); x.onloadend = end;"
    " x.open('GET', '/limited/asked'); x.send(); })",
    "beacon": "navigator.sendBeacon('/limited/asked', 'x')",
    "event source": "new EventSource('/limited/asked') && null",
    "module": "import('/limited/asked').catch(() => null)",
    "worker script": "navigator.serviceWorker.register('/limited/asked').catch(() => null)",
}
#: What no person looks at, as an element of a page.
EMBEDDED: dict[str, tuple[str, dict[str, str]]] = {
    "image": ("img", {"src": ASKED}),
    "stylesheet": ("link", {"rel": "stylesheet", "href": ASKED}),
    "script": ("script", {"src": ASKED}),
    "video": ("video", {"src": ASKED, "preload": "auto"}),
    "prefetch": ("link", {"rel": "prefetch", "href": ASKED}),
    "preload": ("link", {"rel": "preload", "as": "fetch", "crossorigin": "", "href": ASKED}),
}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Site, str]]:
    """A site that is over its limit, and its address."""
    site = Site()
    with run_app(site.app) as address:
        yield site, address


@pytest.fixture
def site(served: tuple[Site, str]) -> Site:
    """That site, which remembers nothing yet."""
    served[0].answered.clear()
    return served[0]


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Page:
    """One page for most of these tests, none of which leaves anything behind in it."""
    return browser.new_context().new_page()


@pytest.fixture(params=["127.0.0.1", "pub.example"])
def start(request: pytest.FixtureRequest, site: Site, served: tuple[Site, str], tab: Page) -> Page:
    """Its start page: once where Chromium says what it is doing, once on plain HTTP, where it does not."""
    tab.goto(served[1].replace("127.0.0.1", request.param))
    return tab


@pytest.fixture
def secure(site: Site, served: tuple[Site, str], page: Page) -> Page:
    """Its start page, in a secure context."""
    page.goto(served[1])
    return page


def answer(site: Site) -> Answered:
    """What the site answered."""
    wait_until(lambda: ASKED in site.answered, what="Chromium asks")
    return site.answered[ASKED]


def test_plain_http_really_says_nothing(site: Site, start: Page) -> None:
    """Fetch Metadata comes with secure contexts only; elsewhere Accept has to tell."""
    start.goto(start.url + ASKED[1:])
    assert answer(site).mode == (None if "pub.example" in start.url else "navigate")


def test_a_navigation_is_led_to_the_page(site: Site, start: Page) -> None:
    """An address that is typed or clicked."""
    start.evaluate("location.href = '/limited/asked'")
    start.wait_for_url(PAGE)
    assert answer(site).status == 303


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_form_is_led_to_the_page(site: Site, start: Page, method: str) -> None:
    """By 303, so that the browser asks for the page with GET."""
    start.evaluate(FORM, method)
    start.wait_for_url(PAGE)
    assert answer(site).status == 303
    assert start.get_by_role("heading", name="Too many people").is_visible()


def test_a_frame_shows_the_page(site: Site, start: Page) -> None:
    """A person looks at it, in a part of the window."""
    start.evaluate(ELEMENT, ["iframe", {"src": ASKED}])
    start.frame_locator("iframe").get_by_role("heading", name="Too many people").wait_for()
    assert answer(site).status == 303


@pytest.mark.parametrize("way", [way for way in SCRIPTED if way != "worker script"])
def test_a_script_is_refused_as_a_program(site: Site, start: Page, way: str) -> None:
    """A 429 in JSON, no redirect that looks like success."""
    start.evaluate(f"async () => {{ await ({SCRIPTED[way]}); }}")
    said = answer(site)
    assert (said.status, said.kind) == (429, "application/json")


@pytest.mark.parametrize("way", EMBEDDED)
def test_what_is_embedded_is_refused_as_a_program(site: Site, start: Page, way: str) -> None:
    """Nobody would see a page in an image's place."""
    start.evaluate(ELEMENT, list(EMBEDDED[way]))
    said = answer(site)
    assert (said.status, said.kind) == (429, "application/json")


def test_a_worker_s_script_is_refused_as_a_program(site: Site, secure: Page) -> None:
    """A service worker is not replaced by a page, which its browser would not take anyway."""
    secure.evaluate(f"async () => {{ await ({SCRIPTED['worker script']}); }}")
    assert (answer(site).status, answer(site).kind) == (429, "application/json")


def test_a_speculation_is_refused_as_a_program(site: Site, secure: Page) -> None:
    """A page fetched in case somebody goes there is a navigation, but nobody looks at it yet."""
    rules = '{"prefetch": [{"source": "list", "urls": ["/limited/asked"], "eagerness": "immediate"}]}'
    secure.evaluate(
        "(rules) => { const script = document.createElement('script'); script.type = 'speculationrules';"
        " script.text = rules; document.head.append(script); }",
        rules,
    )
    said = answer(site)
    assert (said.mode, said.status) == ("navigate", 429)
    assert said.purpose is not None
    assert said.purpose.startswith("prefetch")


def test_a_script_that_reads_only_html_reads_the_page(site: Site, start: Page) -> None:
    """As a 429: what swaps fragments sees that it was refused."""
    said: Any = start.evaluate(
        "async () => { const a = await fetch('/limited/asked', {headers: {Accept: 'text/html'}});"
        " return [a.status, a.redirected, a.headers.get('Retry-After'), await a.text()]; }"
    )
    if "pub.example" in start.url:
        # it says the very same as a person's browser of before Fetch Metadata, and ends in a 429 as well
        assert (said[0], said[1]) == (429, True)
    else:
        assert said[:3] == [429, False, "60"]
    assert "HTTP 429" in said[3]


def test_a_service_worker_passes_a_person_on_to_the_page(site: Site, secure: Page) -> None:
    """Through a worker that fetches whatever its page asks for, a navigation is still one."""
    secure.evaluate("navigator.serviceWorker.register('/worker.js')")
    secure.wait_for_function("navigator.serviceWorker.controller !== null")
    secure.goto(secure.url + ASKED[1:])
    assert "/too-many-requests?t=" in secure.url
    assert (answer(site).status, answer(site).mode) == (303, "navigate")
    assert secure.get_by_role("heading", name="Too many people").is_visible()


def test_a_service_worker_s_own_fetch_is_a_program_s(site: Site, secure: Page) -> None:
    """What a page fetches through its worker is refused in JSON."""
    secure.evaluate("navigator.serviceWorker.register('/worker.js')")
    secure.wait_for_function("navigator.serviceWorker.controller !== null")
    said = secure.evaluate("fetch('/limited/asked').then((answer) => answer.json())")
    assert (said["error"], said["retry_after"]) == ("rate_limited", 60)

"""htmx, the real script in its two major versions: a refusal never lands in the page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.venue import Site
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Page

#: What tells a page of an answer that is an error, and where the event holds the hint.
VERSIONS = {
    "2.0.11": ("htmx:responseError", "event.detail.xhr.getResponseHeader('Retry-After')"),
    "4.0.1": ("htmx:response:error", "event.detail.ctx.response.headers.get('Retry-After')"),
}


@pytest.fixture(scope="module")
def site() -> Site:
    """A site whose pages ask for a part of themselves, which is over its limit, at a click."""
    site = Site()
    for version, (event, hint) in VERSIONS.items():
        site.app.add_url_rule(
            f"/{version}",
            version.replace(".", "-"),
            lambda version=version, event=event, hint=hint: (
                f"""<!doctype html><title>htmx</title>
            <script src="/vendored/htmx-{version}.min.js"></script>
            <script>document.addEventListener("{event}", (event) => {{ document.title = {hint}; }});</script>
            <button hx-get="/limited/htmx-{version}" hx-target="#orders">look</button>
            <a href="/limited/boosted-{version}" hx-boost="true">all orders</a>
            <div id="orders">yesterday's</div>"""
            ),
        )
    return site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Its address."""
    with run_app(site.app) as address:
        yield address


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_part_leaves_the_page_as_it_is(site: Site, address: str, page: Page, version: str) -> None:
    """htmx is told in JSON, shows nothing of it, and hands the page's own script the hint."""
    page.goto(f"{address}/{version}")
    page.get_by_role("button").click()
    page.wait_for_function("document.title === '60'")
    said = site.answered[f"/limited/htmx-{version}"]
    assert (said.status, said.kind) == (429, "application/json")
    assert page.inner_text("#orders") == "yesterday's"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_boosted_link_leaves_the_page_as_it_is(
    site: Site, address: str, page: Page, version: str
) -> None:
    """A link that htmx follows is not led to the limit page, which it would take for the orders."""
    page.goto(f"{address}/{version}")
    page.get_by_role("link").click()
    page.wait_for_function("document.title === '60'")
    assert site.answered[f"/limited/boosted-{version}"].status == 429
    assert page.inner_text("#orders") == "yesterday's"

"""A page of one site that asks another one: what it may read of a refusal, under Flask-CORS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from flask_cors import CORS

from tests.browser.venue import Site
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parent.parent.parent / "docs" / "refusals.md"
#: What there is to read.
EXPOSED = [
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
]
ASK = """async ([url, options, names]) => {
  const answer = await fetch(url, options);
  return {status: answer.status, body: await answer.json(),
          fields: Object.fromEntries(names.map((name) => [name, answer.headers.get(name)]))};
}"""


def serving(expose: list[str]) -> Iterator[tuple[Site, str]]:
    site = Site()
    CORS(site.app, expose_headers=expose)
    with run_app(site.app) as address:
        yield site, address


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[Site, str]]:
    """A site that is over its limit, lets others ask, and exposes what the docs say."""
    yield from serving(EXPOSED)


@pytest.fixture(scope="module")
def silent_api() -> Iterator[tuple[Site, str]]:
    """The same, exposing nothing."""
    yield from serving([])


@pytest.fixture
def elsewhere(page: Page, api: tuple[Site, str]) -> Page:
    """A page of another site."""
    api[0].answered.clear()
    page.goto(api[1].replace("127.0.0.1", "pub.example"))
    return page


def asked(page: Page, api: tuple[Site, str], **options: Any) -> dict[str, Any]:
    """What a script on the page reads of the answer."""
    said: dict[str, Any] = page.evaluate(ASK, [f"{api[1]}/limited/orders", options, EXPOSED])
    return said


def test_a_script_from_elsewhere_reads_the_hint(api: tuple[Site, str], elsewhere: Page) -> None:
    """Retry-After and the limit state, besides status and body."""
    said = asked(elsewhere, api)
    assert (said["status"], said["body"]["retry_after"]) == (429, 60)
    assert said["fields"] == {
        "Retry-After": "60",
        "RateLimit": '"orders";r=0;t=60',
        "RateLimit-Policy": '"orders";q=1;w=60',
        "RateLimit-Limit": "1",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "60",
    }


def test_the_docs_say_to_expose_just_these() -> None:
    """Whoever copies the example exposes all of them."""
    example = DOCS.read_text().partition("expose_headers=[")[2].partition("]")[0]
    assert re.findall(r'"([\w-]+)"', example) == EXPOSED


def test_a_preflight_is_neither_refused_nor_charged(api: tuple[Site, str], elsewhere: Page) -> None:
    """A request that has to be asked for first reaches the limit, and reads its refusal."""
    options = {"method": "POST", "headers": {"Content-Type": "application/json"}, "body": "{}"}
    assert asked(elsewhere, api, **options)["status"] == 429
    # the first to ask was the preflight
    assert api[0].answered["/limited/orders"].status == 200


def test_without_exposing_them_a_script_reads_the_body_only(
    silent_api: tuple[Site, str], elsewhere: Page
) -> None:
    """What the docs say to expose is needed; the number is in the body all the same."""
    said = asked(elsewhere, silent_api)
    assert (said["status"], said["body"]["retry_after"]) == (429, 60)
    assert set(said["fields"].values()) == {None}

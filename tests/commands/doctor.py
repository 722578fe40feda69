"""What ``flask venuelimit doctor`` finds in an app, read as a program reads it."""

from __future__ import annotations

import json
from typing import Any

from flask import Flask

from tests.commands.terminal import typed


def findings(app: Flask) -> list[dict[str, Any]]:
    """All that is found."""
    answer = typed(app, "doctor", "--format", "json")
    found: list[dict[str, Any]] = json.loads(answer.text)["findings"]
    assert answer.code == any(each["severity"] != "note" for each in found)
    return found


def told(app: Flask, code: str) -> list[str]:
    """What is found under a code."""
    return [each["what"] for each in findings(app) if each["code"] == code]

"""Apps that are drilled, and what is read of it."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask

from flask_venuelimit import VenueLimit, by_user
from tests.commands.terminal import Typed, typed


def forbidden(*_: object, **__: object) -> Any:
    """What a drill must not call."""
    pytest.fail("a drill called something of the app's own")


def venue(storage: Any = None, **settings: Any) -> tuple[Flask, VenueLimit]:
    """An app without folders whose limits count in memory, unless a storage is given."""
    app = Flask("venue", template_folder=None, static_folder=None)
    named = {f"VENUELIMIT_{name}": value for name, value in settings.items()}
    app.config.update({"SECRET_KEY": "long and random", "VENUELIMIT_STORAGE_URI": "memory://", **named})
    return app, VenueLimit(app, storage=storage)


def quiz(**settings: Any) -> tuple[Flask, Blueprint]:
    """A venue with a limit on a view of a blueprint, which is not registered yet."""
    app, limiter = venue(**settings)
    bp = Blueprint("quiz", __name__)
    limited = limiter.limit("50/minute", name="answers", key=by_user)(forbidden)
    bp.add_url_rule("/round/<int:number>", "round", limited)
    return app, bp


def drilled(app: Flask, *words: str) -> Typed:
    """Type ``flask venuelimit drill``."""
    return typed(app, "drill", *words)


def verdicts(answer: Typed) -> list[str]:
    """The verdicts in the order of the checks, shortened to their first word."""
    lines = answer.lines[:-2]
    assert all(line.startswith(("ok ", "FAILED ", "not driven ")) for line in lines), answer.text
    return [line.split()[0] for line in lines]


def said(answer: Typed, check: str, limit: str) -> str:
    """What one check of one limit said, its verdict in front."""
    (line,) = [line for line in answer.lines if f" {check} {limit}: " in line]
    return line.replace(f" {check} {limit}: ", ": ")

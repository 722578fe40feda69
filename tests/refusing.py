"""Decisions as storage would answer them, and a small app that refuses, for tests of what comes after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flask import Flask, request
from jinja2 import DictLoader
from werkzeug.test import TestResponse
from werkzeug.wrappers import Response

from flask_venuelimit.decisions import Cell, Charge, Decision, Receipt, Record, counted
from flask_venuelimit.page import views
from flask_venuelimit.policies import Policy, SlidingWindow
from flask_venuelimit.refusals import LimiterUnavailable, RateLimited, Refusal, register_handler, render
from flask_venuelimit.settings import Settings

SETTINGS = Settings(salt=b"a salt for tests, and for nothing else")
NAVIGATE = {"Sec-Fetch-Mode": "navigate"}
CHROME_ACCEPT = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,"
    "application/signed-exchange;v=b3;q=0.7"
)


def decided(
    name: str = "join",
    policy: Policy | None = None,
    *,
    remaining: int = 0,
    wait: float | None = 0.0,
    reset: float = 60.0,
    cost: int = 1,
    shadow: bool = False,
    kind: str = "ip",
) -> Decision:
    """What a limit decides; a ``wait`` of 0 seconds means that it admits, and has charged ``cost``."""
    micros = None if wait is None else round(wait * 1_000_000)
    record = Record(micros == 0, remaining, micros, round(reset * 1_000_000))
    charge = Charge((Cell("key", policy or SlidingWindow(150, per=60)),), cost)
    return counted(name, f"{kind}:1a2b3c4d", Receipt(charge, (record,), micros == 0), shadow=shadow)


def refusing_app(
    wait: float | None = 3.0,
    message: str | None = None,
    unavailable: bool = False,
    kind: str = "ip",
    **settings: Any,
) -> Flask:
    """An app that refuses everything but the limit page, as the extension would wire it."""
    app = Flask("refusing", template_folder=None, static_folder=None)
    chosen = replace(SETTINGS, **settings)
    app.register_blueprint(views.blueprint(chosen))

    def answer(refusal: Refusal) -> Response:
        assert isinstance(refusal, RateLimited | LimiterUnavailable)
        return render(refusal, request, chosen)

    def page() -> Response | None:
        return views.respond(request, chosen)

    def refuse() -> None:
        if unavailable:
            raise LimiterUnavailable(wait, decided(wait=wait, kind=kind))
        raise RateLimited(decided(wait=wait, kind=kind), chosen.retry_jitter, message)

    app.before_request(page)
    app.before_request(refuse)
    register_handler(app, answer)
    return app


def followed(app: Flask, path: str = "/quiz?round=2", language: str = "") -> TestResponse:
    """Go where a refusal sends a person."""
    client = app.test_client()
    return client.get(client.get(path, headers=NAVIGATE).location, headers={"Accept-Language": language})


def overriding(source: str) -> Flask:
    """An app that refuses, with a limit page of its own."""
    app = refusing_app()
    app.jinja_loader = DictLoader({"venuelimit/too_many_requests.html": source})
    return app

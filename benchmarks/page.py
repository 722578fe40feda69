"""What the limit page costs to render, beside a bare view in the same run.

    python -m benchmarks.page [--rounds 25] [--requests 400]

Every request goes through the WSGI callable. Rounds are interleaved and the fastest of each is shown, in this
process's processor time: the page shall cost less than a bare view and 0.3 ms. Below stands what each
language sends, page, style, script and icon together: under 15 KB.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from flask import Flask
from jinja2 import DictLoader
from werkzeug.test import EnvironBuilder

from flask_venuelimit import FixedWindow, MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.page.texts import TEXTS

PAGE = "/too-many-requests"
ASSETS = ("page.css", "page.js", "icon.svg")
NAVIGATING = {"Sec-Fetch-Mode": "navigate", "Accept-Language": "de-AT,de;q=0.9,en;q=0.8"}
OVERRIDE = '{% extends "venuelimit/limit_page.html" %}{% block heading %}Last orders{% endblock %}'
BUDGET = 300.0


def site(**config: Any) -> Flask:
    """Make an app with a bare view, and a view that is over its limit."""
    app = Flask("site", static_folder=None, template_folder=None)
    app.config.update(SECRET_KEY="benchmark", **config)
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/bare", "bare", lambda: "ok")
    limit = limiter.limit(FixedWindow(1, 3_600), name="orders", key=by_ip, message="One order at a time.")
    app.add_url_rule("/orders", "orders", limit(lambda: "ok"))
    limit.hit(subject="127.0.0.1")
    return app


def bare() -> Flask:
    """Make an app with a bare view and nothing else."""
    app = Flask("bare", static_folder=None, template_folder=None)
    app.add_url_rule("/bare", "bare", lambda: "ok")
    return app


def overriding() -> Flask:
    """Make the same site with a limit page of its own."""
    app = site()
    app.jinja_loader = DictLoader({"venuelimit/too_many_requests.html": OVERRIDE})
    return app


def asking(app: Flask, path: str) -> Callable[[], int]:
    """Give what sends one request and returns how many bytes come back."""
    where, _, query = path.partition("?")
    builder = EnvironBuilder(where, query_string=query, headers=list(NAVIGATING.items()))
    builder.environ_base = {"REMOTE_ADDR": "127.0.0.1"}
    environ = builder.get_environ()

    def ask() -> int:
        body = app.wsgi_app(environ.copy(), lambda *start: lambda data: None)
        size = sum(map(len, body))
        getattr(body, "close", lambda: None)()
        return size

    return ask


def location(app: Flask) -> str:
    """Give the page's address as a refusal sends a person there."""
    answer = app.test_client().get("/orders", headers=NAVIGATING)
    return str(answer.location)


def measure(subjects: dict[str, Callable[[], int]], rounds: int, requests: int) -> dict[str, float]:
    """Give the microseconds of one request of each subject: the fastest round's."""
    best = dict.fromkeys(subjects, float("inf"))
    for _ in range(rounds):
        for name, ask in subjects.items():
            begun = time.process_time()
            for _ in range(requests):
                ask()
            best[name] = min(best[name], (time.process_time() - begun) / requests * 1e6)
    return best


def weights() -> dict[str, int]:
    """Give the bytes of the page with everything it loads, by language."""
    app, found = site(), {}
    client, where = app.test_client(), location(app)
    assets = sum(len(client.get(f"{PAGE}/static/{name}").data) for name in ASSETS)
    for language in TEXTS:
        found[language] = assets + len(client.get(where, headers={"Accept-Language": language}).data)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args()
    app, own, inline = site(), overriding(), site(VENUELIMIT_PAGE_MODE="inline")
    subjects = {
        "bare view": asking(bare(), "/bare"),
        "page, visited plainly": asking(app, PAGE),
        "page, after a refusal": asking(app, location(app)),
        "page, an app's own": asking(own, location(own)),
        "refusal, redirect": asking(app, "/orders"),
        "refusal, page inline": asking(inline, "/orders"),
    }
    found = measure(subjects, options.rounds, options.requests)
    for name, micros in found.items():
        over = micros - found["bare view"]
        verdict = "" if name == "bare view" else f"  {over:+7.1f}   {'ok' if over < BUDGET else 'too slow'}"
        print(f"{name:24} {micros:8.1f} µs{verdict}")
    print()
    for language, size in weights().items():
        print(f"{language}  {size:6} bytes")


if __name__ == "__main__":
    main()

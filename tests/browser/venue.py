"""A small site that is over its limit, and a note of what it answered to each address."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from flask import Flask, Response, request

from flask_venuelimit import FixedWindow, MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock

VENDORED = Path(__file__).parent.parent / "vendored"
WORKER = """
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => event.respondWith(fetch(event.request)));
"""


class Answered(NamedTuple):
    """What was answered, and what the browser had said of its request."""

    status: int
    kind: str | None
    mode: str | None
    accept: str | None
    purpose: str | None


class Site:
    """A site whose ``/limited/...`` is over its limit for everybody, and whose ``/`` is an empty page.

    :ivar answered: the first answer to each path that was asked for.
    """

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.app = Flask("site", static_folder=None, template_folder=None)
        self.app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)
        self.limiter = VenueLimit(self.app, storage=MemoryStorage(clock=self.clock))
        self.answered: dict[str, Answered] = {}
        limit = self.limiter.limit(FixedWindow(1, 60), name="orders", key=by_ip)
        self.app.add_url_rule("/", "start", lambda: "<!doctype html><title>start</title><body>start")
        self.app.add_url_rule("/limited/<name>", "limited", limit(lambda name: name), methods=["GET", "POST"])
        self.app.add_url_rule("/worker.js", "worker", lambda: Response(WORKER, mimetype="text/javascript"))
        self.app.add_url_rule("/vendored/<name>", "vendored", self._vendored)
        self.app.after_request(self._note)
        limit.hit(subject="127.0.0.1")

    def _note(self, response: Response) -> Response:
        asked = request.headers
        self.answered.setdefault(
            request.path,
            Answered(
                response.status_code,
                response.mimetype,
                asked.get("Sec-Fetch-Mode"),
                asked.get("Accept"),
                asked.get("Sec-Purpose") or asked.get("Purpose"),
            ),
        )
        return response

    def _vendored(self, name: str) -> Response:
        return Response((VENDORED / Path(name).name).read_bytes(), mimetype="text/javascript")

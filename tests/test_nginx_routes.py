"""What nginx counts for a limit, the app would have charged to it."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from flask import Flask
from werkzeug.routing import BaseConverter

from flask_venuelimit import Limit, VenueLimit, by_ip
from flask_venuelimit.nginx.routes import Covered, covered_by

METHODS = ("GET", "HEAD", "POST", "PUT", "OPTIONS")
PATHS = [
    *("/", "/join", "/join/", "/Join", "/joins", "/a.b", "/aXb", "/static/x.css", "/robots.txt", "/nowhere"),
    *("/games/7", "/games/-7", "/games/new", "/games/x/edit", "/games/7/edit", "/games/7/8", "/games/a/b/c"),
    *("/pages/1/2", "/pages/x", "/pages/x/b", "/c/d", "/x/d", "/any/one", "/any/four", "/v1.5", "/v7", "/vx"),
    *("/too-many-requests", "/too-many-requests/static/page.css", "/ä", "/q+r", "/$", '/"', "/upper/ABC/x"),
]


class Upper(BaseConverter):
    """Takes capitals, and slashes too."""

    regex = "[A-Z/]+"
    part_isolating = False


def view(**_: Any) -> str:
    """Whatever is asked for."""
    return "ok"


class Venue:
    """An app under one limit, which is put on some of its routes."""

    def __init__(self, **terms: Any) -> None:
        self.app = Flask("venue", template_folder=None)
        self.app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
        self.app.url_map.converters["upper"] = Upper
        self.limiter = VenueLimit(self.app)
        self.limit: Limit = self.limiter.limit("99999/minute", name="it", key=by_ip, **terms)

    def route(self, *rules: str, limited: bool = False, **options: Any) -> Venue:
        """Add routes; ``limited``: under the limit."""
        for rule in rules:
            target = self.limit(view) if limited else view
            self.app.add_url_rule(rule, f"{rule}{options}", target, **options)
        return self

    def told(self) -> Covered:
        """What nginx is told of the limit."""
        with self.app.app_context():
            (limit,) = self.limiter.manifest()["limits"]
        return covered_by(limit, self.app.url_map)

    def charges(self, method: str, path: str) -> bool:
        """Whether a request is charged."""
        with self.app.test_client() as client:
            client.open(path, method=method)
            return bool(self.limiter.decisions)


def counts(it: Covered, method: str, path: str) -> bool:
    """Whether nginx counts a request."""
    found = (entry.counts for entry in it.entries if re.search(entry.pattern, f"{method} {path}"))
    return next(found, it.default)


def differing(venue: Venue) -> tuple[set[str], set[str]]:
    """The requests that nginx counts and the app does not charge, and the other way around."""
    it = venue.told()
    asked = [(f"{method} {path}", method, path) for method, path in product(METHODS, PATHS)]
    counted = {text for text, method, path in asked if counts(it, method, path)}
    charged = {text for text, method, path in asked if venue.charges(method, path)}
    return counted - charged, charged - counted


VENUES = {
    "literal": Venue().route("/join", "/a.b", "/ä", "/q+r", "/$", '/"', limited=True).route("/"),
    "by method": Venue()
    .route("/join", methods=["GET"])
    .route("/join", limited=True, methods=["POST", "PUT"]),
    "methods of the limit": Venue(methods={"POST"}).route("/join", limited=True, methods=["GET", "POST"]),
    "dynamic": Venue().route("/games/<int:id>", "/games/<id>/edit", "/v<float:n>", limited=True),
    "a more special one beside": Venue().route("/games/<id>", limited=True).route("/games/new"),
    "signed": Venue().route("/games/<int(signed=True):id>", limited=True),
    "same path, other method": Venue()
    .route("/games/<id>", methods=["GET"])
    .route("/games/<id>", limited=True, methods=["POST"]),
    "under a catch-all": Venue().route("/games/<id>", limited=True).route("/<path:rest>"),
    "a catch-all": Venue().route("/<path:rest>", limited=True).route("/games/<id>", "/join"),
    "crosswise": Venue().route("/<x>/d", limited=True).route("/c/<y>"),
    "a path beside a segment": Venue()
    .route("/<x>/b/c", "/pages/<x>/b", limited=True)
    .route("/pages/<path:p>"),
    "a path that begins deeper": Venue().route("/<x>/x/b", limited=True).route("/pages/<path:p>"),
    "any": Venue().route('/any/<any("one", "two"):n>', limited=True),
    "a path with more behind it": Venue().route("/games/<x>/<y>", limited=True).route("/games/<path:p>/edit"),
    "a path behind a number": Venue().route("/games/<x>/edit", limited=True).route("/games/<int:i>/<path:p>"),
    "custom": Venue().route("/upper/<upper:x>", limited=True),
    "custom beside": Venue().route("/upper/<a>/<b>", limited=True).route("/upper/<upper:x>/x"),
    "slash at the end": Venue().route("/join/", limited=True),
}
EVERYWHERE = {
    "everywhere": Venue().route("/", "/join", "/games/<id>"),
    "with methods": Venue(methods={"POST", "PUT"}).route("/", "/join", methods=["GET", "POST"]),
    "of GET": Venue(methods={"GET"}).route("/", "/join"),
}
for each in EVERYWHERE.values():
    each.limit.everywhere()


@pytest.mark.parametrize("name", [*VENUES, *EVERYWHERE])
def test_what_nginx_counts_is_charged(name: str) -> None:
    """It is never the tighter one: no request counts that the app leaves alone."""
    venue = {**VENUES, **EVERYWHERE}[name]
    assert differing(venue)[0] == set()


@pytest.mark.parametrize(
    "name", ["literal", "by method", "methods of the limit", "dynamic", "any", *EVERYWHERE]
)
def test_what_is_charged_counts(name: str) -> None:
    """And where it can tell it is as tight, save for what asks what may be done."""
    missed = differing({**VENUES, **EVERYWHERE}[name])[1]
    assert [each for each in missed if not each.startswith("OPTIONS ")] == []

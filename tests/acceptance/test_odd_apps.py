"""Apps as they are found: contexts inside contexts, views of every sort, factories that run again and again."""

from __future__ import annotations

from flask import Flask

from flask_venuelimit import FixedWindow, Limit, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, left, statuses


def venue(limiter: VenueLimit, name: str = "venue") -> Flask:
    """An app of its own under a limiter, with a store of its own."""
    app = Flask(name, template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://", VENUELIMIT_RETRY_JITTER=0)
    limiter.init_app(app)
    return app


# -- contexts ------------------------------------------------------------------------------------


def _two_apps() -> tuple[Limit, VenueLimit, Flask, Flask]:
    limiter = VenueLimit()
    limit = limiter.limit(FixedWindow(5, 60), name="it", key=by_ip)
    return limit, limiter, venue(limiter, "asked"), venue(limiter, "other")


def test_another_app_s_context_inside_a_request_counts_in_that_app() -> None:
    """A view that pushes the context of another app charges by hand there, and not where it was asked."""
    limit, _, asked, other = _two_apps()

    @asked.get("/")
    def home() -> str:
        with other.app_context():
            limit.hit(subject=C)
        return "ok"

    assert statuses(caller(asked), "/", 2) == [200, 200]
    with asked.app_context():
        assert left(limit) == 5
    with other.app_context():
        assert left(limit) == 3


def test_another_app_s_context_inside_a_request_knows_no_request() -> None:
    """Whose request it is says the request: another app has no decisions and marks nothing in it."""
    limit, limiter, asked, other = _two_apps()

    @asked.get("/")
    @limiter.failures("5/minute", name="failures")
    def home() -> str:
        with other.app_context():
            limiter.mark_failure()
            return str((limiter.decisions, limiter.client_address(), limit.hit().subject[:17]))

    answer = caller(asked).get("/")
    assert answer.text == "([], None, 'no-request-scope:')"
    assert answer.headers["RateLimit"] == '"failures";r=5;t=60'


def test_a_context_that_is_only_pushed_is_no_first_request(app: Flask, warnings: list[str]) -> None:
    """Building a URL before the views are there says nothing about limits that cover nothing yet."""
    limiter = VenueLimit(app, storage=MemoryStorage())
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    forgotten = limiter.limit("5/minute", name="forgotten", key=by_ip)
    with app.test_request_context():
        pass
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(caller(app), "/", 2)
    assert len(warnings) == 1
    assert repr(forgotten.name) in warnings[0]

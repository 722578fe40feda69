"""Flask-RESTX, which puts itself between Flask and its error handlers: a refusal stays a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, got_request_exception
from flask_restx import Api, Resource
from werkzeug.test import TestResponse

from flask_venuelimit import FixedWindow, MemoryStorage, RateLimited, VenueLimit, by_ip
from tests.acceptance.callers import NAVIGATING, caller, items

Ask = Callable[..., TestResponse]


def resource(limiter: VenueLimit, point: str) -> type[Resource]:
    """A resource with room for one request a minute, decided at one of the three points."""
    key: Any = by_ip if point == "front" else lambda: "everybody"
    limit = limiter.limit(FixedWindow(1, 60), name="it", key=key)

    def get(self: Resource) -> dict[str, str]:
        if point == "guard":
            with limit.guard():
                return {"said": "ok"}
        return {"said": "ok"}

    decorators = [] if point == "guard" else [limit]
    return type("Orders", (Resource,), {"get": get, "decorators": decorators})


@pytest.fixture(params=["front", "view", "guard"])
def ask(request: pytest.FixtureRequest, app: Flask, limiter: VenueLimit) -> Ask:
    """Ask a resource that has no room left."""
    Api(app).add_resource(resource(limiter, request.param), "/orders")

    def ask(**headers: str) -> TestResponse:
        client = caller(app)
        assert client.get("/orders").get_json() == {"said": "ok"}
        return client.get("/orders", headers={name.replace("_", "-"): each for name, each in headers.items()})

    return ask


def test_a_program_is_refused_as_everywhere(ask: Ask) -> None:
    """The status, the body with the hint, one Retry-After and the limit state."""
    answer = ask()
    assert (answer.status_code, answer.headers.getlist("Retry-After")) == (429, ["60"])
    assert (answer.get_json()["error"], answer.get_json()["retry_after"]) == ("rate_limited", 60)
    assert items(answer, "RateLimit") == {"it": {"r": 0, "t": 60}}
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_person_is_sent_to_the_page(ask: Ask) -> None:
    """Who opens an API's address in a browser is shown what everybody is shown."""
    answer = ask(**NAVIGATING)
    assert (answer.status_code, answer.location.partition("?")[0]) == (303, "/too-many-requests")


def test_a_refusal_is_no_error_of_the_app(app: Flask, ask: Ask) -> None:
    """What reports exceptions is not told of each refused request."""
    told: list[object] = []
    with got_request_exception.connected_to(lambda sender, **named: told.append(named), sender=app):
        assert ask().status_code == 429
    assert told == []


@pytest.mark.parametrize("point", ["front", "view", "guard"])
@pytest.mark.parametrize("late", [False, True])
def test_its_catch_all_makes_no_500_of_a_refusal(point: str, late: bool) -> None:
    """``@api.errorhandler(Exception)`` is not meant for refusals, whichever extension came first."""
    app, limiter = Flask("orders"), VenueLimit(storage=MemoryStorage())
    app.secret_key = "s"
    if not late:
        limiter.init_app(app)
    api = Api(app)
    if late:
        limiter.init_app(app)
    api.errorhandler(Exception)(lambda error: ({"message": "broken"}, 500))
    api.add_resource(resource(limiter, point), "/orders")
    client = caller(app)
    assert [client.get("/orders").status_code for _ in range(2)] == [200, 429]


@pytest.mark.parametrize("handled", [RateLimited, 429])
def test_an_app_s_own_handler_answers_for_resources_too(app: Flask, ask: Ask, handled: Any) -> None:
    """It is registered on the app, where Flask looks."""
    app.register_error_handler(handled, lambda error: ({"mine": error.retry_after}, 429))
    assert ask().get_json() == {"mine": 60}


def test_its_other_errors_are_its_own(app: Flask, limiter: VenueLimit) -> None:
    """What a resource raises otherwise is handled as it was before."""
    api = Api(app)
    get = limiter.limit("9/minute", name="it", key=by_ip)(lambda self: api.abort(409, "sold out"))
    api.add_resource(type("Orders", (Resource,), {"get": get}), "/orders")
    answer = caller(app).get("/orders")
    assert (answer.status_code, answer.get_json()) == (409, {"message": "sold out"})
    assert items(answer, "RateLimit") == {"it": {"r": 8, "t": 60}}

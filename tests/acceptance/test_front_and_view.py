"""When a limit is decided: at the front, at the end of the hooks, or where its decorator stands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from flask import Blueprint, Flask

from flask_venuelimit import Key, MemoryStorage, RedisStorage, Stage, VenueLimit, by_ip
from tests.acceptance.callers import caller, statuses
from tests.acceptance.decorators import careless, known_late, locked, wrapped

Storage = MemoryStorage | RedisStorage


# -- the front -----------------------------------------------------------------------------------


def test_a_front_limit_is_decided_before_hooks_registered_earlier(app: Flask, storage: Storage) -> None:
    """A refused request reaches none of the app's before-request hooks, even those registered first."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("before init_app"))
    limiter = VenueLimit(app, storage=storage)
    app.before_request(lambda: seen.append("after init_app"))
    limiter.limit("1/minute", name="global", key=by_ip).everywhere()
    assert statuses(caller(app), "/", 2) == [404, 429]
    assert seen == ["before init_app", "after init_app"]


def test_a_front_limit_is_decided_before_a_blueprint_s_hooks(app: Flask, limiter: VenueLimit) -> None:
    """The hooks of blueprints come after the front as well."""
    bp, seen = Blueprint("quiz", __name__), list[str]()
    bp.before_app_request(lambda: seen.append("app-wide"))
    bp.before_request(lambda: seen.append("own"))

    @bp.get("/")
    @limiter.limit("1/minute", key=by_ip)
    def home() -> str:
        return "ok"

    app.register_blueprint(bp)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert seen == ["app-wide", "own"]


def test_a_decorator_s_front_limit_is_decided_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """Looked up through __wrapped__, a decorator's limit refuses before any hook and outer decorator runs."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))

    @app.get("/")
    @wrapped
    @limiter.limit("1/minute", key=by_ip)
    @wrapped
    def home() -> str:
        return "ok"

    assert statuses(caller(app), "/", 2) == [200, 429]
    assert seen == ["hook"]


def test_a_locked_door_in_front_does_not_spare_the_front_limit(app: Flask, limiter: VenueLimit) -> None:
    """An outer decorator that answers 401 comes after a FRONT limit: guessing is counted."""

    @app.get("/")
    @locked
    @limiter.limit("2/minute", key=by_ip)
    def home() -> str:
        return "ok"

    assert statuses(caller(app), "/", 3) == [401, 401, 429]


def test_a_key_s_stage_is_what_it_says(app: Flask, limiter: VenueLimit) -> None:
    """A key of one's own that can be asked at the front is asked there."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))
    desk = Key("desk", lambda: "desk 1", stage=Stage.FRONT)

    @app.get("/")
    @limiter.limit("1/minute", key=desk)
    def home() -> str:
        return "ok"

    assert statuses(caller(app), "/", 2) == [200, 429]
    assert seen == ["hook"]


def test_a_hidden_front_limit_is_decided_where_it_stands(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """Behind a decorator without functools.wraps a FRONT limit still holds, and one warning says so."""

    @app.get("/")
    @careless
    @limiter.limit("1/minute", name="hidden", key=by_ip)
    def home() -> str:
        return "ok"

    assert statuses(caller(app), "/", 3) == [200, 429, 429]
    (warning,) = [said for said in warnings if "functools.wraps" in said]
    assert "hidden" in warning


# -- the view ------------------------------------------------------------------------------------


def test_a_decorator_s_view_limit_is_decided_where_it_stands(app: Flask, limiter: VenueLimit) -> None:
    """What an outer decorator turns away is not charged to a VIEW limit below it."""
    limit = limiter.limit("2/minute", name="inside", key=known_late)
    app.add_url_rule("/locked", view_func=locked(limit(lambda: "ok")))
    app.add_url_rule("/open", "open", limit(lambda: "ok"))
    assert statuses(caller(app), "/locked", 5) == [401] * 5
    assert statuses(caller(app), "/open", 3) == [200, 200, 429]


def test_an_outer_decorator_may_tell_who_is_asking(app: Flask, limiter: VenueLimit) -> None:
    """A VIEW key sees what an outer decorator found out."""
    from flask import g, request

    def sign_in(view: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(view)
        def wrapper() -> Any:
            g.who = request.args["who"]
            return view()

        return wrapper

    app.add_url_rule("/", "home", sign_in(limiter.limit("1/minute", key=lambda: g.who)(lambda: "ok")))
    client = caller(app)
    assert [client.get(f"/?who={who}").status_code for who in "aabb"] == [200, 429, 200, 429]


@pytest.mark.parametrize("cover", ["blueprint", "everywhere"])
def test_a_wide_view_limit_is_decided_after_all_hooks(app: Flask, limiter: VenueLimit, cover: str) -> None:
    """A VIEW limit on a blueprint or on everything runs right before the view, when the hooks have run."""
    seen: list[str] = []
    bp = Blueprint("quiz", __name__)

    def note(what: str) -> str:
        seen.append(what)
        return what

    limit = limiter.limit("1/minute", name="late", key=lambda: note("key"))
    limit(bp) if cover == "blueprint" else limit.everywhere()
    bp.before_request(lambda: seen.append("blueprint's hook"))
    bp.add_url_rule("/", "home", lambda: note("view"))
    app.register_blueprint(bp)
    app.before_request(lambda: seen.append("app's hook"))
    assert statuses(caller(app), "/", 1) == [200]
    assert seen == ["app's hook", "blueprint's hook", "key", "view"]
    assert statuses(caller(app), "/", 1) == [429]


@pytest.mark.parametrize("cover", ["blueprint", "everywhere", "decorator"])
def test_a_view_limit_is_not_decided_where_a_hook_answered(
    app: Flask, limiter: VenueLimit, cover: str
) -> None:
    """What a before-request hook answers is not charged to a VIEW limit."""
    bp = Blueprint("quiz", __name__)
    limit = limiter.limit("1/minute", name="late", key=known_late)
    view = limit(lambda: "ok") if cover == "decorator" else lambda: "ok"
    if cover == "blueprint":
        limit(bp)
    elif cover == "everywhere":
        limit.everywhere()
    bp.add_url_rule("/", "home", view)
    bp.before_request(lambda: ("not now", 503))
    app.register_blueprint(bp)
    assert statuses(caller(app), "/", 3) == [503] * 3
    assert limit.peek(subject="somebody").remaining == 1


def test_a_view_limit_everywhere_covers_unknown_urls(app: Flask, limiter: VenueLimit) -> None:
    """404s and 405s count, though no view will run."""
    app.add_url_rule("/form", "form", lambda: "ok", methods=["POST"])
    limiter.limit("2/minute", key=known_late).everywhere()
    client = caller(app)
    assert [client.get(path).status_code for path in ("/no", "/form", "/nowhere")] == [404, 405, 429]


def test_an_inner_decorator_still_sees_the_arguments(app: Flask, limiter: VenueLimit) -> None:
    """A limited view is given its URL's values, and keeps its name and docstring."""

    @app.get("/<int:number>/<word>")
    @limiter.limit("2/minute")
    def page(number: int, word: str) -> str:
        """Two values."""
        return word * number

    assert caller(app).get("/3/ab").text == "ababab"
    assert (page.__name__, page.__doc__) == ("page", "Two values.")

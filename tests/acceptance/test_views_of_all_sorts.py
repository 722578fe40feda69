"""Views as apps have them: blueprints in blueprints, classes, coroutines, careless decorators."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from flask import Blueprint, Flask
from flask.views import MethodView, View

from flask_venuelimit import FixedWindow, Key, Stage, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, items, statuses
from tests.acceptance.decorators import careless, known_late, wrapped

KEYS = pytest.mark.parametrize("key", [by_ip, known_late], ids=["front", "view"])


# -- blueprints in blueprints, more than once ----------------------------------------------------


def nested(app: Flask) -> tuple[Blueprint, Blueprint]:
    """An inner blueprint in an outer one, which the app has at ``/one`` and at ``/two``."""
    outer, inner = Blueprint("outer", __name__), Blueprint("inner", __name__, url_prefix="/inner")
    for bp in (outer, inner):
        bp.add_url_rule("/", "home", lambda: "ok")
    outer.register_blueprint(inner)
    app.register_blueprint(outer, url_prefix="/one")
    app.register_blueprint(outer, url_prefix="/two", name="again")
    return outer, inner


@KEYS
def test_a_limit_on_a_blueprint_holds_wherever_it_is(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """On the outer one it covers both registrations and what is nested in each, in one bucket by its name."""
    outer, _ = nested(app)
    limiter.limit("3/minute", name="outer", key=key)(outer)
    client = caller(app)
    paths = ("/one/", "/two/", "/one/inner/", "/two/inner/", "/two/")
    assert [client.get(path).status_code for path in paths] == [200, 200, 200, 429, 429]


@KEYS
def test_a_limit_on_the_inner_blueprint_leaves_the_outer_alone(
    app: Flask, limiter: VenueLimit, key: Any
) -> None:
    """It covers the nested views under both names, and nothing else."""
    _, inner = nested(app)
    limiter.limit("1/minute", name="inner", key=key)(inner)
    client = caller(app)
    paths = ("/one/inner/", "/two/inner/", "/one/", "/two/")
    assert [client.get(path).status_code for path in paths] == [200, 429, 200, 200]


@KEYS
def test_without_a_name_each_registration_counts_for_itself(
    app: Flask, limiter: VenueLimit, key: Any
) -> None:
    """Each endpoint has its own bucket, called by its full name."""
    outer, _ = nested(app)
    limiter.limit("1/minute", key=key)(outer)
    client = caller(app)
    paths = ("/one/", "/two/", "/one/inner/", "/two/inner/")
    names = [list(items(client.get(path), "RateLimit")) for path in paths]
    assert names == [["outer.home"], ["again.home"], ["outer.inner.home"], ["again.inner.home"]]
    assert [client.get(path).status_code for path in paths] == [429] * 4


def test_an_inner_blueprint_in_two_outer_ones_is_covered_by_each(app: Flask, limiter: VenueLimit) -> None:
    """What is nested in two places has the limits of the place where it was asked for."""
    inner = Blueprint("inner", __name__, url_prefix="/inner")
    inner.add_url_rule("/", "home", lambda: "ok")
    for name in ("tight", "wide"):
        outer = Blueprint(name, __name__, url_prefix=f"/{name}")
        outer.register_blueprint(inner)
        limiter.limit(FixedWindow(1 if name == "tight" else 2, 60), name=name, key=by_ip)(outer)
        app.register_blueprint(outer)
    client = caller(app)
    assert statuses(client, "/tight/inner/", 2) + statuses(client, "/wide/inner/", 3) == [
        *(200, 429),
        *(200, 200, 429),
    ]


def test_an_inner_blueprint_may_be_exempt_wherever_it_is(app: Flask, limiter: VenueLimit) -> None:
    """Exempt once is exempt under every name; the outer one stays limited."""
    outer, inner = nested(app)
    limiter.limit("0/minute", name="outer", key=by_ip)(outer)
    limiter.exempt(inner)
    client = caller(app)
    paths = ("/one/inner/", "/two/inner/", "/one/", "/two/")
    assert [client.get(path).status_code for path in paths] == [200, 200, 429, 429]


# -- classes -------------------------------------------------------------------------------------


@KEYS
def test_a_class_and_its_methods_may_have_limits_each(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """``decorators`` covers all methods in one bucket, a method's own limit comes on top."""

    class Form(MethodView):
        decorators: ClassVar = [limiter.limit("3/minute", name="class", key=key), wrapped]

        def get(self) -> str:
            return "form"

        @limiter.limit("1/minute", name="post", key=key)
        def post(self) -> str:
            return "sent"

    app.add_url_rule("/", view_func=Form.as_view("form"))
    client = caller(app)
    assert statuses(client, "/", 2, method="POST") == [200, 429]
    assert set(items(client.get("/"), "RateLimit")) == {"class"}


@KEYS
def test_methods_of_a_class_may_be_coroutines(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A limited ``async def`` method is awaited like any other."""

    class Form(MethodView):
        init_every_request = False

        @limiter.limit("1/minute", name="get", key=key)
        async def get(self) -> str:
            return "form"

        async def post(self) -> str:
            return "sent"

    app.add_url_rule("/", view_func=Form.as_view("form"))
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert statuses(caller(app), "/", 2, method="POST") == [200, 200]


@KEYS
def test_a_class_served_twice_is_limited_in_both_places(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """Two views of one class share its named limit."""

    class Home(View):
        decorators: ClassVar = [limiter.limit("2/minute", name="class", key=key)]

        def dispatch_request(self) -> str:
            return "ok"

    for name in ("one", "two"):
        app.add_url_rule(f"/{name}", view_func=Home.as_view(name))
    assert [statuses(caller(app), path, 1)[0] for path in ("/one", "/two", "/one")] == [200, 200, 429]


def test_a_method_of_a_parent_class_is_limited_in_its_children(app: Flask, limiter: VenueLimit) -> None:
    """What a class inherits is limited as it was written."""

    class Base(MethodView):
        @limiter.limit("1/minute", name="base", key=by_ip)
        def get(self) -> str:
            return "ok"

    class Child(Base):
        def post(self) -> str:
            return "sent"

    app.add_url_rule("/", view_func=Child.as_view("child"))
    assert statuses(caller(app), "/", 2) + statuses(caller(app), "/", 1, method="POST") == [200, 429, 200]


# -- careless decorators -------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["class", "method", "function"])
@KEYS
def test_a_careless_decorator_hides_a_limit_and_takes_nothing_from_it(
    app: Flask, limiter: VenueLimit, warnings: list[str], place: str, key: Any
) -> None:
    """Without functools.wraps it is decided where it stands; only a FRONT limit is warned about, once."""
    limit = limiter.limit("2/minute", name="hidden", key=key)

    class Home(View):
        decorators: ClassVar = [limit, careless] if place == "class" else []

        def dispatch_request(self) -> str:
            return "ok"

    if place == "method":
        Home.dispatch_request = careless(limit(Home.dispatch_request))  # type: ignore[method-assign]
    view = careless(limit(lambda: "ok")) if place == "function" else Home.as_view("home")
    app.add_url_rule("/", "home", view)
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert len([said for said in warnings if "functools.wraps" in said]) == (key is by_ip)
    assert len(warnings) == (key is by_ip)


def test_a_hidden_failure_limit_gives_back(app: Flask, limiter: VenueLimit) -> None:
    """Behind a careless decorator a success costs nothing either."""
    view = careless(limiter.failures("1/minute", name="hidden")(lambda status: ("answer", status)))
    app.add_url_rule("/<int:status>", "answer", view)
    client = caller(app)
    assert [client.get(path).status_code for path in ("/200", "/200", "/401", "/200")] == [200, 200, 401, 429]


def test_a_hidden_limit_that_is_wide_as_well_is_charged_once(app: Flask, limiter: VenueLimit) -> None:
    """Decided at the front by what can be seen, it is not decided again where it is found."""
    limit = limiter.limit("2/minute", name="wide", key=by_ip).everywhere()
    app.add_url_rule("/", "home", careless(limit(lambda: "ok")))
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


# -- coroutines ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", Stage)
def test_whatever_is_asked_may_be_a_coroutine_in_every_sort_of_view(
    app: Flask, limiter: VenueLimit, stage: Stage
) -> None:
    """Key, cost and predicate, asked before a plain view, a coroutine and a class's method alike."""

    async def who() -> str:
        return C

    async def two() -> int:
        return 2

    async def no() -> bool:
        return False

    limiter.exempt_if(no)
    key = Key("who", who, stage=stage)
    limit = limiter.limit("6/minute", name="it", key=key, cost=two, unless=no)

    async def later() -> str:
        return "ok"

    class Home(MethodView):
        @limit
        async def get(self) -> str:
            return "ok"

    app.add_url_rule("/plain", "plain", limit(lambda: "ok"))
    app.add_url_rule("/later", "later", limit(later))
    app.add_url_rule("/class", view_func=Home.as_view("class"))
    client = caller(app)
    assert [client.get(f"/{path}").status_code for path in ("plain", "later", "class")] == [200] * 3
    assert [client.get(f"/{path}").status_code for path in ("plain", "later", "class")] == [429] * 3

"""What a limit covers, and what is charged where several limits or several points meet."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from flask import Blueprint, Flask
from flask.views import MethodView, View

from flask_venuelimit import VenueLimit, by_bearer, by_ip
from tests.acceptance.callers import A, C, caller, items, room, statuses
from tests.acceptance.decorators import known_late, locked

# -- all or none ---------------------------------------------------------------------------------


def test_limits_of_one_point_charge_all_or_none(app: Flask, limiter: VenueLimit) -> None:
    """What one limit of the front refuses is not charged to the others there."""
    wide = limiter.limit("9/minute", name="wide", key=by_ip).everywhere()
    narrow = limiter.limit("1/minute", name="narrow", key=by_ip)
    app.add_url_rule("/", "home", narrow(lambda: "ok"))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert wide.peek(subject=C).remaining == 8


def test_stacked_decorators_charge_all_or_none(app: Flask, limiter: VenueLimit) -> None:
    """The same holds for VIEW limits of directly stacked decorators, whichever refuses."""
    one = limiter.limit("9/minute", name="one", key=known_late)
    two = limiter.limit("1/minute", name="two", key=known_late)
    app.add_url_rule("/", "home", one(two(one(lambda: "ok"))))
    assert statuses(caller(app), "/", 3) == [200, 429, 429]
    assert one.peek(subject="somebody").remaining == 8


def test_a_refusal_at_a_later_point_leaves_earlier_charges(app: Flask, limiter: VenueLimit) -> None:
    """A FRONT limit stays charged when a VIEW limit refuses."""
    front = limiter.limit("9/minute", name="front", key=by_ip).everywhere()
    view = limiter.limit("1/minute", name="view", key=known_late)
    app.add_url_rule("/", "home", view(lambda: "ok"))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert front.peek(subject=C).remaining == 5


def test_of_several_refusing_limits_the_longest_wait_is_told(app: Flask, limiter: VenueLimit) -> None:
    """Whoever waits as long as the refusal says is not refused again by its neighbour."""
    short = limiter.limit("1/minute", name="short", key=by_ip)
    long = limiter.limit("1/hour", name="long", key=by_ip)
    app.add_url_rule("/", "home", short(long(lambda: "ok")))
    client = caller(app)
    client.get("/")
    told = client.get("/").get_json()
    assert (told["limit"], told["violated-policies"]) == ("long", ["short", "long"])


# -- covered twice -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_limit_that_covers_twice_charges_once_at_its_most_specific_cost(
    app: Flask, limiter: VenueLimit, key: Any
) -> None:
    """Decorator, blueprint and everywhere: one charge, at the decorator's cost."""
    bp = Blueprint("quiz", __name__)
    limit = limiter.limit("10/minute", name="shared", key=key).everywhere()
    limit(bp)
    bp.add_url_rule("/dear", "dear", limit(cost=5)(lambda: "ok"))
    bp.add_url_rule("/plain", "plain", lambda: "ok")
    app.register_blueprint(bp)
    client = caller(app)
    rooms = [room(client.get(path), "shared") for path in ("/dear", "/plain", "/nowhere")]
    assert rooms == [5, 4, 3]


def test_the_nearest_cost_counts(app: Flask, limiter: VenueLimit) -> None:
    """A blueprint's cost outranks the app's, and a view's outranks both."""
    bp = Blueprint("quiz", __name__)
    limit = limiter.limit("99/minute", name="shared", key=by_ip).everywhere(cost=2)
    assert limit(cost=3)(bp) is bp
    bp.add_url_rule("/dear", "dear", limit(cost=5)(lambda: "ok"))
    bp.add_url_rule("/plain", "plain", lambda: "ok")
    app.register_blueprint(bp)
    rooms = [room(caller(app).get(path), "shared") for path in ("/dear", "/plain", "/nowhere")]
    assert rooms == [94, 91, 89]


def test_a_limit_that_covers_twice_is_decided_at_the_first_point(app: Flask, limiter: VenueLimit) -> None:
    """A VIEW limit on the view and on everything is decided at the end of the hooks, not inside."""
    limit = limiter.limit("2/minute", name="shared", key=known_late).everywhere()
    app.add_url_rule("/", "home", locked(limit(lambda: "ok")))
    assert statuses(caller(app), "/", 3) == [401, 401, 429]


def test_limits_add_up(app: Flask, limiter: VenueLimit) -> None:
    """A decorator never replaces a wider limit: both decide, both are shown."""
    bp = Blueprint("quiz", __name__)
    limiter.limit("3/minute", name="app", key=by_ip).everywhere()
    limiter.limit("4/minute", name="bp", key=by_ip)(bp)
    bp.add_url_rule("/", "home", limiter.limit("5/minute", name="view", key=by_ip)(lambda: "ok"))
    app.register_blueprint(bp)
    client = caller(app)
    assert set(items(client.get("/"), "RateLimit")) == {"app", "bp", "view"}
    assert statuses(client, "/", 3) == [200, 200, 429]


# -- all sorts of views --------------------------------------------------------------------------


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_view_class_is_limited_by_its_decorators(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A limit in a class's ``decorators`` covers all it answers."""

    class Home(View):
        decorators: ClassVar = [limiter.limit("2/minute", key=key)]

        def dispatch_request(self) -> str:
            return "ok"

    app.add_url_rule("/", view_func=Home.as_view("home"))
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_method_of_a_view_class_is_limited_alone(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A limit on ``post`` leaves ``get`` alone."""

    class Form(MethodView):
        def get(self) -> str:
            return "form"

        @limiter.limit("1/minute", name="send", key=key)
        def post(self) -> str:
            return "sent"

    app.add_url_rule("/", view_func=Form.as_view("form"))
    client = caller(app)
    assert statuses(client, "/", 3, method="POST") == [200, 429, 429]
    assert statuses(client, "/", 3) == [200] * 3


def test_a_front_limit_on_a_method_is_decided_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """Looked up through view_class, a method's FRONT limit refuses before any hook runs."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))

    class Form(MethodView):
        @limiter.limit("1/minute", key=by_ip)
        def get(self) -> str:
            return "form"

    app.add_url_rule("/", view_func=Form.as_view("form"))
    assert statuses(caller(app), "/", 1, method="HEAD") == [200]
    assert statuses(caller(app), "/", 1) == [429]
    assert seen == ["hook"]


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_an_async_view_is_limited(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A view that is a coroutine function stays one, and is limited like any other."""

    @app.get("/")
    @limiter.limit("2/minute", key=key)
    async def home() -> str:
        return "ok"

    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_a_blueprint_s_limit_covers_its_nested_ones(app: Flask, limiter: VenueLimit) -> None:
    """A limit on a blueprint covers its views and those of blueprints inside it, and no others."""
    outer, inner, other = (Blueprint(name, __name__, url_prefix=f"/{name}") for name in ("o", "i", "x"))
    limiter.limit("3/minute", name="bp", key=by_ip)(outer)
    for bp in (outer, inner, other):
        bp.add_url_rule("/", "home", lambda: "ok")
    outer.register_blueprint(inner)
    app.register_blueprint(outer)
    app.register_blueprint(other)
    client = caller(app)
    asked = [client.get(path).status_code for path in ("/o/", "/o/i/", "/o/i/", "/o/i/", "/o/", "/x/")]
    assert asked == [200, 200, 200, 429, 429, 200]


def test_a_blueprint_may_be_limited_after_its_registration(app: Flask, limiter: VenueLimit) -> None:
    """Whether the limit or the registration comes first makes no difference."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", lambda: "ok")
    app.register_blueprint(bp)
    limiter.limit("2/minute", name="late", key=by_ip)(bp)
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_a_blueprint_registered_twice_is_limited_under_both_names(app: Flask, limiter: VenueLimit) -> None:
    """A named limit on a blueprint is one bucket for all its registrations."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", lambda: "ok")
    limiter.limit("2/minute", name="bp", key=by_ip)(bp)
    app.register_blueprint(bp, url_prefix="/one")
    app.register_blueprint(bp, url_prefix="/two", name="again")
    client = caller(app)
    assert [client.get(path).status_code for path in ("/one/", "/two/", "/one/")] == [200, 200, 429]


def test_two_callers_do_not_wait_for_each_other(app: Flask, limiter: VenueLimit) -> None:
    """Who is refused at one address is no matter at another."""
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app, C), "/", 2) == [200, 429]
    assert statuses(caller(app, A), "/", 2) == [200, 429]


def test_a_claimed_credential_is_known_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """A bearer token is read before the app's hooks: it is claimed, not checked."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_bearer)(lambda: "ok"))
    assert statuses(caller(app), "/", 2, headers={"Authorization": "Bearer t"}) == [200, 429]
    assert seen == ["hook"]

"""What ``flask venuelimit doctor`` finds in an app's limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from flask import Blueprint, Flask, abort

from flask_venuelimit import (
    MemoryStorage,
    TokenBucket,
    VenueLimit,
    by_bearer,
    by_ip,
    by_participant,
    by_user,
)
from tests.commands.doctor import findings, told

ANYTHING = (
    "These limits have no per_address, so while they know nobody a whole building gets one person's number: "
)


@pytest.fixture
def limiter(app: Flask) -> VenueLimit:
    """A limiter that counts in memory, and has no limits yet."""
    return VenueLimit(app, storage=MemoryStorage())


def view() -> str:
    """Answer."""
    return "ok"


def opaque(function: Callable[[], str]) -> Any:
    """Decorate without ``functools.wraps``."""
    return lambda: function()


def test_an_app_without_limits_is_found(app: Flask, limiter: VenueLimit) -> None:
    """It counts nothing."""
    assert told(app, "VL201") == ["No limit is declared."]


def test_a_decorator_above_the_route_is_found(app: Flask, limiter: VenueLimit) -> None:
    """The route leads to the function without it."""

    @limiter.limit("5/minute", name="login", key=by_ip)
    @app.post("/login")
    def login() -> str:
        return "welcome"

    (what,) = told(app, "VL202")
    assert what.startswith(
        "The limit 'login' decorates test_a_decorator_above_the_route_is_found.<locals>.login,"
    )
    assert told(app, "VL204") == []


def test_it_is_found_though_the_limit_covers_something_else(app: Flask, limiter: VenueLimit) -> None:
    """What is misplaced once may stand right elsewhere, where nobody would warn."""
    limit = limiter.limit("5/minute", name="login", key=by_ip)
    app.add_url_rule("/other", "other", limit(lambda: "ok"))
    limit(app.get("/view")(view))
    assert len(told(app, "VL202")) == 1


def test_two_views_of_one_name_are_not_taken_for_each_other(app: Flask, limiter: VenueLimit) -> None:
    """A limited one and another, as modules have them."""
    limit = limiter.limit("5/minute", name="login", key=by_ip)
    app.add_url_rule("/limited", "limited", limit(view))
    app.add_url_rule("/plain", "plain", view)
    assert findings(app) == []


def test_a_front_limit_that_is_hidden_is_found(app: Flask, limiter: VenueLimit) -> None:
    """Behind a decorator that nobody can look through it is decided late."""
    app.add_url_rule("/", "home", opaque(limiter.limit("5/minute", name="home", key=by_ip)(view)))
    (what,) = told(app, "VL203")
    assert what.startswith("The limit 'home' on home is behind a decorator without functools.wraps")
    assert told(app, "VL204") == []


def test_a_view_limit_that_is_hidden_is_where_it_should_be(app: Flask, limiter: VenueLimit) -> None:
    """It would be decided there anyway."""
    limiter.identify_user(lambda: None)
    limit = limiter.limit("5/minute", name="home", key=by_user, per_address="100/minute")
    app.add_url_rule("/", "home", opaque(limit(view)), methods=["GET", "POST"])
    assert findings(app) == []


def test_a_hidden_limit_that_is_wide_as_well_is_decided_in_time(app: Flask, limiter: VenueLimit) -> None:
    """Everywhere is further out than the decorator."""
    limit = limiter.limit("5/minute", name="wide", key=by_ip).everywhere()
    app.add_url_rule("/", "home", opaque(limit(view)))
    assert findings(app) == []


def test_a_decorator_that_wraps_hides_nothing(app: Flask, limiter: VenueLimit) -> None:
    """The limit is seen through it."""

    def clear(function: Callable[[], str]) -> Callable[[], str]:
        return wraps(function)(lambda: function())

    app.add_url_rule("/", "home", clear(limiter.limit("5/minute", name="home", key=by_ip)(view)))
    assert findings(app) == []


@pytest.mark.parametrize("methods", [None, {"POST"}], ids=["nowhere", "wrong method"])
def test_a_limit_that_covers_nothing_is_noted(
    app: Flask, limiter: VenueLimit, methods: set[str] | None
) -> None:
    """It may be asked by hand; or be forgotten, or be for methods that its route does not take."""
    limit = limiter.limit("5/minute", name="forgotten", key=by_ip, methods=methods)
    if methods:
        app.add_url_rule("/", "home", limit(view))
    assert told(app, "VL204") == ["The limit 'forgotten' covers no request that can be seen from here."]


def test_what_covers_another_app_of_the_limiter_is_not_noted(app: Flask, limiter: VenueLimit) -> None:
    """Declarations are for all apps; state is each app's own."""
    other = Flask("other")
    other.config.update(SECRET_KEY="long and random")
    limiter.init_app(other)
    other.add_url_rule("/", "home", limiter.limit("5/minute", name="home", key=by_ip)(view))
    assert told(app, "VL204") == []


@pytest.mark.parametrize(
    "terms",
    [{"on_error": "allow"}, {"shadow": True}, {"per_process": True}],
    ids=lambda terms: str(*terms),
)
def test_an_open_budget_is_found(app: Flask, limiter: VenueLimit, terms: dict[str, Any]) -> None:
    """One that says of itself that it may be spent over."""
    limiter.limit("5/minute", name="mails", key=by_ip, budget=True, **terms).everywhere()
    (what,) = told(app, "VL205")
    assert what.startswith(f"The budget 'mails' has {next(iter(terms))}=")


def test_a_budget_as_it_comes_is_closed(app: Flask, limiter: VenueLimit) -> None:
    """It refuses while nobody can count."""
    limiter.limit("5/minute", name="mails", key=by_ip, budget=True).everywhere()
    assert findings(app) == []


def test_limits_that_only_watch_are_noted(app: Flask, limiter: VenueLimit) -> None:
    """So that they are not forgotten."""
    limiter.limit("5/minute", name="trial", key=by_ip, shadow=True).everywhere()
    assert told(app, "VL206") == ["These limits have shadow=True, and never refuse: 'trial'."]


def test_closed_doors_are_noted(app: Flask, limiter: VenueLimit) -> None:
    """A limit of 0, and one that the app's settings make so."""
    limiter.limit("0/minute", name="door", key=by_ip).everywhere()
    assert told(app, "VL207") == ["These limits are 0, and refuse everybody: 'door'."]


def test_invented_tokens_are_found(app: Flask, limiter: VenueLimit) -> None:
    """A limit by what callers claim stops nobody, unless something counts their address."""
    api = limiter.limit(TokenBucket(20, rate=240, per=60), name="api", key=by_bearer)
    app.add_url_rule("/export", "export", api(view))
    assert told(app, "VL208") == [
        "The limit 'api' counts claimed tokens, and nothing counts the address of whoever invents them, at "
        "export."
    ]
    limiter.failures("60/minute", name="auth-failures").everywhere()
    assert told(app, "VL208") == []


def test_a_persons_number_for_a_building_is_noted(app: Flask, limiter: VenueLimit) -> None:
    """A limit by person without per_address, where anybody may come."""
    app.add_url_rule("/answers", "answers", limiter.limit("10/minute", name="answer")(view))
    assert told(app, "VL209") == [f"{ANYTHING}'answer' (answers)."]


def test_behind_a_gate_it_is_not(app: Flask, limiter: VenueLimit) -> None:
    """Who is unknown does not get past a blueprint's hooks, or another decorator, so it does not matter."""
    limit = limiter.limit("10/minute", name="answer", key=by_participant)
    inside = Blueprint("inside", __name__)
    inside.before_request(lambda: abort(401))
    inside.add_url_rule("/a", "a", limit(view))
    app.register_blueprint(inside)
    gate = wraps(view)(lambda: abort(401))
    gate.__wrapped__ = limit(view)
    app.add_url_rule("/b", "b", gate)
    assert findings(app) == []


def test_a_building_smaller_than_a_person_is_noted(app: Flask, limiter: VenueLimit) -> None:
    """per_address is for many."""
    limit = limiter.limit("10/minute", name="answer", per_address="5/minute")
    app.add_url_rule("/answers", "answers", limit(view))
    assert told(app, "VL210") == [
        "The limit 'answer' admits 10/minute of a person, and 5/minute of a whole building in which nobody "
        "is known."
    ]


def test_a_room_of_a_few_is_noted(app: Flask, limiter: VenueLimit) -> None:
    """What an address may do has to be enough for more than a handful of people."""
    limiter.limit("300/minute", name="global", key=by_ip).everywhere()
    poll = limiter.limit("60/minute", name="poll", key=by_participant, per_address="600/minute")
    app.add_url_rule("/scores", "scores", poll(view))
    assert told(app, "VL211") == [
        "The limit 'global' has room for 5 people of one address who use all that 'poll' gives them."
    ]


def test_policies_told_at_each_request_are_nobodys_fault(app: Flask, limiter: VenueLimit) -> None:
    """What they will be is not known from here."""
    limit = limiter.limit(lambda: "1/minute", name="told")
    app.add_url_rule("/", "home", limit(view))
    limiter.limit(lambda: "1/minute", name="told too", key=by_ip).everywhere()
    assert findings(app) == []

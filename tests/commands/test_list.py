"""``flask venuelimit list`` and ``manifest``: what is limited, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from flask import Blueprint, Flask

from flask_venuelimit import (
    Concurrency,
    ConfigurationError,
    Key,
    Stage,
    TokenBucket,
    VenueLimit,
    by_ip,
    by_participant,
    by_user,
)
from tests.commands.terminal import Typed, typed

Flasks = Callable[..., Typed]


def test_a_list_says_how_much_for_whom_when_and_where(flask: Flasks) -> None:
    """A line a limit, in the order of declaration."""
    answer = flask("list")
    assert answer.code == 0
    assert answer.lines == [
        "limit policy key stage covers",
        "global 1200/minute ip front everywhere",
        "answer 10/minute (1000/minute for an address) participant front POST answers",
    ]


def test_columns_line_up(flask: Flasks) -> None:
    """So that one can read down them."""
    lines = flask("list").text.splitlines()
    assert (
        len({line.index(word) for line, word in zip(lines, ("key", "ip", "participant"), strict=True)}) == 1
    )


def test_an_app_without_limits_says_so(app: Flask) -> None:
    """Nothing is no table."""
    VenueLimit(app, storage=None)
    assert typed(app, "list").lines[-1] == "No limits are declared."


def test_limits_that_do_not_count_are_marked(app: Flask) -> None:
    """Without storage the list is shown all the same, with a word on it."""
    VenueLimit(app).limit("5/minute", name="any").everywhere()
    assert typed(app, "list").lines[-1] == "Limiting is off: none of these counts."


def test_a_limit_that_covers_nothing_is_listed(limiter: VenueLimit, flask: Flasks) -> None:
    """It may be asked by hand, or be forgotten; who looks will see."""
    limiter.limit([TokenBucket(20, rate=4), Concurrency(2)], name="by hand", key=by_user)
    assert flask("list").lines[-1] == (
        "by hand token bucket of 20, 4 per second; 2 at once, lease 60 s user front nothing"
    )


def test_costs_and_blueprints_are_told(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """A blueprint's views one by one, with their methods and what they cost."""
    api = limiter.limit("60/minute", name="api", key=Key("tenant", lambda: "t", stage=Stage.VIEW))
    blueprint = Blueprint("v1", __name__, url_prefix="/v1")
    blueprint.add_url_rule("/a", "a", lambda: "a", methods=["GET", "POST"])
    blueprint.add_url_rule("/b", "b", api(cost=5)(lambda: "b"))
    blueprint.add_url_rule("/c", "c", api(cost=lambda: 2)(lambda: "c"))
    app.register_blueprint(api(blueprint))
    assert flask("list").lines[-1] == (
        "api 60/minute tenant view GET|POST v1.a, GET v1.b (cost 5), GET v1.c (cost told at each request)"
    )


def test_a_manifest_is_json(flask: Flasks, limiter: VenueLimit, app: Flask) -> None:
    """What the command prints is what the method returns."""
    with app.app_context():
        assert json.loads(flask("manifest").text) == limiter.manifest()


def test_a_manifest_tells_all_of_a_limit(app: Flask, limiter: VenueLimit) -> None:
    """How much in which time, for whom, at what weight, and what becomes of it while storage fails."""
    with app.app_context():
        answer = limiter.manifest()["limits"][1]
    assert answer == {
        "name": "answer",
        "named": True,
        "policies": [{"policy": "10/minute", "kind": "sliding-window", "quota": 10, "window": 60}],
        "per_address": [{"policy": "1000/minute", "kind": "sliding-window", "quota": 1000, "window": 60}],
        "key": "participant",
        "stage": "front",
        "cost": 1,
        "methods": None,
        "per_method": False,
        "unless": False,
        "per_process": False,
        "refunds": False,
        "budget": False,
        "shadow": False,
        "on_error": "allow",
        "covers": [{"endpoint": "answers", "methods": ["POST"], "cost": 1}],
    }


def test_a_manifest_has_the_apps_own_numbers(app: Flask) -> None:
    """What VENUELIMIT_LIMITS says of a limit is what counts, and what is told."""
    app.config.update(VENUELIMIT_LIMITS={"any": "7/hour"})
    limiter = VenueLimit(app)
    limiter.limit("5/minute", name="any").everywhere()
    limiter.limit(lambda: "5/minute", name="told", key=by_participant)
    with app.app_context():
        limits = limiter.manifest()["limits"]
    assert [each["policy"] for each in limits[0]["policies"]] == ["7/hour"]
    assert limits[1]["policies"] is None


def test_an_everywhere_limit_covers_no_limit_page(app: Flask, limiter: VenueLimit) -> None:
    """The page and its assets are exempt from the start, and not told as covered."""
    with app.app_context():
        covered = {place["endpoint"] for place in limiter.manifest()["limits"][0]["covers"]}
    assert covered == {"answers", "unmatched"}


def test_a_limiter_without_an_app_has_no_manifest() -> None:
    """Nor can anybody's standing be told: it says what is missing."""
    with pytest.raises(ConfigurationError, match="no app is at hand that this VenueLimit serves"):
        VenueLimit().manifest()


def test_each_app_of_a_limiter_has_a_manifest_of_its_own(limiter: VenueLimit, app: Flask) -> None:
    """What covers one app's views is not told of another."""
    other = Flask("other")
    other.config.update(SECRET_KEY="s")
    limiter.init_app(other)
    limiter.limit("9/minute", key=by_ip)
    with other.app_context():
        assert [each["covers"] for each in limiter.manifest()["limits"]][1:] == [[]]
    with app.app_context():
        assert limiter.manifest()["app"] == "venue"


def test_a_limit_of_another_limiter_is_listed_last(app: Flask, flask: Flasks) -> None:
    """It covers the view all the same, and is no reason to fail."""
    other = VenueLimit().limit("5/minute", name="other", key=by_ip)
    app.add_url_rule("/other", "other", other(lambda: "ok"))
    assert flask("list").lines[-1] == "other 5/minute ip front GET other"


def test_an_endpoint_breaks_no_line(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Flask lets an endpoint be any text; a row stays a row."""
    odd = limiter.limit("5/minute", name="odd", key=by_ip)
    app.add_url_rule("/odd", "two\nlines\x1b[2J", odd(lambda: "ok"))
    assert flask("list").lines[-1] == r"odd 5/minute ip front GET two\nlines\x1b[2J"

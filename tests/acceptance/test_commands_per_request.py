"""What a request costs: the commands that reach the server, watched there."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from flask import Blueprint, Flask

from flask_venuelimit import Concurrency, TokenBucket, VenueLimit, by_identity, by_ip
from tests.acceptance.callers import NAVIGATING, caller, commands, signed_in, statuses


@pytest.fixture
def limiter(app: Flask, valkey_client: redis.Redis) -> VenueLimit:
    """A limiter on the real server's own clock, whose script is known there already."""
    limiter = VenueLimit(app, storage=valkey_client)
    limiter.limit("9/minute", name="warming up", key=by_ip).peek(subject="203.0.113.1")
    return limiter


def test_any_number_of_front_limits_is_one_command(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """Five limits, two of them of several policies, and all header fields: one EVALSHA."""
    app.config["VENUELIMIT_HEADERS"] = ("draft", "trio", "x")
    view: Any = limiter.limit("9/minute; 99/hour", key=by_ip)(lambda: "ok")
    view = limiter.limit([TokenBucket(9, 1), "9/minute"], key=by_identity)(limiter.limit("9/day")(view))
    app.add_url_rule("/", "home", view)
    limiter.limit("9/minute", key=by_ip).everywhere()
    limiter.limit("9/minute", name="more", key=by_identity).everywhere()
    client = signed_in(app, participant_id="p")
    with commands(valkey_client) as sent:
        answer = client.get("/")
    assert (answer.status_code, answer.headers["RateLimit"].count("r=")) == (200, 5)
    assert sent == ["EVALSHA"]


def test_directly_stacked_decorators_are_one_command(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """Three VIEW limits of one stack are decided together."""
    view: Any = lambda: "ok"  # noqa: E731
    for name in "abc":
        view = limiter.limit("9/minute", name=name, key=lambda: "x")(view)
    app.add_url_rule("/", "home", view)
    with commands(valkey_client) as sent:
        assert statuses(caller(app), "/", 1) == [200]
    assert sent == ["EVALSHA"]


def test_each_point_is_one_command(app: Flask, limiter: VenueLimit, valkey_client: redis.Redis) -> None:
    """The front, the end of the hooks and the decorator: three at most."""
    limiter.limit("9/minute", name="front", key=by_ip).everywhere()
    limiter.limit("9/minute", name="ending", key=lambda: "x").everywhere()
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="view", key=lambda: "y")(lambda: "ok"))
    with commands(valkey_client) as sent:
        assert statuses(caller(app), "/", 1) == [200]
    assert sent == ["EVALSHA"] * 3


@pytest.mark.parametrize(("status", "sent"), [(200, ["EVALSHA"] * 2), (401, ["EVALSHA"])])
def test_refunds_are_one_command_more(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis, status: int, sent: list[str]
) -> None:
    """However many failure limits get their charge back; none where nothing is given back."""
    view: Any = limiter.failures("9/minute", name="a")(lambda: ("", status))
    app.add_url_rule(
        "/", "home", limiter.failures("9/minute", name="b")(limiter.limit("9/minute", key=by_ip)(view))
    )
    with commands(valkey_client) as seen:
        assert statuses(caller(app), "/", 1) == [status]
    assert seen == sent


def test_a_slot_is_given_back_once_however_often_a_request_is_torn_down(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """A blueprint's teardown functions are a step of their own, which asks for nothing more."""
    limiter.limit(Concurrency(9), name="slots", key=by_ip).everywhere()
    blueprint = Blueprint("blueprint", __name__)
    blueprint.add_url_rule("/", "home", lambda: "ok")
    blueprint.teardown_request(lambda error: None)
    app.register_blueprint(blueprint)
    with commands(valkey_client) as sent:
        assert statuses(caller(app), "/", 1) == [200]
    assert sent == ["EVALSHA"] * 2


def test_a_refusal_is_one_command(app: Flask, limiter: VenueLimit, valkey_client: redis.Redis) -> None:
    """Refused, rendered, redirected and shown the page: the storage was asked once, or not at all."""
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    client = caller(app)
    client.get("/")
    with commands(valkey_client) as sent:
        answer = client.get("/", headers=NAVIGATING, follow_redirects=True)
    assert (answer.status_code, len(sent) <= 1) == (429, True)


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/too-many-requests", "GET"),
        ("/too-many-requests?t=forged", "GET"),
        ("/too-many-requests/static/page.css", "GET"),
        ("/", "OPTIONS"),
        ("/exempt", "GET"),
        ("/static/nothing.css", "GET"),
    ],
)
def test_what_is_exempt_asks_nothing(valkey_client: redis.Redis, path: str, method: str) -> None:
    """The page, its assets, preflights, exempt views and static files send no command."""
    app = Flask("venue", template_folder=None)
    app.config["SECRET_KEY"] = "s"
    limiter = VenueLimit(app, storage=valkey_client)
    limiter.limit("9/minute", key=by_ip).everywhere()
    app.add_url_rule("/", "home", lambda: "ok")
    app.add_url_rule("/exempt", "exempt", limiter.exempt(lambda: "ok"))
    with commands(valkey_client) as sent:
        statuses(caller(app), path, 3, method=method, buffered=True)
    assert sent == []


def test_what_no_limit_covers_asks_nothing(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """An app pays for the limits it has, where it has them."""
    app.add_url_rule("/free", "free", lambda: "ok")
    app.add_url_rule("/", "home", limiter.limit("9/minute", methods={"POST"})(lambda: "ok"))
    with commands(valkey_client) as sent:
        assert statuses(caller(app), "/free", 3) + statuses(caller(app), "/", 3) == [200] * 6
        assert statuses(caller(app), "/nowhere", 3) == [404] * 3
    assert sent == []


def test_by_hand_each_call_is_one_command(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """Peek, hit, refund and reset send one each."""
    limit = limiter.limit(["9/minute", "99/hour"], name="it", key=by_ip)
    with commands(valkey_client) as sent:
        limit.peek(subject="198.51.100.7")
        limit.refund(limit.hit(subject="198.51.100.7"))
        limit.reset("198.51.100.7")
    assert len(sent) == 4
    assert sent[:3] == ["EVALSHA"] * 3


def test_starting_an_app_asks_nothing(valkey_client: redis.Redis) -> None:
    """Nothing is sent before the first request that a limit covers."""
    app = Flask("venue")
    app.config["SECRET_KEY"] = "s"
    with commands(valkey_client) as sent:
        VenueLimit(app, storage=valkey_client).limit("9/minute").everywhere()
    assert sent == []

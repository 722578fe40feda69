"""When a charge is given back and when not: rules of one's own, and what happens at the edges."""

from __future__ import annotations

from typing import Any

import pytest
import redis
from flask import Blueprint, Flask, Response

from flask_venuelimit import FixedWindow, TokenBucket, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, left, room, statuses

# -- a rule of one's own -------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_refund_if_is_any_rule(app: Flask, limiter: VenueLimit, asynchronous: bool) -> None:
    """A limit may give back what was answered from a cache, or whatever the app likes."""

    def cached(response: Response) -> bool:
        return response.headers.get("X-Cache") == "hit"

    async def later(response: Response) -> bool:
        return cached(response)

    limit = limiter.limit("2/minute", name="c", key=by_ip, refund_if=later if asynchronous else cached)
    app.add_url_rule("/<how>", "home", limit(lambda how: ("ok", {"X-Cache": how})))
    client = caller(app)
    seen = [client.get(f"/{how}").status_code for how in ("hit", "hit", "hit", "miss", "miss", "hit")]
    assert seen == [200, 200, 200, 200, 200, 429]


def test_a_refund_rule_that_raises_keeps_the_charge(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A broken rule is logged; the request is answered, and the charge stays."""
    limit = limiter.limit("5/minute", name="c", key=by_ip, refund_if=lambda response: 1 // 0)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(caller(app), "/", 2) == [200, 200]
    assert limit.peek(subject=C).remaining == 3
    assert warnings


def test_a_refund_gives_the_whole_cost_back(app: Flask, limiter: VenueLimit) -> None:
    """What cost five is given back as five, and shown so."""
    limit = limiter.failures("9/minute", name="f", cost=5)
    app.add_url_rule("/<int:status>", "home", limit(lambda status: ("", status)))
    client = caller(app)
    assert [room(client.get(f"/{status}"), "f") for status in (200, 200, 401, 429)] == [9, 9, 4, 0]


def test_what_a_view_has_given_back_is_shown_so(app: Flask, limiter: VenueLimit) -> None:
    """A charge by hand is shown as it stands when the response leaves."""
    limit = limiter.limit("9/minute", name="hand", key=by_ip)

    @app.get("/<int:costs>/<back>")
    def home(costs: int, back: str) -> str:
        charged = limit.hit(costs)
        if back == "back":
            limit.refund(charged)
        return "ok"

    client = caller(app)
    assert [room(client.get(f"/{path}"), "hand") for path in ("4/back", "3/kept", "6/back")] == [9, 6, 6]


def test_failures_take_what_a_limit_takes(app: Flask, limiter: VenueLimit) -> None:
    """Methods, costs and messages serve for failure limits as well."""
    limit = limiter.failures("1/minute", name="f", methods={"POST"}, message="Too many wrong guesses.")
    app.add_url_rule("/", "home", limit(lambda: ("", 401)), methods=["GET", "POST"])
    client = caller(app)
    assert statuses(client, "/", 3) == [401] * 3
    assert client.post("/").status_code == 401
    assert client.post("/").get_json()["detail"] == "Too many wrong guesses."


def test_a_failure_limit_may_cover_a_blueprint_or_everything(app: Flask, limiter: VenueLimit) -> None:
    """It is a limit like any other."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/bp/<int:status>", "home", lambda status: ("", status))
    limit = limiter.failures("2/minute", name="f")
    limit(bp)
    limit.everywhere()
    app.register_blueprint(bp)
    client = caller(app)
    seen = [client.get(path).status_code for path in ("/bp/401", "/bp/200", "/nowhere", "/bp/200")]
    assert seen == [401, 200, 404, 429]


# -- at the edges --------------------------------------------------------------------------------


def test_a_refund_does_not_reach_into_a_later_window(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Charged at 59, two failures at 61, the one of 59 succeeds at 62: still two used at 63."""
    limit = limiter.failures(FixedWindow(2, 60), name="f")
    app.add_url_rule("/<int:status>", "fail", limit(lambda status: ("", status)))

    @app.get("/slow")
    @limit
    def slow() -> str:
        clock.advance(2)
        assert statuses(caller(app), "/401", 2) == [401, 401]
        clock.advance(1)
        return "right"

    assert statuses(caller(app), "/401", 1) == [401]
    clock.advance(59)
    assert statuses(caller(app), "/slow", 1) == [200]
    clock.advance(1)
    assert statuses(caller(app), "/401", 1) == [429]


def test_a_refund_reaches_the_window_before(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """A sliding window still holds the one before, so a charge of it is given back there."""
    limit = limiter.failures("2/minute", name="f")

    @app.get("/slow")
    @limit
    def slow() -> str:
        clock.advance(10)
        return "right"

    app.add_url_rule("/<int:status>", "fail", limit(lambda status: ("", status)))
    assert statuses(caller(app), "/401", 1) == [401]
    clock.advance(55)
    assert statuses(caller(app), "/slow", 1) == [200]
    assert statuses(caller(app), "/401", 1) == [401]


def test_a_bucket_that_was_full_since_gets_nothing(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """A token given back after the bucket filled would be one too many."""
    limit = limiter.failures(TokenBucket(2, 1), name="f")

    @app.get("/slow")
    @limit
    def slow() -> str:
        clock.advance(5)
        assert statuses(caller(app), "/401", 2) == [401, 401]
        return "right"

    app.add_url_rule("/<int:status>", "fail", limit(lambda status: ("", status)))
    assert statuses(caller(app), "/slow", 1) == [200]
    assert statuses(caller(app), "/401", 1) == [429]


def test_a_refund_of_an_expired_key_writes_nothing(app: Flask, valkey_client: redis.Redis) -> None:
    """A request that outlives its own key leaves none behind."""
    limiter = VenueLimit(app, storage=valkey_client)
    slow = limiter.failures("2/minute", name="f")(lambda: str(valkey_client.flushall()))
    app.add_url_rule("/", "slow", slow)
    assert statuses(caller(app), "/", 1) == [200]
    assert valkey_client.keys() == []


def test_a_streamed_success_is_refunded(app: Flask, login: Any) -> None:
    """A body that is sent bit by bit is judged by its status like any other."""
    app.add_url_rule("/stream", "stream", login(lambda: Response(iter(["a", "b"]))))
    assert [caller(app).get("/stream").text for _ in range(5)] == ["ab"] * 5
    assert left(login) == 3


def test_a_before_request_hook_s_answer_is_judged(app: Flask, login: Any) -> None:
    """A hook that turns the request away after the front was charged is a failure by its status."""
    app.before_request(lambda: ("wrong token", 401))
    statuses(caller(app), "/200", 2)
    assert left(login) == 1


def test_a_client_that_keeps_its_context_finds_the_refund_done(app: Flask, login: Any) -> None:
    """In a ``with`` block the context lives on until the next request, which has its room all the same."""
    with caller(app) as client:
        assert statuses(client, "/200", 9) == [200] * 9
    assert left(login) == 3


def test_nested_requests_are_judged_apart(app: Flask, login: Any) -> None:
    """A request made inside a view is a request of its own."""
    app.add_url_rule("/outer", "outer", login(lambda: str(caller(app).get("/401").status_code)))
    assert caller(app).get("/outer").text == "401"
    assert left(login) == 2


def test_memory_of_one_app_is_not_asked_for_a_refund_of_another() -> None:
    """Each app gives back what it charged, where it charged it."""
    limiter, stores = VenueLimit(), []
    limit = limiter.failures("3/minute", name="f").everywhere()
    for name in ("one", "two"):
        app = Flask(name)
        app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
        limiter.init_app(app)
        app.add_url_rule("/", "home", lambda: "ok")
        statuses(caller(app), "/", 2)
        statuses(caller(app), "/nowhere", 1)
        with app.app_context():
            stores.append(limit.peek(subject=C).remaining)
    assert stores == [2, 2]

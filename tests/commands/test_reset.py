"""``flask venuelimit reset``: somebody starts anew, and nobody else does."""

from __future__ import annotations

from collections.abc import Callable

import redis
from flask import Flask, request

from flask_venuelimit import VenueLimit, by_user
from tests.acceptance.callers import A, C, caller, signed_in, statuses
from tests.commands.terminal import Typed

Flasks = Callable[..., Typed]


def test_who_was_refused_may_go_on(app: Flask, flask: Flasks) -> None:
    """What a participant has used is forgotten, and how they stand then is shown."""
    guest = signed_in(app, participant_id="p1")
    assert statuses(guest, "/answers", 11, method="POST")[-1] == 429
    answer = flask("reset", "--participant", "p1")
    assert answer.code == 0
    assert answer.lines[1:] == ["answer 10 of 10 left"]
    assert guest.post("/answers").status_code == 200


def test_nobody_else_is_reset(app: Flask, flask: Flasks) -> None:
    """Neither another participant nor the address they share."""
    for who in ("p1", "p2"):
        signed_in(app, participant_id=who).post("/answers")
    flask("reset", "--participant", "p1")
    assert "answer 9 of 10 left all of it in 60 s" in flask("status", "--participant", "p2").lines
    assert "global 1198 of 1200 left all of it in 60 s" in flask("status", "--ip", C).lines


def test_an_address_is_reset_in_every_limit(app: Flask, flask: Flasks, valkey_client: redis.Redis) -> None:
    """Where it stands in for an unknown participant as well; another address keeps its counters."""
    caller(app).post("/answers")
    caller(app, A).post("/answers")
    flask("reset", "--ip", C)
    assert flask("status", "--ip", C).lines[1:] == ["global 1200 of 1200 left", "answer 1000 of 1000 left"]
    assert valkey_client.dbsize() == 2


def test_one_limit_can_be_reset_alone(app: Flask, flask: Flasks) -> None:
    """The others stay as they are."""
    caller(app).post("/answers")
    assert flask("reset", "--ip", C, "--limit", "answer").lines[1:] == ["answer 1000 of 1000 left"]
    assert "global 1199 of 1200 left all of it in 60 s" in flask("status", "--ip", C).lines


def test_every_method_is_reset(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Where each method has a bucket of its own, all of them are emptied."""
    each = limiter.limit("5/minute", name="each", key=by_user, per_method=True)
    app.add_url_rule("/each", "each", each(lambda: "ok"), methods=["GET", "PUT"])
    for method in ("GET", "PUT"):
        signed_in(app, user_id="42").open("/each", method=method)
    assert flask("reset", "--user", "42").lines[1:] == ["each (GET) 5 of 5 left", "each (PUT) 5 of 5 left"]


def test_a_limit_by_hand_is_reset_for_every_method(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Where each method has a bucket of its own, each request charges its method's, covered or not."""
    each = limiter.limit("5/minute", name="each", key=by_user, per_method=True)
    app.add_url_rule("/each", "each", lambda: str(each.hit().remaining), methods=["GET", "PUT"])
    guest = signed_in(app, user_id="42")
    assert [guest.open("/each", method=method).text for method in ("PUT", "PUT", "GET")] == ["4", "3", "4"]
    assert "each (PUT) 3 of 5 left all of it in 60 s" in flask("status", "--user", "42").lines
    assert "each (PUT) 5 of 5 left" in flask("reset", "--user", "42").lines
    assert guest.put("/each").text == "4"


def test_a_limit_that_covers_one_method_is_reset_where_another_is_charged_by_hand(
    app: Flask, limiter: VenueLimit, flask: Flasks
) -> None:
    """What nobody can tell from the routes is forgotten all the same."""
    each = limiter.limit("5/minute", name="each", key=by_user, per_method=True)
    app.add_url_rule("/each", "each", each(lambda: "ok"))
    app.add_url_rule("/hand", "hand", lambda: str(each.hit().remaining), methods=["PUT"])
    guest = signed_in(app, user_id="42")
    assert guest.put("/hand").text == "4"
    flask("reset", "--user", "42")
    assert guest.put("/hand").text == "4"


def test_what_stays_is_said(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Counters of a policy that requests tell cannot be found from here."""
    limiter.limit(lambda: request.args["policy"], name="told", key=by_user)
    assert flask("reset", "--user", "42").lines[1:] == ["told unknown its policy is told at each request"]

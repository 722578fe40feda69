"""Limits asked by hand: whose bucket it is, in a request, outside one, and with several apps."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from flask_venuelimit import (
    Key,
    Limit,
    MemoryStorage,
    Subject,
    VenueLimit,
    by_identity,
    by_ip,
    by_participant,
    by_user,
)
from tests.acceptance.callers import C, caller, room, signed_in, statuses

# -- subject= ------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", ["p1", 7, UUID(int=7), ("realm", 7), Subject("team", "t")])
def test_subject_takes_what_a_key_returns(app: Flask, limiter: VenueLimit, subject: Any) -> None:
    """Whoever is named by hand has the bucket that the key would have named."""
    limit = limiter.limit("3/minute", name="own", key=Key("own", lambda: subject))
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(caller(app), "/", 2) == [200, 200]
    assert limit.peek(subject=subject).remaining == 1
    assert limit.hit(subject=subject).remaining == 0
    assert statuses(caller(app), "/", 1) == [429]


@pytest.mark.parametrize(("key", "entry"), [(by_participant, "participant_id"), (by_user, "user_id")])
def test_a_participant_or_user_is_named_by_id(app: Flask, limiter: VenueLimit, key: Any, entry: str) -> None:
    """The id that the session holds names the bucket, as text or as a number."""
    limit = limiter.limit("3/minute", name="own", key=key)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(signed_in(app, C, **{entry: 42}), "/", 1)
    assert (limit.peek(subject=42).remaining, limit.peek(subject="42").remaining) == (2, 2)
    assert limit.peek(subject=43).remaining == 3


@pytest.mark.parametrize(
    ("peer", "named"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7", "::ffff:198.51.100.7"),
        ("2001:db8:0:1234::1", "2001:db8:0:12ff::2"),
        ("2001:db8:0:1234::1", "2001:db8:0:1200::/56"),
    ],
)
def test_an_address_is_named_by_any_spelling(app: Flask, limiter: VenueLimit, peer: str, named: str) -> None:
    """An address given by hand is normalised like the one a request came from."""
    limit = limiter.limit("3/minute", name="own", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(caller(app, peer), "/", 1)
    assert limit.peek(subject=named).remaining == 2


def test_a_user_of_a_ladder_is_named_by_a_subject(app: Flask, limiter: VenueLimit) -> None:
    """``by_identity`` takes a Subject that says which of its kinds is meant."""
    limit = limiter.limit("3/minute", name="own", key=by_identity)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(signed_in(app, user_id=7), "/", 1)
    assert limit.peek(subject=Subject("user", 7)).remaining == 2
    assert limit.peek(subject=Subject("participant", 7)).remaining == 3


def test_the_address_that_stands_in_is_named_by_a_subject(app: Flask, limiter: VenueLimit) -> None:
    """Whoever was charged as an address is found under it, with the policy for addresses."""
    limit = limiter.limit("3/minute", name="own", key=by_participant, per_address="9/minute")
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(caller(app), "/", 2)
    hit = limit.peek(subject=Subject("ip", C))
    assert (hit.quota, hit.remaining) == (9, 7)


@pytest.mark.parametrize("subject", [1.5, ["p"], b"p", object()])
def test_a_subject_of_no_usable_type_is_a_value_error(mails: Limit, subject: Any) -> None:
    """What no key may return cannot be named by hand either; the error says what can."""
    with pytest.raises(ValueError, match=f"subject= is {type(subject).__name__}"):
        mails.hit(subject=subject)


def test_no_error_names_the_subject(mails: Limit) -> None:
    """An error about a subject does not quote it: it is somebody's identity."""
    with pytest.raises(ValueError, match="subject=") as caught:
        mails.hit(subject=["quentin"])
    assert "quentin" not in str(caught.value)


# -- in a request --------------------------------------------------------------------------------


def test_a_hit_in_a_view_is_the_caller_s(app: Flask, limiter: VenueLimit, mails: Limit) -> None:
    """Without ``subject=`` the key is asked, as for a decorator."""
    app.add_url_rule("/", "home", lambda: str(mails.hit().remaining))
    one, two = (signed_in(app, participant_id=p) for p in ("p1", "p2"))
    assert [client.get("/").text for client in (one, one, two)] == ["2", "1", "2"]
    assert mails.peek(subject="p1").remaining == 1


def test_each_call_charges(app: Flask, limiter: VenueLimit) -> None:
    """A hit counts beside the decorator's charge, and beside other hits."""
    limit = limiter.limit("9/minute", name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: str([limit.hit().remaining, limit.hit(2).remaining])))
    assert caller(app).get("/").text == "[7, 5]"


def test_refund_if_plays_no_part_by_hand(app: Flask, limiter: VenueLimit) -> None:
    """A hit on a failure limit stays charged though the request succeeds."""
    limit = limiter.failures("5/minute", name="f")
    app.add_url_rule("/", "home", lambda: str(limit.hit().remaining))
    assert [caller(app).get("/").text for _ in range(2)] == ["4", "3"]
    assert limit.peek(subject=C).remaining == 3


def test_decisions_lists_the_current_request_s(app: Flask, limiter: VenueLimit, mails: Limit) -> None:
    """What was decided so far, in order, and nothing of other requests."""
    limiter.limit("9/minute", name="wide", key=by_ip).everywhere()

    @app.get("/")
    def home() -> str:
        mails.hit()
        return ",".join(decision.limit for decision in limiter.decisions)

    assert [caller(app).get("/").text for _ in range(2)] == ["wide,mails"] * 2
    assert limiter.decisions == []


def test_a_hit_in_a_view_shows_in_the_headers(app: Flask, limiter: VenueLimit, mails: Limit) -> None:
    """A limit that decided the response tells its state, decorated or not."""
    app.add_url_rule("/", "home", lambda: str(mails.hit(2).allowed))
    assert room(signed_in(app, participant_id="p").get("/"), "mails") == 1


def test_an_unnamed_limit_by_hand_has_the_endpoint_s_bucket(app: Flask, limiter: VenueLimit) -> None:
    """In the view it decorates, a hit by hand goes where the decorator's charge went."""
    limit = limiter.limit("9/minute", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: str((limit.hit().limit, limit.hit().remaining))))
    assert caller(app).get("/").text == "('home', 6)"


# -- where is the app? ---------------------------------------------------------------------------


def test_outside_any_context_the_only_app_is_used(app: Flask, limiter: VenueLimit, mails: Limit) -> None:
    """A job needs no app context while there is one app; with the context it is the same bucket."""
    mails.hit(subject="p1")
    with app.app_context():
        mails.hit(subject="p1")
    with app.test_request_context():
        mails.hit(subject="p1")
    assert mails.peek(subject="p1").remaining == 0


def test_in_a_test_request_context_the_key_is_asked(app: Flask, limiter: VenueLimit) -> None:
    """A request context of a shell is a request like any other."""
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    with app.test_request_context(environ_base={"REMOTE_ADDR": C}):
        assert limit.hit().subject.startswith("ip:")
    assert limit.peek(subject=C).remaining == 4


@pytest.mark.parametrize("apps", [0, 2])
def test_where_no_app_can_be_told_it_admits_and_logs(warnings: list[str], apps: int) -> None:
    """With no app or several and no context, nobody is counted and nothing raises."""
    limiter = VenueLimit(storage=MemoryStorage())
    for n in range(apps):
        app = Flask(f"app{n}")
        app.config["SECRET_KEY"] = "s"
        limiter.init_app(app)
    limit = limiter.limit("0/minute", name="closed", key=by_ip)
    hit = limit.hit(subject=C)
    assert (hit.allowed, hit.quota, hit.remaining, hit.retry_after, hit.reset_after) == (True, 0, 0, 0.0, 0.0)
    with limit.guard(subject=C) as decision:
        assert decision.allowed
    limit.refund(hit)
    limit.reset(C)
    assert any("closed" in said for said in warnings)


def test_with_several_apps_the_context_decides(warnings: list[str]) -> None:
    """Each app has its own count of one limit, and the pushed context says which is meant."""
    limiter, apps = VenueLimit(), [Flask("one"), Flask("two")]
    for app in apps:
        app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
        limiter.init_app(app)
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    rooms = []
    for app in (apps[0], apps[0], apps[1]):
        with app.app_context():
            rooms.append(limit.hit(subject=C).remaining)
    assert rooms == [4, 3, 4]
    assert warnings == []


def test_an_app_of_another_limiter_is_no_app_of_ours(app: Flask, limiter: VenueLimit) -> None:
    """A limit asked in the context of a stranger's app admits and logs."""
    stranger = VenueLimit(storage=MemoryStorage()).limit("0/minute", name="x", key=by_ip)
    with app.app_context():
        assert stranger.hit(subject=C).allowed

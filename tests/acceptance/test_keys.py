"""Who shares a bucket: keys, the ladders made of them, and what happens when a key does not know."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from flask import Flask, session

from flask_venuelimit import (
    Key,
    Subject,
    VenueLimit,
    by_bearer,
    by_identity,
    by_ip,
    by_participant,
    by_user,
)
from tests.acceptance.callers import A, C, caller, signed_in, statuses, whose_bucket

UNKNOWN = Key("nobody", lambda: None)


# -- what a key may answer -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "b"),
        ("a", "A"),
        (0, 1),
        (UUID(int=1), UUID(int=2)),
        (("realm", 21, 1), ("realm", 2, 11)),
        (("a:b", "c"), ("a", "b:c")),
        (("ab",), ("a", "b")),
        (("a=b",), ("a", "b")),
        (("1:a", "b"), ("1", "a:b")),
        (Subject("team", "a", "b"), Subject("team=a", "b")),
        (Subject("team", 7), Subject("table", 7)),
        ("198.51.100.7", Subject("ip", "198.51.100.7")),
    ],
)
def test_different_answers_are_different_buckets(
    app: Flask, limiter: VenueLimit, one: Any, other: Any
) -> None:
    """Kinds and the boundaries between parts are kept: nobody is taken for somebody else."""
    answers = iter((one, other, one))
    whose_bucket(app, limiter, lambda: next(answers))
    seen = statuses(caller(app), "/", 3)
    assert seen == [200, 200, 429]


@pytest.mark.parametrize(
    ("one", "other"),
    [(42, "42"), (("realm", 1), ("realm", "1")), (0, "0"), (("x",), "x"), (Subject("custom", "x"), "x")],
)
def test_a_number_and_its_decimal_text_are_the_same(
    app: Flask, limiter: VenueLimit, one: Any, other: Any
) -> None:
    """However an identity is spelt by the database driver of the day, it has one bucket."""
    answers = iter((one, other))
    whose_bucket(app, limiter, lambda: next(answers))
    assert statuses(caller(app), "/", 2) == [200, 429]


@pytest.mark.parametrize("answer", [None, ""])
def test_a_key_that_knows_nobody_ends_in_the_address(
    app: Flask, limiter: VenueLimit, warnings: list[str], answer: Any
) -> None:
    """None and empty text are nobody, and nothing to complain about."""
    whose = whose_bucket(app, limiter, lambda: answer)
    assert statuses(caller(app, C), "/", 2) == [200, 429]
    assert statuses(caller(app, A), "/", 1) == [200]
    assert whose().startswith("ip:")
    assert warnings == []


def test_zero_is_somebody(app: Flask, limiter: VenueLimit) -> None:
    """User 0 has a bucket of her own, wherever she connects from."""
    whose = whose_bucket(app, limiter, lambda: 0)
    assert statuses(caller(app, C), "/", 1) + statuses(caller(app, A), "/", 1) == [200, 429]
    assert whose().startswith("custom:")


@pytest.mark.parametrize("answer", [["a"], {"id": 1}, 1.5, b"bytes", ("a", None), ("a", 1.5), object()])
def test_anything_else_is_logged_and_is_nobody(
    app: Flask, limiter: VenueLimit, warnings: list[str], answer: Any
) -> None:
    """A key that answers with what cannot be a name costs a line in the log, not the request."""
    whose = whose_bucket(app, limiter, lambda: answer)
    assert statuses(caller(app), "/", 1) == [200]
    assert whose().startswith("ip:")
    assert len(warnings) == 1


def test_a_key_that_raises_is_logged_and_is_nobody(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A key's error never fails the request; the address stands in."""
    whose = whose_bucket(app, limiter, lambda: 1 // 0)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert whose().startswith("ip:")
    assert warnings


# -- ladders -------------------------------------------------------------------------------------


def test_either_or_takes_the_first_that_is_known(app: Flask, limiter: VenueLimit) -> None:
    """``a | b`` is a where a knows, else b, else the address."""
    known: dict[str, str] = {"team": "t", "desk": "d"}
    team, desk = Key("team", lambda: known.get("team")), Key("desk", lambda: known.get("desk"))
    whose = whose_bucket(app, limiter, team | desk, "9/minute")
    kinds = []
    for gone in ("nothing", "team", "desk"):
        known.pop(gone, None)
        caller(app).get("/")
        kinds.append(whose().partition(":")[0])
    assert kinds == ["team", "desk", "ip"]


def test_both_or_neither(app: Flask, limiter: VenueLimit) -> None:
    """``a & b`` is one bucket a pair; where one is unknown, the address stands in."""
    teams, games = iter(["t1", "t1", "t2", "t1", "t1"]), iter(["g1", "g2", "g1", "g1", None])
    pair = Key("team", lambda: next(teams)) & Key("game", lambda: next(games))
    whose = whose_bucket(app, limiter, pair)
    assert statuses(caller(app), "/", 5) == [200, 200, 200, 429, 200]
    assert whose().startswith("ip:")


def test_a_pair_of_participant_and_address(app: Flask, limiter: VenueLimit) -> None:
    """``by_participant & by_ip`` counts a participant at each address apart."""
    whose_bucket(app, limiter, by_participant & by_ip)
    here, there = (signed_in(app, address, participant_id="p1") for address in (C, A))
    assert statuses(here, "/", 2) == [200, 429]
    assert statuses(there, "/", 1) == [200]


def test_the_later_of_two_stages_is_the_pair_s(app: Flask, limiter: VenueLimit) -> None:
    """A pair of a FRONT and a VIEW key is decided at the view."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))
    whose_bucket(app, limiter, by_ip & Key("late", lambda: "x"))
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert seen == ["hook", "hook"]


# -- built in ------------------------------------------------------------------------------------


def test_participants_behind_one_address_do_not_share(app: Flask, limiter: VenueLimit) -> None:
    """A hundred phones in one pub are a hundred participants."""
    whose = whose_bucket(app, limiter, by_participant)
    assert [statuses(signed_in(app, participant_id=f"p{n}"), "/", 1) for n in range(5)] == [[200]] * 5
    assert statuses(signed_in(app, A, participant_id="p0"), "/", 1) == [429]
    assert whose().startswith("participant:")


def test_a_user_is_flask_login_s_before_the_session_s(app: Flask, limiter: VenueLimit) -> None:
    """The user is ``_user_id``, else ``user_id``; they are one bucket where they name the same."""
    whose = whose_bucket(app, limiter, by_user)
    assert statuses(signed_in(app, _user_id="7", user_id="8"), "/", 1) == [200]
    assert statuses(signed_in(app, user_id=7), "/", 1) == [429]
    assert statuses(signed_in(app, user_id="8"), "/", 1) == [200]
    assert whose().startswith("user:")


def test_the_default_key_is_the_participant_else_the_user(app: Flask, limiter: VenueLimit) -> None:
    """A limit without ``key=`` counts participants, else users, else addresses."""
    app.add_url_rule("/", "home", limiter.limit("1/minute")(lambda: limiter.decisions[0].subject))
    someone: tuple[dict[str, str], ...] = ({"participant_id": "p", "user_id": "u"}, {"user_id": "u"}, {})
    kinds = [signed_in(app, **entries).get("/").text.partition(":")[0] for entries in someone]
    assert kinds == ["participant", "user", "ip"]


def test_a_user_is_not_a_participant_nor_an_address_of_the_same_name(app: Flask, limiter: VenueLimit) -> None:
    """The user who calls herself 198.51.100.7 is not that address."""
    whose_bucket(app, limiter, by_identity)
    assert statuses(signed_in(app, C, user_id=C), "/", 1) == [200]
    assert statuses(signed_in(app, C, participant_id=C), "/", 1) == [200]
    assert statuses(caller(app, C), "/", 1) == [200]


def test_the_signed_session_is_known_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """Who the session names is refused before any hook, without a look-up."""
    seen: list[str] = []
    app.before_request(lambda: seen.append("hook"))
    whose_bucket(app, limiter, by_identity)
    assert statuses(signed_in(app, participant_id="p"), "/", 2) == [200, 429]
    assert seen == ["hook"]


def test_a_tampered_session_is_no_identity(app: Flask, limiter: VenueLimit) -> None:
    """Whoever edits the cookie falls back to the address, and gains no fresh bucket."""
    whose = whose_bucket(app, limiter, by_participant)
    seen = []
    for n in range(3):
        client = signed_in(app, participant_id=f"p{n}")
        cookie = client.get_cookie("session")
        assert cookie is not None
        client.set_cookie("session", cookie.value[:-3] + "AAA")
        seen += statuses(client, "/", 1)
    assert seen == [200, 429, 429]
    assert whose().startswith("ip:")


@pytest.mark.parametrize("entries", [{}, {"participant_id": "p"}, {"user_id": 7}])
def test_looking_at_the_session_does_not_vary_the_response(
    app: Flask, limiter: VenueLimit, entries: dict[str, Any]
) -> None:
    """A view that does not touch the session sends no ``Vary: Cookie``, admitted or refused."""
    whose_bucket(app, limiter, by_identity)
    client = signed_in(app, **entries)
    answers = [client.get("/") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 429]
    assert ["Cookie" in answer.vary for answer in answers] == [False, False]


def test_a_view_that_uses_the_session_still_varies(app: Flask, limiter: VenueLimit) -> None:
    """The app's own look at the session is left as it is."""
    app.add_url_rule("/", "home", limiter.limit("9/minute")(lambda: session.get("participant_id", "")))
    assert "Cookie" in signed_in(app, participant_id="p").get("/").vary


def test_an_app_without_a_secret_key_has_addresses(app: Flask, limiter: VenueLimit) -> None:
    """Without SECRET_KEY there are no sessions: the address stands in, and no request fails."""
    app.config["SECRET_KEY"] = None
    whose = whose_bucket(app, limiter, by_identity)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert whose().startswith("ip:")


def test_bearers_are_told_apart_by_what_follows_the_word(app: Flask, limiter: VenueLimit) -> None:
    """The scheme's case says nothing, the token's does; another scheme is no bearer."""
    whose = whose_bucket(app, limiter, by_bearer)
    sent = ("Bearer abc", "bearer abc", "BEARER abc", "Bearer ABC")
    client = caller(app)
    assert [client.get("/", headers={"Authorization": a}).status_code for a in sent] == [200, 429, 429, 200]
    assert whose().startswith("bearer:")
    client.get("/", headers={"Authorization": "Basic YTpi"})
    assert whose().startswith("ip:")


# -- per_address ---------------------------------------------------------------------------------


def test_the_address_has_a_policy_of_its_own(app: Flask, limiter: VenueLimit) -> None:
    """``per_address`` is sized for a building; a person keeps the tight one."""
    whose_bucket(app, limiter, by_participant, "1/minute", per_address="3/minute")
    assert statuses(caller(app), "/", 4) == [200, 200, 200, 429]
    assert statuses(signed_in(app, participant_id="p"), "/", 2) == [200, 429]


def test_people_do_not_spend_what_is_the_building_s(app: Flask, limiter: VenueLimit) -> None:
    """Who is known is charged to herself alone."""
    whose_bucket(app, limiter, by_participant, "5/minute", per_address="2/minute")
    assert statuses(signed_in(app, participant_id="p"), "/", 5) == [200] * 5
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


# -- nobody at all -------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [by_ip, by_identity, UNKNOWN])
def test_requests_without_an_address_share_a_bucket(
    app: Flask, limiter: VenueLimit, warnings: list[str], key: Key
) -> None:
    """A peer without a usable address is ``no-address``, which is warned about once."""
    whose = whose_bucket(app, limiter, key, "2/minute")
    assert [s for peer in ("", "unix:", "-") for s in statuses(caller(app, peer), "/", 1)] == [200, 200, 429]
    assert whose().startswith("no-address:")
    assert len([said for said in warnings if "address" in said]) == 1


def test_a_request_without_any_peer_is_no_address(app: Flask, limiter: VenueLimit) -> None:
    """A server that sets no REMOTE_ADDR at all makes no request fail."""
    whose = whose_bucket(app, limiter, by_ip)
    client = caller(app)
    del client.environ_base["REMOTE_ADDR"]
    assert statuses(client, "/", 2) == [200, 429]
    assert whose().startswith("no-address:")


def test_outside_a_request_everybody_is_one(app: Flask, limiter: VenueLimit) -> None:
    """In a shell or a job the subject is the shared ``no-request-scope``; nothing raises."""
    limit = limiter.limit("2/minute", name="job", key=by_participant)
    hits = [limit.hit() for _ in range(3)]
    assert [hit.allowed for hit in hits] == [True, True, False]
    assert {hit.subject.partition(":")[0] for hit in hits} == {"no-request-scope"}

"""What is kept and shown of somebody: storage keys that name nobody and expire, and a short digest."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import pytest
import redis
from flask import Flask

from flask_venuelimit import TokenBucket, VenueLimit, by_bearer, by_ip, by_participant
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, signed_in, statuses, whose_bucket
from tests.servers import StoreServer

Leave = Callable[..., list[str]]


@pytest.fixture
def leave(valkey_client: redis.Redis) -> Leave:
    """Let an app with some settings answer one request, and tell which keys are on the server then."""

    def leave(
        who: object = "quentin", name: str = "it", policy: Any = "9/minute", **settings: Any
    ) -> list[str]:
        valkey_client.flushall()
        app = Flask("venue")
        app.config.update({"SECRET_KEY": "long and random", **settings})
        limiter = VenueLimit(app, storage=valkey_client)
        app.add_url_rule("/", "home", limiter.limit(policy, name=name, cost=2)(lambda: "ok"))
        assert statuses(signed_in(app, participant_id=who), "/", 1) == [200]
        return sorted(key.decode() for key in valkey_client.scan_iter())

    return leave


def digest(key: str) -> str:
    """The part of a storage key between the braces."""
    return key.partition("{")[2].partition("}")[0]


def test_a_key_is_prefix_digest_and_id(leave: Leave) -> None:
    """``PREFIX:{DIGEST}:ID``, braces literal; the digest is 128 bits, base64url."""
    (key,) = leave()
    assert re.fullmatch(r"venuelimit:\{[\w-]{22}\}:[\w-]+", key, re.ASCII)
    assert len(base64.urlsafe_b64decode(digest(key) + "==")) == 16


def test_a_key_has_the_same_length_for_everybody(leave: Leave) -> None:
    """Neither a long identity nor a long limit name makes a longer key."""
    lengths = {len(leave(who, name)[0]) for who in ("q", "ü" * 300) for name in ("a", "b" * 200)}
    assert len(lengths) == 1


def test_a_key_names_nobody_and_no_limit(leave: Leave) -> None:
    """Who reads the storage reads neither the identity nor its plain SHA-256."""
    (key,) = leave("quentin", "submit-answer")
    assert [word for word in ("quentin", "submit", "participant") if word in key.lower()] == []


def test_the_id_tells_limits_apart_and_the_digest_does_not(leave: Leave) -> None:
    """Two limits of one subject are two keys under one digest."""
    (one,), (other,) = leave(name="one"), leave(name="other")
    assert one != other
    assert digest(one) == digest(other)


def test_the_salt_decides_the_digest(leave: Leave) -> None:
    """Another salt makes other digests, the same one the same; so does the SECRET_KEY it is derived from."""
    told = [{"VENUELIMIT_SALT": "a"}, {"VENUELIMIT_SALT": "b"}, {"SECRET_KEY": "other"}, {}]
    first, again = ([digest(leave(**settings)[0]) for settings in told] for _ in range(2))
    assert first == again
    assert len(set(first)) == 4


def test_a_given_salt_outlives_a_new_secret_key(leave: Leave) -> None:
    """With VENUELIMIT_SALT set, rotating SECRET_KEY keeps all counts."""
    old, new = (leave(VENUELIMIT_SALT="s", SECRET_KEY=secret) for secret in ("old", "new"))
    assert old == new


def test_the_salt_is_taken_as_text(leave: Leave) -> None:
    """An environment that makes a number of the salt changes nothing."""
    assert leave(VENUELIMIT_SALT=12345) == leave(VENUELIMIT_SALT="12345")


def test_the_derived_salt_is_not_the_secret_key(leave: Leave) -> None:
    """The secret itself is not used where it could be guessed at through digests."""
    assert leave(SECRET_KEY="s", VENUELIMIT_SALT="s") != leave(SECRET_KEY="s")


def test_the_prefix_is_a_setting(leave: Leave) -> None:
    """``VENUELIMIT_KEY_PREFIX`` stands in front of every key."""
    (key,) = leave(VENUELIMIT_KEY_PREFIX="pub-quiz")
    assert key.startswith("pub-quiz:{")


def test_one_subject_s_keys_share_their_digest(valkey_client: redis.Redis, leave: Leave) -> None:
    """The braces keep all of a subject's counters in one slot of a cluster."""
    keys = leave(policy=["9/minute", "90/hour", TokenBucket(9, 9)])
    assert len(keys) == 3
    assert len({digest(key) for key in keys}) == 1


@pytest.mark.parametrize(("policy", "longest"), [("9/minute", 120), (TokenBucket(9, 3, per=1), 4)])
def test_a_key_expires_from_its_first_write(
    leave: Leave, valkey_client: redis.Redis, policy: Any, longest: int
) -> None:
    """A key that nobody touches again is gone when it says nothing any more."""
    (key,) = leave(policy=policy)
    assert 0 < valkey_client.pttl(key) <= longest * 1000 + 1000


def test_every_write_leaves_an_expiry(valkey_client: redis.Redis, app: Flask) -> None:
    """Hits, refusals, refunds and peeks: no key is ever without one."""
    limiter = VenueLimit(app, storage=valkey_client)
    failures = limiter.failures(["3/minute", TokenBucket(3, 1)], name="failures")
    app.add_url_rule("/<int:status>", "home", failures(lambda status: ("", status)))
    client = caller(app)
    for status in (200, 401, 200, 401, 401, 401):
        client.get(f"/{status}")
        failures.peek(subject=C)
        assert {valkey_client.pttl(key) > 0 for key in valkey_client.scan_iter()} <= {True}
    assert len(valkey_client.keys()) == 2


def test_a_key_without_expiry_is_given_one(valkey_client: redis.Redis, app: Flask) -> None:
    """A counter that was persisted by some accident does not count for ever."""
    limiter = VenueLimit(app, storage=valkey_client)
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 1) == [200]
    (key,) = valkey_client.keys()
    valkey_client.persist(key)
    assert statuses(caller(app), "/", 1) == [429]
    assert 0 < valkey_client.pttl(key) <= 121_000


def test_a_subject_is_shown_as_its_kind_and_eight_characters(app: Flask, limiter: VenueLimit) -> None:
    """``participant:1a2b3c4d``: enough to recognise, not to identify."""
    whose = whose_bucket(app, limiter, by_participant)
    signed_in(app, participant_id="quentin").get("/")
    assert re.fullmatch(r"participant:[A-Za-z0-9_-]{8}", whose())


def test_no_identity_leaves_the_process_readable(
    app: Flask, limiter: VenueLimit, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither answers nor logs name the participant, the token or the address, admitted or refused."""
    caplog.set_level(0)
    view = limiter.limit("1/minute", key=by_participant)(lambda: "ok")
    for key in (by_bearer, by_ip):
        view = limiter.limit("1/minute", key=key)(view)
    app.add_url_rule("/", "home", view)
    client = signed_in(app, participant_id="quentin")
    asking = {"Authorization": "Bearer s3cr3t"}
    answers = [client.get("/", headers=asking | extra) for extra in ({}, {}, {"Sec-Fetch-Mode": "navigate"})]
    told = "".join(f"{answer.headers}{answer.text}" for answer in answers) + caplog.text
    assert [word for word in ("quentin", "s3cr3t", C) if word in told] == []


def test_peeking_writes_nothing(valkey_client: redis.Redis, app: Flask) -> None:
    """Asking how much is left leaves no key behind."""
    limiter = VenueLimit(app, storage=valkey_client)
    limit = limiter.limit(["5/minute", TokenBucket(3, 1)], name="it")
    assert limit.peek(subject="p").remaining == 3
    assert valkey_client.keys() == []


def test_a_reset_leaves_no_key_behind(valkey_client: redis.Redis, app: Flask) -> None:
    """After ``reset`` there is nothing left of a subject, whichever policies counted it."""
    limiter = VenueLimit(app, storage=valkey_client)
    limit = limiter.limit(["5/minute", TokenBucket(3, 1)], name="it", per_address="7/minute")
    limit.hit(subject="p")
    limit.reset("p")
    assert valkey_client.keys() == []


def test_a_refund_revives_no_expired_key(valkey_client: redis.Redis, app: Flask) -> None:
    """A charge whose key has gone is given back to nobody."""
    limiter = VenueLimit(app, storage=valkey_client)
    limit = limiter.limit(["5/minute", TokenBucket(3, 1)], name="it")
    charged = limit.hit(subject="p")
    valkey_client.flushall()
    limit.refund(charged)
    assert valkey_client.keys() == []


def test_a_lost_script_is_charged_once(valkey_client: redis.Redis, app: Flask, warnings: list[str]) -> None:
    """``SCRIPT FLUSH`` between two requests costs nobody anything, and is no failure."""
    limiter = VenueLimit(app, storage=valkey_client)
    limit = limiter.limit("5/minute", name="it", key=by_ip).everywhere()
    for _ in range(3):
        valkey_client.script_flush()
        caller(app).get("/")
    assert limit.peek(subject=C).remaining == 2
    assert warnings == []


def test_a_key_of_the_wrong_type_spoils_its_own_decision_only(
    valkey_client: redis.Redis, app: Flask, warnings: list[str]
) -> None:
    """A list where a counter should be lets its limit pass, is told once, and is given an expiry."""
    limiter = VenueLimit(app, storage=valkey_client)
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 1) == [200]
    (key,) = valkey_client.keys()
    valkey_client.delete(key)
    valkey_client.rpush(key, "not a counter")
    assert statuses(caller(app), "/", 3) == [200] * 3
    assert valkey_client.pttl(key) > 0
    assert len(warnings) == 1
    assert statuses(caller(app, "203.0.113.50"), "/", 2) == [200, 429]


def test_counting_starts_anew_when_the_window_is_over(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Two windows after the last hit nothing is left of it."""
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    seen = statuses(caller(app), "/", 2)
    clock.advance(120)
    assert seen + statuses(caller(app), "/", 2) == [200, 429, 200, 429]


@pytest.mark.parametrize("scheme", ["redis", "valkey", "unix"])
def test_a_uri_names_the_server(
    valkey: StoreServer, valkey_client: redis.Redis, app: Flask, scheme: str
) -> None:
    """One setting turns limiting on, over TCP or a unix socket."""
    url = valkey.unix_url if scheme == "unix" else valkey.url.replace("redis:", f"{scheme}:")
    app.config["VENUELIMIT_STORAGE_URI"] = url
    limiter = VenueLimit(app)
    app.add_url_rule("/", "home", limiter.limit("2/minute", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert len(valkey_client.keys()) == 1

"""``flask venuelimit status``: how somebody stands, read from the same counters as requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
from flask import Flask, request

from flask_venuelimit import FixedWindow, Key, MemoryStorage, VenueLimit, by_bearer, by_ip, by_user
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, signed_in, statuses
from tests.commands.terminal import Typed, typed

Flasks = Callable[..., Typed]


def test_somebody_who_did_nothing_has_everything_left(flask: Flasks) -> None:
    """The limits that know participants, each with its whole quota."""
    answer = flask("status", "--participant", "p1")
    assert answer.code == 0
    assert answer.lines[0].startswith("participant p1 (participant:")
    assert answer.lines[1:] == ["answer 10 of 10 left"]


def test_what_requests_used_is_seen(app: Flask, flask: Flasks) -> None:
    """The participant's own bucket and the building's, and when all of it is back."""
    assert statuses(signed_in(app, participant_id="p1"), "/answers", 3, method="POST") == [200] * 3
    assert flask("status", "--participant", "p1").lines[1:] == ["answer 7 of 10 left all of it in 60 s"]
    assert flask("status", "--ip", C).lines[1:] == [
        "global 1197 of 1200 left all of it in 60 s",
        "answer 1000 of 1000 left",
    ]


def test_who_is_refused_reads_for_how_long(app: Flask, flask: Flasks, clock: ManualClock) -> None:
    """The wait is the one that the refused caller was told, and it runs down."""
    statuses(signed_in(app, participant_id="p1"), "/answers", 11, method="POST")
    assert flask("status", "--participant", "p1").lines[1:] == ["answer 0 of 10 left refuses for 66 s"]
    clock.advance(60)
    assert flask("status", "--participant", "p1").lines[1:] == ["answer 0 of 10 left refuses for 6 s"]


def test_a_closed_limit_refuses_for_good(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """No wait is told where none helps."""
    limiter.limit(FixedWindow(0, per=60), name="closed", key=by_user)
    assert flask("status", "--user", "42").lines[1:] == ["closed 0 of 0 left refuses for good"]


def test_looking_writes_nothing(flask: Flasks, valkey_client: redis.Redis) -> None:
    """However often somebody is looked at, nothing is charged and no key is made."""
    for _ in range(3):
        flask("status", "--ip", C, "--participant", "p1")
    assert valkey_client.dbsize() == 0


def test_looking_is_one_call(flask: Flasks, valkey_client: redis.Redis) -> None:
    """Whatever number of limits: all that is shown is of one moment."""
    flask("status", "--ip", C)
    valkey_client.config_resetstat()
    flask("status", "--ip", C)
    stats: Any = valkey_client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1


def test_several_people_are_shown_one_after_the_other(flask: Flasks) -> None:
    """In the order user, participant, address, whatever the order typed."""
    lines = flask("status", "--ip", C, "--user", "42", "--participant", "p1").lines
    assert [line.split()[0] for line in lines if line.split()[0] in ("user", "participant", "ip")] == [
        "user",
        "participant",
        "ip",
    ]
    assert "no limit is keyed by user" in lines


@pytest.mark.parametrize("spelled", [C, f"::ffff:{C}", "::ffff:c633:6407"])
def test_an_address_is_found_however_it_is_spelled(app: Flask, flask: Flasks, spelled: str) -> None:
    """All spellings of one address share a bucket, here as in requests."""
    caller(app).post("/answers")
    assert "global 1199 of 1200 left all of it in 60 s" in flask("status", "--ip", spelled).lines
    assert "global 1200 of 1200 left" in flask("status", "--ip", A).lines


def test_an_ipv6_address_means_its_network(app: Flask, flask: Flasks) -> None:
    """A household that moves within its network is the same client."""
    caller(app, "2001:db8::1").post("/answers")
    assert "global 1199 of 1200 left all of it in 60 s" in flask("status", "--ip", "2001:db8::2").lines


def test_only_the_limits_asked_for_are_shown(flask: Flasks) -> None:
    """``--limit`` may be repeated."""
    assert flask("status", "--ip", C, "--limit", "answer").lines[1:] == ["answer 1000 of 1000 left"]
    both = flask("status", "--ip", C, "--limit", "answer", "--limit", "global").lines[1:]
    assert [line.split()[0] for line in both] == ["global", "answer"]


def test_each_method_has_a_line_of_its_own(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Where each method has a bucket, each is shown, HEAD as GET."""
    each = limiter.limit("5/minute", name="each", key=by_user, per_method=True)
    app.add_url_rule("/each", "each", each(lambda: "ok"), methods=["GET", "PUT"])
    signed_in(app, user_id="42").head("/each")
    assert flask("status", "--user", "42").lines[1:] == [
        "each (GET) 4 of 5 left all of it in 60 s",
        "each (PUT) 5 of 5 left",
    ]


def test_an_unnamed_limit_is_shown_by_its_endpoint(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """Each endpoint has its own bucket, and its own line."""
    plain = limiter.limit("5/minute", key=by_user)
    for path in ("one", "two"):
        app.add_url_rule(f"/{path}", path, plain(lambda: "ok"))
    signed_in(app, user_id="42").get("/two")
    assert flask("status", "--user", "42").lines[1:] == [
        "one 5 of 5 left",
        "two 4 of 5 left all of it in 60 s",
    ]


def test_a_key_of_keys_has_the_buckets_of_those_it_may_name(limiter: VenueLimit, flask: Flasks) -> None:
    """``a | b`` names an a or a b; ``a & b`` names pairs, of which nobody alone is one."""
    limiter.limit("5/minute", name="first", key=by_bearer | by_user)
    limiter.limit("5/minute", name="pair", key=(by_user | by_bearer) & by_ip)
    limiter.limit("5/minute", name="either", key=by_user | (by_bearer & by_ip))
    limiter.limit("5/minute", name="called so", key=Key("tenant|user", lambda: "42"))
    assert flask("status", "--user", "42").lines[1:] == ["first 5 of 5 left", "either 5 of 5 left"]


def test_what_cannot_be_known_from_here_is_said(app: Flask, limiter: VenueLimit, flask: Flasks) -> None:
    """A policy that requests tell, and a count that each process keeps, are no failure."""
    limiter.limit(lambda: request.args["policy"], name="told", key=by_user)
    limiter.limit("5/minute", name="own", key=by_user, per_process=True)
    answer = flask("status", "--user", "42")
    assert answer.code == 0
    assert answer.lines[1:] == [
        "told unknown its policy is told at each request",
        "own unknown each process counts it for itself",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "Say whom: --user 42, --participant p1 or --ip 198.51.100.7."),
        (["--ip", C, "--limit", "nope"], "no limit is called 'nope'. There are: answer, global."),
        (
            ["--user", "42", "--limit", "global"],
            "the limit 'global' is keyed by ip, so no user has a bucket of it.",
        ),
        (["--ip", "pub"], "the text is no IP address. Use one such as 198.51.100.7 or 2001:db8::1"),
    ],
    ids=["nobody", "no such limit", "not by user", "no address"],
)
def test_a_slip_is_explained(flask: Flasks, words: list[str], complaint: str) -> None:
    """What was typed wrongly, and what to type."""
    answer = flask("status", *words)
    assert answer.code == 2
    assert complaint in answer.text


@pytest.mark.parametrize("command", ["status", "reset"])
def test_another_processs_memory_is_out_of_reach(app: Flask, command: str) -> None:
    """On memory:// there is nothing to see or reset from another process, and that is said."""
    VenueLimit(app, storage=MemoryStorage())
    answer = typed(app, command, "--user", "42")
    assert answer.code == 2
    assert "Another process's counts, such as the server's, are out of reach from here." in answer.text


@pytest.mark.parametrize("command", ["status", "reset"])
def test_where_nothing_is_counted_that_is_said(app: Flask, command: str) -> None:
    """Without storage nobody has used anything, and nothing can be reset."""
    VenueLimit(app)
    answer = typed(app, command, "--user", "42")
    assert answer.code == 2
    assert "Limiting is off in this app, so nothing is counted" in answer.text


def test_settings_that_cannot_be_kept_are_told_plainly(app: Flask, flask: Flasks) -> None:
    """An override for a limit that is not there is found by the first command, without a traceback."""
    app2 = Flask("other")
    app2.config.update(SECRET_KEY="s", VENUELIMIT_LIMITS={"nope": "1/minute"})
    VenueLimit(app2)
    answer = typed(app2, "list")
    assert answer.code == 1
    assert "Error: VENUELIMIT_LIMITS names 'nope'" in answer.text

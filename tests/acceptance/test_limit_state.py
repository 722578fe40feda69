"""What a response tells of the limits that decided it."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask, Response

from flask_venuelimit import FixedWindow, TokenBucket, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, room, statuses

#: What each field of the trio's name ends in.
PARTS = ("Limit", "Remaining", "Reset")


def told(app: Flask) -> dict[str, str]:
    """The header fields about limits of one response."""
    return {name: value for name, value in caller(app).get("/").headers if "RateLimit" in name}


def limited(storage: Any, headers: Any = None, **policies: Any) -> Flask:
    """An app whose ``/`` has these limits, by name."""
    app = Flask("venue", static_folder=None, template_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_HEADERS=headers, VENUELIMIT_RETRY_JITTER=0)
    limiter, view = VenueLimit(app, storage=storage), lambda: "ok"
    for name, policy in policies.items():
        view = limiter.limit(policy, name=name, key=by_ip)(view)
    app.add_url_rule("/", "home", view)
    return app


def test_by_default_the_draft_and_the_trio_are_sent(storage: Any) -> None:
    """To the letter: policy, state, and the three old fields."""
    assert told(limited(storage, join="150/minute")) == {
        "RateLimit-Policy": '"join";q=150;w=60',
        "RateLimit": '"join";r=149;t=60',
        "RateLimit-Limit": "150",
        "RateLimit-Remaining": "149",
        "RateLimit-Reset": "60",
    }


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        (["draft"], ["RateLimit", "RateLimit-Policy"]),
        ("trio", ["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]),
        (("x",), ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"]),
        ([], []),
    ],
)
def test_each_kind_is_sent_alone(storage: Any, kinds: Any, names: list[str]) -> None:
    """``VENUELIMIT_HEADERS`` chooses, as a list or as text."""
    assert sorted(told(limited(storage, kinds, join="150/minute"))) == names


def test_x_says_the_same_as_the_trio(storage: Any) -> None:
    """The same three numbers, under the older names."""
    fields = told(limited(storage, "trio,x", join="150/minute"))
    assert [fields[f"X-RateLimit-{part}"] for part in PARTS] == [
        fields[f"RateLimit-{part}"] for part in PARTS
    ]


def test_the_trio_is_of_the_limit_with_the_least_room(storage: Any) -> None:
    """Of several limits the one that will refuse first speaks."""
    fields = told(limited(storage, wide="150/minute", narrow=FixedWindow(5, 3600), middle="10/minute"))
    assert [fields[f"RateLimit-{part}"] for part in PARTS] == ["5", "4", "3600"]
    assert fields["RateLimit-Policy"] == '"middle";q=10;w=60, "narrow";q=5;w=3600, "wide";q=150;w=60'


def test_state_moves_with_the_clock(storage: Any, clock: ManualClock) -> None:
    """Remaining goes down with each request, ``t`` with time, rounded up."""
    app, seen = limited(storage, it=FixedWindow(5, 60)), []
    for seconds in (0, 20.5, 39.4, 1):
        clock.advance(seconds)
        seen.append(items(caller(app).get("/"), "RateLimit")["it"])
    assert seen == [{"r": 4, "t": 60}, {"r": 3, "t": 40}, {"r": 2, "t": 1}, {"r": 4, "t": 60}]


@pytest.mark.parametrize(
    ("policy", "shown"),
    [
        (TokenBucket(capacity=20, rate=240, per=60), {"q": 20, "w": 5}),
        (TokenBucket(capacity=5, rate=2, per=1), {"q": 5}),
        (FixedWindow(5, 0.5), {"q": 5}),
        (FixedWindow(5, 90), {"q": 5, "w": 90}),
    ],
)
def test_the_window_is_shown_where_it_is_whole_seconds(
    storage: Any, policy: Any, shown: dict[str, int]
) -> None:
    """``w`` is left out where it is no whole number of seconds."""
    answer = caller(limited(storage, it=policy)).get("/")
    assert items(answer, "RateLimit-Policy") == {"it": shown}


def test_a_bucket_shows_when_it_is_full(storage: Any, clock: ManualClock) -> None:
    """``t`` of a token bucket is the time until it is full."""
    app = limited(storage, it=TokenBucket(capacity=20, rate=240, per=60))
    statuses(caller(app), "/", 7)
    assert items(caller(app).get("/"), "RateLimit") == {"it": {"r": 12, "t": 2}}


def test_of_several_policies_the_tightest_is_shown(storage: Any) -> None:
    """A limit is one line, though it is several policies."""
    app = limited(storage, it=["100/minute", FixedWindow(3, 3600)])
    assert items(caller(app).get("/"), "RateLimit") == {"it": {"r": 2, "t": 3600}}


def test_a_refusal_s_state_agrees_with_its_hint(storage: Any, clock: ManualClock) -> None:
    """The refusing limit shows no room, and its time is Retry-After, in every dialect."""
    app = limited(storage, "draft,trio,x", tight=FixedWindow(1, 60), wide="100/hour")
    caller(app).get("/")
    clock.advance(14.3)
    answer = caller(app).get("/")
    assert items(answer, "RateLimit")["tight"] == {"r": 0, "t": 46}
    assert room(answer, "wide") == 99
    assert {answer.headers[name] for name in ("Retry-After", "RateLimit-Reset", "X-RateLimit-Reset")} == {
        "46"
    }
    assert (answer.headers["RateLimit-Remaining"], answer.headers["RateLimit-Limit"]) == ("0", "1")


def test_a_refusal_over_cost_shows_no_room_though_some_is_left(app: Flask, limiter: VenueLimit) -> None:
    """Two are left, three are needed: the caller who is refused reads 0, not 2."""
    limit = limiter.limit(FixedWindow(5, 60), name="it", key=by_ip, cost=3)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert [room(caller(app).get("/"), "it") for _ in range(2)] == [2, 0]
    assert limit.peek(subject=C).remaining == 2


def test_limits_of_all_points_are_told_together(app: Flask, limiter: VenueLimit) -> None:
    """One list, whenever each was decided."""
    limiter.limit("9/minute", name="front", key=by_ip).everywhere()
    limiter.limit("8/minute", name="ending", key=lambda: 1).everywhere()
    app.add_url_rule("/", "home", limiter.limit("7/minute", name="view", key=lambda: 1)(lambda: "ok"))
    answer = caller(app).get("/")
    assert {name: told["r"] for name, told in items(answer, "RateLimit").items()} == {
        "front": 8,
        "ending": 7,
        "view": 6,
    }


def test_what_no_limit_decided_shows_nothing(app: Flask, limiter: VenueLimit) -> None:
    """A view without limits has no header fields about any."""
    app.add_url_rule("/", "home", lambda: "ok")
    app.add_url_rule("/x", "x", limiter.limit("9/minute")(lambda: "ok"))
    assert told(app) == {}


def test_errors_tell_their_state_as_well(app: Flask, limiter: VenueLimit) -> None:
    """404s, 500s and redirects of the app's own carry it like any response."""
    limiter.limit("9/minute", name="it", key=by_ip).everywhere()
    app.add_url_rule("/crash", "crash", lambda: str(1 // 0))
    app.add_url_rule("/away", "away", lambda: Response("", 302, {"Location": "/"}))
    assert [room(caller(app).get(path), "it") for path in ("/nowhere", "/crash", "/away")] == [8, 7, 6]


def test_an_app_s_own_fields_of_that_name_are_replaced(app: Flask, limiter: VenueLimit) -> None:
    """Each field is there once, whatever the view wrote."""
    mine = {"RateLimit": "mine", "RateLimit-Remaining": "many"}
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="it", key=by_ip)(lambda: ("ok", mine)))
    answer = caller(app).get("/")
    assert answer.headers.getlist("RateLimit") == ['"it";r=8;t=60']
    assert answer.headers.getlist("RateLimit-Remaining") == ["8"]

"""A limit of several policies: all must agree, the tightest is shown, the longest wait is told."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import FixedWindow, Limit, SlidingWindow, TokenBucket, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, statuses

BOTH = [FixedWindow(2, 1), FixedWindow(3, 60)]


def covered(app: Flask, limiter: VenueLimit, policy: Any, **terms: Any) -> Limit:
    """Put a limit of these policies on ``/``."""
    limit = limiter.limit(policy, name="it", key=by_ip, **terms)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


@pytest.mark.parametrize(
    "policy",
    [
        "2/second; 3/minute",
        "3/minute;2 per 1 second",
        ["2/second", "3/minute"],
        ["2/second", SlidingWindow(3, 60)],
        ("2/second; 9/hour", "3/minute"),
        BOTH,
    ],
)
def test_all_policies_have_to_agree(app: Flask, limiter: VenueLimit, clock: ManualClock, policy: Any) -> None:
    """However they are written: two in the second, three in the minute."""
    covered(app, limiter, policy)
    seen = statuses(caller(app), "/", 3)
    clock.advance(2)
    assert seen + statuses(caller(app), "/", 2) == [200, 200, 429, 200, 429]


def test_the_tightest_is_shown(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """A limit is one item in the header, of the policy that has the least room."""
    covered(app, limiter, BOTH)
    client = caller(app)
    seen = [client.get("/"), client.get("/")]
    clock.advance(1)
    seen.append(client.get("/"))
    assert [items(answer, "RateLimit")["it"] for answer in seen] == [
        {"r": 1, "t": 1},
        {"r": 0, "t": 1},
        {"r": 0, "t": 59},
    ]
    assert [items(answer, "RateLimit-Policy")["it"]["q"] for answer in seen] == [2, 2, 3]


def test_the_longest_wait_is_told(app: Flask, limiter: VenueLimit, clock: ManualClock) -> None:
    """Where both refuse, whoever waits as long as told finds room in both."""
    covered(app, limiter, [FixedWindow(1, 1), FixedWindow(1, 60)])
    statuses(caller(app), "/", 1)
    answer = caller(app).get("/")
    assert (answer.headers["Retry-After"], answer.headers["RateLimit-Limit"]) == ("60", "1")
    clock.advance(int(answer.headers["Retry-After"]))
    assert statuses(caller(app), "/", 1) == [200]


def test_a_policy_that_no_wait_helps_outlasts_all(app: Flask, limiter: VenueLimit) -> None:
    """Closed for good is longer than any wait: no Retry-After is sent."""
    covered(app, limiter, [FixedWindow(0, 60), FixedWindow(9, 3600)])
    answer = caller(app).get("/")
    assert (answer.status_code, answer.get_json()["retry_after"]) == (429, None)
    assert "Retry-After" not in answer.headers


def test_what_one_policy_refuses_is_not_charged_to_the_others(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """A flood that the short window stops does not use up the long one."""
    covered(app, limiter, [FixedWindow(1, 1), FixedWindow(3, 60)])
    for _ in range(3):
        assert statuses(caller(app), "/", 5) == [200, 429, 429, 429, 429]
        clock.advance(1)
    assert statuses(caller(app), "/", 1) == [429]


def test_two_windows_of_fixed_length_on_one_route(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Ten a minute and thirty a half hour: 16, 15, 15 and 1 requests admit 10, 10, 10 and none."""
    limit = covered(app, limiter, [FixedWindow(10, 60), FixedWindow(30, 1800)])
    admitted = []
    for requests in (16, 15, 15, 1):
        admitted.append(statuses(caller(app), "/", requests).count(200))
        clock.advance(60)
    assert admitted == [10, 10, 10, 0]
    assert limit.peek(subject=C).quota == 30


def test_policies_of_one_kind_and_window_both_hold(app: Flask, limiter: VenueLimit) -> None:
    """Two numbers for one window, as two people may have written them: the smaller one counts."""
    limit = covered(app, limiter, "5/minute; 2/minute")
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert limit.peek(subject=C).quota == 2


def test_a_cost_is_charged_to_each(app: Flask, limiter: VenueLimit) -> None:
    """A request that costs three takes three of every policy."""
    covered(app, limiter, [TokenBucket(7, 1), FixedWindow(8, 60)], cost=3)
    client = caller(app)
    seen = [items(client.get("/"), "RateLimit")["it"]["r"] for _ in range(2)]
    assert (seen, statuses(client, "/", 1)) == ([4, 1], [429])


def test_a_refund_is_given_back_to_each(app: Flask, limiter: VenueLimit) -> None:
    """One charge of a limit is one in every policy, and so is what is given back."""
    limit = covered(app, limiter, BOTH)
    decisions = [limit.hit(subject=C) for _ in range(2)]
    for decision in decisions:
        limit.refund(decision)
    assert (limit.peek(subject=C).quota, limit.peek(subject=C).remaining) == (2, 2)
    assert limit.hit(2, subject=C).allowed
    assert limit.peek(subject=C).remaining == 0


def test_a_reset_forgets_each(app: Flask, limiter: VenueLimit) -> None:
    """After a reset no policy remembers anything."""
    limit = covered(app, limiter, [FixedWindow(1, 1), FixedWindow(1, 60)])
    assert statuses(caller(app), "/", 2) == [200, 429]
    limit.reset(C)
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_the_address_may_have_several_too(app: Flask, limiter: VenueLimit) -> None:
    """``per_address`` takes what a policy takes."""
    limit = limiter.limit("1/minute", name="it", key=lambda: None, per_address="2/second; 9/minute")
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


@pytest.mark.parametrize(
    ("policy", "quoted"),
    [("5/minute;", "5/minute;"), (";", ";"), ([], []), (["5/minute", ""], ""), ([5], [5]), ([None], [None])],
)
def test_an_empty_part_is_an_error(limiter: VenueLimit, policy: Any, quoted: Any) -> None:
    """A list or text with nothing in one place says so where it is declared, and quotes it."""
    with pytest.raises(ValueError) as caught:
        limiter.limit(policy)
    assert repr(quoted) in str(caught.value)

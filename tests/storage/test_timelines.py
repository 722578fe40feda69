"""The timeline table, on every store."""

from __future__ import annotations

import pytest

from flask_venuelimit.policies import FixedWindow, LeakyBucket, Policy, SlidingLog, SlidingWindow, TokenBucket
from flask_venuelimit.storage.rules import RULES
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import POLICIES, SECOND, Store, hit, hits, look
from tests.storage.timelines import TIMELINES, Timeline


def _name(timeline: Timeline) -> str:
    return f"{timeline.policy.kind}: {timeline.name}"


@pytest.mark.parametrize("timeline", TIMELINES, ids=_name)
def test_a_timeline_comes_true(store: Store, clock: ManualClock, timeline: Timeline) -> None:
    """Each hit is admitted or refused, leaves the room and names the wait that the table says."""
    for at, cost, admitted, left, wait in timeline.steps:
        clock.advance(at - clock())
        record = hit(store, timeline.policy, cost)
        expected = None if wait is None else round(wait * SECOND)
        assert (record.allowed, record.remaining, record.wait) == (admitted, left, expected), (at, cost)


@pytest.mark.parametrize("timeline", TIMELINES, ids=_name)
def test_a_peek_foretells_each_hit(store: Store, clock: ManualClock, timeline: Timeline) -> None:
    """Whatever has happened, a peek gives the verdict and the wait of the hit that follows it."""
    for at, cost, admitted, _, _ in timeline.steps:
        clock.advance(at - clock())
        seen = look(store, timeline.policy, cost)
        record = hit(store, timeline.policy, cost)
        assert (seen.allowed, seen.wait) == (record.allowed, record.wait)
        assert seen.remaining == record.remaining + (cost if admitted else 0)


def test_every_rule_has_a_timeline() -> None:
    """A policy that storage can count has its row in the table."""
    assert {timeline.policy.kind for timeline in TIMELINES} == set(RULES)


@pytest.mark.parametrize(
    ("policy", "wait"),
    [
        (TokenBucket(1, rate=5), 200_000),
        (TokenBucket(1, rate=1), 1_000_000),
        (TokenBucket(1, rate=10, per=19), 1_900_000),
        (FixedWindow(1, per=58.001), 58_001_000),
        (SlidingLog(1, per=58.001), 58_001_000),
        (LeakyBucket(rate=10, per=19), 1_900_000),
    ],
    ids=str,
)
def test_waits_are_not_rounded(store: Store, policy: Policy, wait: int) -> None:
    """A wait of 0.2, 1.0, 1.9 or 58.001 seconds is said to the microsecond."""
    hit(store, policy)
    assert hit(store, policy).wait == wait


def test_no_rate_is_lost_to_whole_seconds(store: Store, clock: ManualClock) -> None:
    """Fifty a minute, asked once a second for ten minutes, are 5 at once and 50 a minute."""
    policy = TokenBucket(capacity=5, rate=50, per=60)
    admitted = 0
    for _ in range(600):
        admitted += hit(store, policy).allowed
        clock.advance(1)
    assert admitted == 504


@pytest.mark.parametrize("policy", [FixedWindow(2, per=10), SlidingLog(2, per=10)], ids=str)
def test_knocking_does_not_keep_the_door_shut(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Who asks every second for as long as they like gets all that the limit gives."""
    admitted = []
    for _ in range(100):
        admitted.append(hit(store, policy).allowed)
        clock.advance(1)
    assert [sum(admitted[at : at + 10]) for at in range(0, 100, 10)] == [2] * 10


@pytest.mark.parametrize(
    "policy",
    [
        FixedWindow(3, per=60),
        SlidingWindow(3, per=60),
        SlidingLog(3, per=60),
        TokenBucket(3, rate=3, per=60),
        LeakyBucket(rate=3, per=60, max_delay=40),
    ],
    ids=str,
)
def test_reset_counts_down(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Reset is 0 for an unused key, and afterwards what is left of the window or of the refilling."""
    assert look(store, policy).reset == 0
    assert hit(store, policy, 3).reset == 60 * SECOND
    clock.advance(15)
    assert look(store, policy).reset == hit(store, policy, 3).reset == 45 * SECOND


def test_a_cost_over_what_a_policy_holds_is_never_waited_for(store: Store) -> None:
    """Where no wait can help, the wait is None, for an unused key too."""
    for policy in POLICIES:
        assert look(store, policy, 6).wait is None
        assert hits(store, policy, 6, key=policy.kind) == 5
        assert hit(store, policy, 6, key=policy.kind).wait is None

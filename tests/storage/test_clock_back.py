"""A clock that steps back gives nothing back, and makes nobody wait more than a window longer."""

from __future__ import annotations

import pytest

from flask_venuelimit.policies import Concurrency, LeakyBucket, Policy, SlidingLog, TokenBucket
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import (
    POLICIES,
    SECOND,
    Store,
    ask,
    every_policy,
    every_wait,
    hit,
    hits,
    look,
    remaining,
)


@every_policy
@pytest.mark.parametrize("step", [1, 59, 60, 61, 100_000])
def test_a_step_back_gives_nothing_back(store: Store, clock: ManualClock, policy: Policy, step: int) -> None:
    """Who has used up their limit stays refused when the clock is set back."""
    hits(store, policy, 5)
    clock.advance(-step)
    assert hits(store, policy, 5) == 0
    assert remaining(store, policy) == 0


@every_wait
def test_a_small_step_back_is_waited_for(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Within a window the key stays where it was, and the wait grows by the step."""
    hits(store, policy, 5)
    before = look(store, policy).wait or 0
    clock.advance(-20)
    assert hit(store, policy).wait == before + 20 * SECOND
    clock.advance(20)
    assert hit(store, policy).wait == before


@every_wait
def test_a_large_step_back_is_not_waited_for(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Over a window back the key is dated anew, once, so that the wait is no longer than it ever is."""
    hits(store, policy, 5)
    before = look(store, policy).wait or 0
    clock.advance(-100_000)
    assert hit(store, policy).wait == before
    clock.advance(before / SECOND)
    assert hit(store, policy).allowed


@every_policy
def test_a_peek_dates_nothing_anew(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Looking while the clock is far back leaves the key where it was."""
    hits(store, policy, 5)
    before = look(store, policy)
    clock.advance(-100_000)
    look(store, policy)
    clock.advance(100_000)
    assert look(store, policy) == before


@every_policy
def test_a_refund_survives_a_step_back(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Setting the clock back, far or not, does not lose the charge that is to be given back."""
    # a turn that lies ahead is ahead still, so a queue that was not dated anew has room for less
    for step, left in ((20, 1 if isinstance(policy, LeakyBucket) else 3), (100_000, 3)):
        receipt = ask(store, policy, 3)
        ask(store, policy, 2)
        clock.advance(-step)
        hit(store, policy)
        store.refund([receipt])
        assert remaining(store, policy) == left
        store.reset(["k"])


@pytest.mark.parametrize("policy", POLICIES[:3], ids=lambda policy: policy.kind)
@pytest.mark.parametrize(("back", "stays"), [(60, True), (60.000_001, False)])
def test_a_refund_dates_anew_over_a_window_back(
    store: Store, clock: ManualClock, policy: Policy, back: float, stays: bool
) -> None:
    """Exactly a window back the refunded key stays where it was; a microsecond further, it comes along."""
    receipt, _ = ask(store, policy), ask(store, policy, 4)
    here, _ = ask(store, policy, key="here"), ask(store, policy, 4, key="here")
    store.refund([here])
    clock.advance(-back)
    store.refund([receipt])
    clock.advance(back + 30)
    assert (look(store, policy) == look(store, policy, key="here")) is stays


def test_a_slot_lapses_though_the_clock_was_set_far_back(store: Store, clock: ManualClock) -> None:
    """A slot of a worker that died lapses a lease after the first hit that finds the clock far back."""
    policy = Concurrency(1, lease=60)
    hit(store, policy)
    clock.advance(-100_000)
    assert not hit(store, policy).allowed
    clock.advance(59.999999)
    assert not hit(store, policy).allowed
    clock.advance(0.000001)
    assert hit(store, policy).allowed


def test_a_log_is_dated_anew_as_a_whole(store: Store, clock: ManualClock) -> None:
    """The gaps between hits stay what they were, so each leaves as long after the other as it came."""
    policy = SlidingLog(2, per=60)
    hit(store, policy)
    clock.advance(25)
    hit(store, policy)
    clock.advance(-1_000)
    assert hit(store, policy).wait == 35 * SECOND
    clock.advance(35)
    assert hit(store, policy).allowed
    assert hit(store, policy).wait == 25 * SECOND


def test_a_log_stays_in_order(store: Store, clock: ManualClock) -> None:
    """A hit while the clock is a little back is dated like the last one, and leaves with it."""
    policy = SlidingLog(2, per=60)
    hit(store, policy)
    clock.advance(-20)
    assert hit(store, policy).reset == 80 * SECOND
    assert hit(store, policy).wait == 80 * SECOND
    clock.advance(80)
    assert hit(store, policy, 2).allowed


def test_a_full_bucket_has_nothing_to_wait_for(store: Store, clock: ManualClock) -> None:
    """A bucket that a refund filled is full, wherever the clock stands."""
    policy = TokenBucket(5, rate=1)
    store.refund([ask(store, policy, 5)])
    clock.advance(-3)
    assert look(store, policy) == (True, 5, 0, 0, 0, "")
    assert hit(store, policy, 5).reset == 5 * SECOND

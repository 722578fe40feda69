"""The store in this process: it shrinks again, survives a fork, and starts no thread."""

from __future__ import annotations

import threading
import time

import pytest

from flask_venuelimit.policies import FixedWindow, TokenBucket
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import ask, forking, hit, hits, in_child, remaining

ONE = FixedWindow(1, per=60)
TEN = FixedWindow(10, per=60)


def test_the_store_shrinks_by_itself(clock: ManualClock) -> None:
    """What has expired is cleared away a little at a time by calls for other keys."""
    store = MemoryStorage(clock=clock)
    for number in range(1_000):
        hit(store, TEN, key=f"fresh {number}")
    clock.advance(60)
    sizes = []
    for _ in range(200):
        hit(store, TEN)
        sizes.append(len(store))
    assert sizes[0] > 900, "no call clears everything"
    assert sizes[-1] == 1


def test_keys_that_live_on_are_not_cleared_away(clock: ManualClock) -> None:
    """A key whose expiry has moved since its first hit keeps its count."""
    store = MemoryStorage(clock=clock)
    policy = TokenBucket(100, rate=1)
    for _ in range(50):
        hit(store, policy, 2)
        clock.advance(1)
    assert remaining(store, policy) == 50


def test_coming_and_going_takes_no_room(clock: ManualClock) -> None:
    """A million refunds, resets or droppings leave nothing behind but the keys that are held."""
    store = MemoryStorage(50, clock)
    bucket = TokenBucket(5, rate=0.001)
    for number in range(2_000):
        store.refund([ask(store, bucket, key="refunded")])
        hit(store, TEN, key="reset")
        store.reset(["reset"])
        hit(store, TEN, key=f"fresh {number}")
    assert len(store) == 50
    assert len(store._counters.shelf._due) < 200


@pytest.mark.parametrize("max_keys", [0, -1, True, 1.5, "10", None])
def test_a_store_holds_at_least_one_key(max_keys: int) -> None:
    """Any other bound is refused where the store is made."""
    with pytest.raises(ValueError) as caught:
        MemoryStorage(max_keys)
    assert str(caught.value) == (
        f"MemoryStorage(max_keys={max_keys!r}): max_keys has to be a whole number of at least 1."
    )


@forking
def test_a_forked_child_is_not_locked_out(clock: ManualClock) -> None:
    """A child forked while another thread was counting answers, and has forgotten the half-made step."""
    store = MemoryStorage(clock=clock)
    hit(store, ONE)
    with store._turn:
        assert in_child(lambda: hit(store, ONE).allowed)


@forking
def test_a_forked_child_goes_on_from_the_parents_counts(clock: ManualClock) -> None:
    """A child forked while nobody was counting holds what its parent held."""
    store = MemoryStorage(clock=clock)
    hit(store, ONE)
    assert in_child(lambda: not hit(store, ONE).allowed)


def test_it_starts_no_thread(clock: ManualClock) -> None:
    """Counting and clearing away happen in the caller's own calls."""
    before = threading.active_count()
    hits(MemoryStorage(10, clock), TEN, 20)
    assert threading.active_count() == before


def test_time_is_monotonic_by_default() -> None:
    """Setting the wall clock moves no window."""
    assert MemoryStorage().clock is time.monotonic
    assert repr(MemoryStorage()) == "MemoryStorage(max_keys=100000)"

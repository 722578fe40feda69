"""The store in this process is bounded, drops what is missed least, and shrinks again."""

from __future__ import annotations

import threading
import time

import pytest

from flask_venuelimit.policies import FixedWindow, SlidingWindow, TokenBucket
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import ask, forking, hit, hits, in_child, remaining

ONE = FixedWindow(1, per=60)
TEN = FixedWindow(10, per=60)


def test_nobody_refused_is_let_in_by_a_flood(clock: ManualClock) -> None:
    """A refused caller stays refused though a thousand and one newcomers fill a store of a thousand."""
    for policy in (ONE, TEN, SlidingWindow(5, per=60), TokenBucket(5, rate=1)):
        store = MemoryStorage(1_000, clock)
        hits(store, policy, policy.quota + 1, "C")
        for number in range(1_001):
            hit(store, policy, key=f"fresh {number}")
        assert len(store) == 1_000
        assert not hit(store, policy, key="C").allowed


def test_the_expired_go_first(clock: ManualClock) -> None:
    """A key used long ago that still counts outlives one used since that has expired."""
    store = MemoryStorage(2, clock)
    hit(store, FixedWindow(10, per=600), key="old")
    hit(store, TEN, key="expired")
    clock.advance(60)
    hit(store, TEN, key="new")
    assert remaining(store, FixedWindow(10, per=600), "old") == 9


def test_a_refilled_bucket_goes_first(clock: ManualClock) -> None:
    """A bucket that is full again, be it by a refund, holds nothing worth keeping."""
    store = MemoryStorage(2, clock)
    hit(store, TEN, key="old")
    store.refund([ask(store, TokenBucket(5, rate=0.001), key="refunded")])
    hit(store, TEN, key="new")
    assert remaining(store, TEN, "old") == 9


def test_the_least_recently_used_goes_next(clock: ManualClock) -> None:
    """Of keys with room, the one nobody used for longest is dropped."""
    store = MemoryStorage(2, clock)
    for key in ("a", "b", "a", "c"):
        hit(store, TEN, key=key)
    assert [remaining(store, TEN, key) for key in "abc"] == [8, 10, 9]


def test_where_all_refuse_the_store_still_takes_newcomers(clock: ManualClock) -> None:
    """With only refusing keys left, the one used longest ago goes."""
    store = MemoryStorage(2, clock)
    for key in ("a", "b"):
        hits(store, ONE, 2, key)
    hit(store, TEN, key="c")
    assert [remaining(store, ONE, key) for key in "ab"] == [1, 0]


def test_who_has_waited_is_no_longer_spared(clock: ManualClock) -> None:
    """A key whose wait is over is dropped like any other, before one that was used since."""
    store = MemoryStorage(2, clock)
    bucket = TokenBucket(5, rate=1)
    hits(store, bucket, 6, "waited")
    clock.advance(2)
    hit(store, TEN, key="a")
    hit(store, TEN, key="b")
    assert remaining(store, bucket, "waited") == 5
    assert remaining(store, TEN, "a") == 9


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


def test_capacity_is_told_once_for_each_filling(clock: ManualClock) -> None:
    """Listeners hear when live keys begin to be dropped, and again only after the store has shrunk."""
    store = MemoryStorage(10, clock)
    told: list[int] = []
    store.capacity_listeners.append(lambda: told.append(len(store)))
    counts = []
    for _ in range(2):
        for number in range(30):
            hit(store, TEN, key=f"fresh {number}")
        counts.append(len(told))
        clock.advance(60)
        hits(store, TEN, 5)
    assert counts == [1, 2]
    assert told == [10, 10]


def test_a_store_that_has_room_tells_nobody(clock: ManualClock) -> None:
    """As many keys as the store holds, and expired ones that make room, are nothing to tell."""
    store = MemoryStorage(10, clock)
    told: list[int] = []
    store.capacity_listeners.append(lambda: told.append(1))
    for minute in range(3):
        for number in range(10):
            hit(store, TEN, key=f"{minute} {number}")
        clock.advance(60)
    assert told == []


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
    with store._lock:
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

"""A full store in this process drops what is missed least, in the order that is promised, and says so."""

from __future__ import annotations

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import Concurrency, FixedWindow, SlidingLog, SlidingWindow, TokenBucket
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import POLICIES, ask, charge, hit, hits, look, remaining

ONE = FixedWindow(1, per=60)
TEN = FixedWindow(10, per=60)
SLOTS = Concurrency(5, lease=60)


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


def test_who_has_spent_all_but_was_not_refused_goes_in_turn(clock: ManualClock) -> None:
    """Refusing is to have refused: a key that is used up, and not knocked at since, is like any other."""
    store = MemoryStorage(2, clock)
    hit(store, ONE, key="spent")
    hit(store, TEN, key="a")
    hit(store, TEN, key="b")
    assert remaining(store, ONE, "spent") == 1
    assert remaining(store, TEN, "a") == 9


def test_who_has_waited_goes_in_the_order_of_use(clock: ManualClock) -> None:
    """Of keys whose waits are over and keys that never refused, the one used longest ago goes first."""
    store = MemoryStorage(4, clock)
    bucket = TokenBucket(5, rate=1)
    hits(store, FixedWindow(1, per=600), 2, "refuses")
    hit(store, FixedWindow(10, per=600), key="older")
    for key in ("waited", "waited too"):
        hits(store, bucket, 6, key)
    clock.advance(2)
    for number in range(3):
        hit(store, FixedWindow(10, per=600), key=f"fresh {number}")
    held = [
        key for key in ("refuses", "older", "waited", "waited too") if key in store._counters.shelf.entries
    ]
    assert held == ["refuses"]


def test_a_key_that_is_refused_again_is_spared_again(clock: ManualClock) -> None:
    """A wait that was over, and began anew with the next refusal, counts as it did at first."""
    store = MemoryStorage(2, clock)
    bucket = TokenBucket(1, rate=1)
    hits(store, bucket, 2, "C")
    clock.advance(1)
    hit(store, TEN, key="a")
    hits(store, bucket, 2, "C")
    hit(store, TEN, key="b")
    assert look(store, bucket, key="C").allowed is False
    assert remaining(store, TEN, "a") == 10


def test_a_window_that_was_given_back_goes_before_one_that_counts(clock: ManualClock) -> None:
    """A key with all of its limit left is missed less than one used long ago that has some of it used."""
    for policy in POLICIES:
        store = MemoryStorage(2, clock)
        hit(store, FixedWindow(10, per=600), key="old")
        store.refund([ask(store, policy, 3, "given back")])
        hit(store, TEN, key="new")
        assert remaining(store, FixedWindow(10, per=600), "old") == 9


def test_a_window_that_was_given_back_and_used_again_counts(clock: ManualClock) -> None:
    """What is hit again after it was given back takes its turn as any other key."""
    store = MemoryStorage(2, clock)
    store.refund([ask(store, TEN, key="k")])
    hit(store, TEN, key="a")
    hit(store, TEN, key="k")
    hit(store, TEN, key="b")
    assert [remaining(store, TEN, key) for key in ("k", "a")] == [9, 10]


def test_an_expired_key_is_found_among_thousands_that_live_on(clock: ManualClock) -> None:
    """However many keys were put off since they were first due, the one that has expired is the one to go."""
    store = MemoryStorage(2_000, clock)
    hit(store, FixedWindow(10, per=600), key="oldest")
    for _ in range(2):
        clock.advance(30)
        for number in range(1_998):
            hit(store, TokenBucket(60, rate=1), 40, key=f"{number}")
    hit(store, FixedWindow(10, per=5), key="expired")
    clock.advance(10)
    hit(store, TEN, key="new")
    assert remaining(store, FixedWindow(10, per=600), "oldest") == 9


def test_slots_in_use_never_go(clock: ManualClock) -> None:
    """However long ago they were taken, and though they refuse nobody, slots outlive every other key."""
    store = MemoryStorage(3, clock)
    hit(store, SLOTS, key="slots")
    for number in range(10):
        hits(store, ONE, 2, key=f"{number}")
    assert remaining(store, SLOTS, "slots") == 4
    assert len(store) == 3


def test_where_only_slots_are_left_newcomers_are_not_counted(clock: ManualClock) -> None:
    """They are admitted, show all of their limit, and have nothing to give back."""
    store = MemoryStorage(2, clock)
    hit(store, SLOTS, key="a")
    hit(store, SLOTS, key="b")
    for policy in POLICIES:
        receipts = [ask(store, policy, key=f"new {policy.kind}") for _ in range(7)]
        assert {(receipt.allowed, receipt.charged) for receipt in receipts} == {(True, False)}
        assert receipts[-1].records == ((True, 5, 0, 0, 0, ""),)
        store.refund(receipts)
    assert [remaining(store, SLOTS, key) for key in "ab"] == [4, 4]


def test_slots_are_counted_though_only_slots_are_left(clock: ManualClock) -> None:
    """A key that is there already goes on counting, to its limit."""
    store = MemoryStorage(1, clock)
    assert hits(store, SLOTS, 7, "a") == 5
    assert ask(store, SLOTS, key="a").charged is False


def test_what_cannot_be_counted_whole_is_not_counted_at_all(clock: ManualClock) -> None:
    """A limit of several policies, of which only some find room, leaves nothing behind; the others stand."""
    store = MemoryStorage(3, clock)
    for key in "ab":
        hit(store, SLOTS, key=key)
    both = Charge((Cell("slots", SLOTS), Cell("window", SlidingWindow(5, per=60))))
    receipts = store.decide([charge(SLOTS, key="a"), both])
    assert [receipt.charged for receipt in receipts] == [True, False]
    assert receipts[1].allowed
    assert [remaining(store, SLOTS, key) for key in ("a", "b", "slots")] == [3, 4, 5]


def test_slots_given_back_or_lapsed_make_room(clock: ManualClock) -> None:
    """A key whose last slot is free again is as good as none."""
    store = MemoryStorage(2, clock)
    first = ask(store, SLOTS, key="a")
    ask(store, SLOTS, key="b")
    store.refund([first])
    assert ask(store, SLOTS, key="c").charged
    assert not ask(store, TEN, key="d").charged
    clock.advance(60)
    assert ask(store, TEN, key="d").charged


def test_a_renewed_slot_is_not_dropped_when_it_would_have_lapsed(clock: ManualClock) -> None:
    """Renewing a slot keeps its key for as long as the slot is held."""
    store = MemoryStorage(1, clock)
    slot = ask(store, SLOTS, key="a")
    clock.advance(50)
    store.renew([slot])
    clock.advance(50)
    assert not ask(store, TEN, key="b").charged
    assert remaining(store, SLOTS, "a") == 4


def test_a_log_counts_as_one_key(clock: ManualClock) -> None:
    """The bound is on keys: a log of many entries is dropped, or kept, whole."""
    store = MemoryStorage(2, clock)
    log = SlidingLog(1_000, per=60)
    hits(store, log, 500, "log")
    hit(store, TEN, key="a")
    assert remaining(store, log, "log") == 500
    hit(store, TEN, key="b")
    assert remaining(store, log, "log") == 1_000


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


def test_the_smallest_stores_tell_too(clock: ManualClock) -> None:
    """A store of one key reaches its capacity with the second."""
    for size in (1, 2, 9):
        store = MemoryStorage(size, clock)
        told: list[int] = []
        store.capacity_listeners.append(lambda told=told: told.append(1))  # type: ignore[misc]
        counts = []
        for number in range(size + 2):
            hit(store, TEN, key=f"{number}")
            counts.append(len(told))
        assert counts == [0] * size + [1, 1]


def test_a_key_that_holds_nothing_goes_untold(clock: ManualClock) -> None:
    """A window that was given back makes room, and nobody misses it."""
    store = MemoryStorage(2, clock)
    told: list[int] = []
    store.capacity_listeners.append(lambda: told.append(1))
    for number in range(5):
        hit(store, TEN, key="kept")
        store.refund([ask(store, TEN, key=f"given back {number}")])
    assert (told, remaining(store, TEN, "kept")) == ([], 5)


def test_turning_newcomers_away_is_told_too(clock: ManualClock) -> None:
    """A store that is full of slots reaches its capacity with the first newcomer it cannot count."""
    store = MemoryStorage(1, clock)
    told: list[int] = []
    store.capacity_listeners.append(lambda: told.append(len(store)))
    hit(store, SLOTS, key="a")
    assert told == []
    hits(store, TEN, 3, "b")
    assert told == [1]

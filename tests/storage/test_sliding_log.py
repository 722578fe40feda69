"""A log is exact, holds no more than its limit, and is read no further than need be."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
import redis

from flask_venuelimit.decisions import Receipt
from flask_venuelimit.policies import SlidingLog, TokenBucket
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.storage.rules.log import Log
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import SECOND, Store, ask, hit, hits, look, remaining

#: Bytes that an entry takes on a server, and what stands before the first.
ENTRY, HEAD = 24, 80
TWENTY = SlidingLog(20, per=60)


@pytest.fixture
def moved(valkey_client: redis.Redis, clock: ManualClock) -> RedisStorage:
    """A store on a server, on a clock that stands still."""
    return RedisStorage(valkey_client, clock)


def _log(store: MemoryStorage, key: str = "k") -> Log:
    state: Any = store._counters.shelf.entries[key].state
    assert isinstance(state, Log)
    return state


def test_a_flood_leaves_no_more_entries_than_the_limit(clock: ManualClock) -> None:
    """A hundred thousand hits on one key, all at once and over an hour: 20 entries, and hardly more rows."""
    store = MemoryStorage(clock=clock)
    for number in range(1_100):
        # twenty come one by one, so that from then on one leaves as another comes
        hits(store, TWENTY, 1 if number < 20 else 100)
        assert _log(store).end - _log(store).first <= 20
        assert len(_log(store).rows.times) < 80
        clock.advance(3.1)


def test_a_flood_leaves_a_server_no_more_entries_than_the_limit(
    moved: RedisStorage, valkey_client: redis.Redis
) -> None:
    """Asked thousands of times at one instant, a server holds the 20 hits it admitted and nothing more."""
    assert hits(moved, TWENTY, 20) == 20
    full = valkey_client.strlen("k")
    assert hits(moved, TWENTY, 3_000) == 0
    assert valkey_client.strlen("k") == full <= HEAD + 20 * ENTRY


def test_a_log_in_steady_use_stays_as_long_as_its_limit(
    moved: RedisStorage, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """However long a key is used without a pause, its string grows no longer than the limit's entries."""
    admitted = 0
    for _ in range(500):
        admitted += hits(moved, TWENTY, 2)
        clock.advance(2)
    assert admitted == 20 * 17
    assert valkey_client.strlen("k") <= HEAD + 20 * ENTRY


def test_a_log_far_below_its_limit_takes_what_it_holds(
    moved: RedisStorage, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """However large the limit, and however long a key is used, there is room for some two windows' hits."""
    policy = SlidingLog(10**9, per=10)
    for _ in range(300):
        hit(moved, policy)
        clock.advance(1)
    assert valkey_client.strlen("k") <= HEAD + 20 * ENTRY


def test_a_lowered_limit_lets_the_log_shrink(
    moved: RedisStorage, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """Once the hits of the larger limit have left, a hit under the smaller one makes the string short."""
    hits(moved, SlidingLog(100, per=60), 99)
    clock.advance(30)
    hit(moved, SlidingLog(100, per=60))
    assert not hit(moved, TWENTY).allowed
    clock.advance(30)
    assert hits(moved, TWENTY, 20) == 19
    assert valkey_client.strlen("k") <= HEAD + 20 * ENTRY


def test_a_refund_takes_its_own_entries_out(store: Store, clock: ManualClock) -> None:
    """The oldest hit given back, the next one leaves when it would have; and nobody else's is gone."""
    first = ask(store, TWENTY, 15)
    clock.advance(10)
    ask(store, TWENTY, 5)
    store.refund([first])
    assert remaining(store, TWENTY) == 15
    assert look(store, TWENTY, 16).wait == 60 * SECOND
    clock.advance(50)
    store.refund([first])
    assert remaining(store, TWENTY) == 15


def test_the_last_entry_given_back_is_no_longer_the_newest(store: Store, clock: ManualClock) -> None:
    """Reset counts to when the entry before it leaves."""
    hit(store, TWENTY)
    clock.advance(10)
    store.refund([ask(store, TWENTY)])
    assert look(store, TWENTY).reset == 50 * SECOND


def test_an_entry_that_is_outside_is_not_given_back(store: Store, clock: ManualClock) -> None:
    """A hit that counts no longer makes no room for another, though it may still be kept."""
    old = ask(store, TWENTY, 5)
    clock.advance(30)
    ask(store, TWENTY, 15)
    clock.advance(30)
    store.refund([old])
    assert remaining(store, TWENTY) == 5


def test_nothing_is_left_of_a_log_all_of_which_was_given_back(
    moved: RedisStorage, valkey_client: redis.Redis
) -> None:
    """The key is gone, and the next hit begins anew."""
    receipts = [ask(moved, TWENTY) for _ in range(3)]
    moved.refund(receipts)
    assert valkey_client.dbsize() == 0
    assert hit(moved, TWENTY).remaining == 19


def test_a_hit_reads_little_of_a_long_log(moved: RedisStorage, valkey_client: redis.Redis) -> None:
    """Of a log of 2,000 entries a hit reads the first few and the last, and writes the head and one."""
    policy = SlidingLog(2_000, per=3_600)
    hits(moved, policy, 1_990)
    valkey_client.config_resetstat()
    assert valkey_client.strlen("k") > 1_990 * ENTRY
    assert hit(moved, policy).allowed
    stats: Any = valkey_client.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in stats.items()}
    assert (calls["getrange"], calls["setrange"], calls["pexpire"]) == (2, 2, 1)
    assert {"get", "set"}.isdisjoint(calls)


@pytest.fixture
def both(moved: RedisStorage, clock: ManualClock) -> tuple[Store, Store]:
    """A store in memory and one on a server, on one clock."""
    return MemoryStorage(clock=clock), moved


@pytest.mark.parametrize("limit", [7, 40, 400])
def test_long_logs_agree(both: tuple[Store, Store], clock: ManualClock, limit: int) -> None:
    """While rings turn and grow, with costs, late refunds and clocks set back, both stores say the same."""
    chance = random.Random(limit)
    policy = SlidingLog(limit, per=60)
    charged: list[tuple[Receipt, ...]] = []
    for _ in range(6 * limit + 300):
        cost = chance.choice([1, 1, 1, 2, limit // 5 + 1])
        answers = tuple(ask(store, policy, cost) for store in both)
        assert answers[0].records[0][:5] == answers[1].records[0][:5]
        charged.append(answers)
        if chance.random() < 0.3:
            given = charged.pop(chance.randrange(-min(len(charged), limit // 2), 0))
            for store, receipt in zip(both, given, strict=True):
                store.refund([receipt])
        clock.advance(chance.choice([0, 0.1, 60 / limit, 120 / limit]))
        if chance.random() < 0.02:
            clock.advance(chance.choice([5, -2, -100]))
    assert sum(receipt.charged for receipt, *_ in charged) > limit


@pytest.mark.parametrize("at_once", [1, 2])
def test_sums_that_grow_too_large_begin_anew(store: Store, clock: ManualClock, at_once: int) -> None:
    """The largest costs, charged and leaving again for long without a pause, are counted and given back."""
    most = 10**15 - 1
    policy, cost = SlidingLog(most, per=60), most // (13 * at_once) | 1
    receipts = []
    for number in range(150 * at_once):
        receipts.append(ask(store, policy, cost))
        left = most - cost * min(number + 1, 8 * at_once + number % at_once + 1)
        assert receipts[-1].records[0][:3] == (True, left, 0)
        assert remaining(store, policy) == left
        clock.advance(7 if number % at_once == at_once - 1 else 0)
    assert cost * 120 * at_once > 2**53
    store.refund(receipts)
    assert remaining(store, policy) == most


def test_large_sums_agree(both: tuple[Store, Store], clock: ManualClock) -> None:
    """Wherever in a log's life its sums begin anew, both stores say the same of room, wait and reset."""
    chance = random.Random(1)
    policy = SlidingLog(10**15 - 1, per=60)
    for _ in range(400):
        cost = chance.randrange(10**13, 3 * 10**14)
        ours, theirs = (ask(store, policy, cost).records[0] for store in both)
        assert ours[:5] == theirs[:5]
        clock.advance(chance.choice([0, 0, 0.000_001, 7, 13]))
    assert [look(store, policy).remaining for store in both] == [look(both[0], policy).remaining] * 2


def test_a_cost_too_large_for_what_is_left_is_told_when_room_comes(
    both: tuple[Store, Store], clock: ManualClock
) -> None:
    """In a long log, the wait of every cost is to the very entry that makes room for it."""
    policy = SlidingLog(300, per=300)
    for store in both:
        clock.advance(-clock())
        for _ in range(300):
            hit(store, policy)
            clock.advance(1)
        clock.advance(-1)
        assert [look(store, policy, cost).wait for cost in (1, 2, 150, 300)] == [
            SECOND,
            2 * SECOND,
            150 * SECOND,
            300 * SECOND,
        ]


def _kept(room: float, first: float, count: float, entries: int, birth: bytes = b"x\0") -> bytes:
    """A log as a server keeps it, of entries at the time 0 that cost 1 each."""
    head = b"l" + struct.pack("<5d", room, first, count, 0, entries) + birth
    return head + b"".join(struct.pack("<3d", 0, number + 1, number) for number in range(entries))


@pytest.mark.parametrize(
    ("text", "left"),
    [(_kept(8, 0, 1, 1), 18), (_kept(3, 0, 3, 3), 16), (_kept(3, 2, 1, 3), 16), (_kept(200, 0, 170, 170), 0)],
    ids=["one", "full", "turned", "long"],
)
def test_a_log_is_read_as_it_was_kept(
    moved: RedisStorage, valkey_client: redis.Redis, text: bytes, left: int
) -> None:
    """What another process wrote counts here."""
    valkey_client.set("k", text)
    assert hit(moved, TWENTY).remaining == left


@pytest.mark.parametrize(
    "text",
    [
        *(_kept(0, 0, 1, 1), _kept(-1, 0, 1, 1), _kept(8, -1, 1, 1), _kept(8, 8, 1, 9), _kept(8, 0, 0, 1)),
        *(_kept(2, 0, 3, 3), _kept(8, 0, 1.5, 2), _kept(8.5, 0, 1, 2), _kept(8, 0.5, 1, 2)),
        *(_kept(float("nan"), 0, 1, 1), _kept(float("inf"), 0, 1, 1), _kept(8, 0, float("nan"), 1)),
        *(_kept(8, 0, 2, 1), _kept(8, 7, 2, 7), _kept(300, 0, 200, 199), _kept(8, 0, 1, 1)[:-1]),
        *(_kept(8, 0, 1, 1, b"x")[:60], _kept(8, 0, 1, 1, b"")[:42].replace(b"\0", b"a")),
    ],
    ids=range(18),
)
def test_what_no_rule_can_have_kept_is_no_log(
    moved: RedisStorage, valkey_client: redis.Redis, text: bytes
) -> None:
    """A head that says what cannot be, or more than there is, counts as none and is written over."""
    valkey_client.set("k", text)
    assert hit(moved, TWENTY).remaining == 19
    assert hit(moved, TWENTY).remaining == 18


def test_a_bucket_under_a_logs_key_starts_a_log(store: Store) -> None:
    """What another kind of policy left is no log, and is written over."""
    hit(store, TokenBucket(5, rate=1), 5)
    assert hit(store, TWENTY).remaining == 19
    assert hit(store, TokenBucket(5, rate=1)).remaining == 4

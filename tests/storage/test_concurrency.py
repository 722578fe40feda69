"""Slots: taken, given back, renewed, lapsed."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import Concurrency, FixedWindow
from flask_venuelimit.storage.noop import NoopStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import POLICIES, SECOND, Store, ask, charge, contents, hit, hits, look, remaining

TWO = Concurrency(2, lease=60)


def test_a_slot_given_back_is_free_at_once(store: Store) -> None:
    """Who is refused for want of a slot gets the one that is given back, and only that one."""
    first, _ = ask(store, TWO), ask(store, TWO)
    assert not hit(store, TWO).allowed
    store.refund([first])
    assert [hit(store, TWO).allowed for _ in range(2)] == [True, False]


def test_a_slot_is_given_back_once(store: Store) -> None:
    """Given back twice, it is no more free than before, and nobody else's slot is."""
    first, _ = ask(store, TWO), ask(store, TWO)
    store.refund([first])
    ask(store, TWO)
    store.refund([first, first])
    assert remaining(store, TWO) == 0


def test_slots_are_told_apart_by_more_than_their_time(store: Store) -> None:
    """Of slots taken at one instant, each is given back for itself, whatever it weighs."""
    policy = Concurrency(6)
    receipts = [ask(store, policy, cost) for cost in (1, 2, 3)]
    store.refund([receipts[1]])
    assert remaining(store, policy) == 2
    store.refund([receipts[0], receipts[2]])
    assert remaining(store, policy) == 6


def test_a_wait_is_always_a_second(store: Store, clock: ManualClock) -> None:
    """Nobody knows when a slot will be given back: ask again in a second."""
    assert look(store, TWO).reset == hit(store, TWO, 2).reset == SECOND
    clock.advance(59)
    assert hit(store, TWO) == (False, 0, SECOND, SECOND, 0, "")
    assert look(store, TWO, 3).wait is None


def test_a_renewed_slot_is_held_for_another_lease(store: Store, clock: ManualClock) -> None:
    """A body that streams for long keeps its slot, for a lease from the last renewal."""
    slot = ask(store, Concurrency(1, lease=60))
    for _ in range(3):
        clock.advance(59.999999)
        store.renew([slot])
    clock.advance(59.999999)
    assert remaining(store, Concurrency(1, lease=60)) == 0
    clock.advance(0.000001)
    assert remaining(store, Concurrency(1, lease=60)) == 1


def test_a_lapsed_slot_is_not_revived(store: Store, clock: ManualClock) -> None:
    """Once it has lapsed, somebody else may have it: renewing it does nothing."""
    slot = ask(store, TWO)
    clock.advance(30)
    ask(store, TWO)
    clock.advance(30)
    store.renew([slot])
    assert remaining(store, TWO) == 1
    assert hit(store, TWO).allowed


def test_a_slot_given_back_is_not_revived(store: Store) -> None:
    """Neither is one that was given back, alone on its key or not."""
    slot, other = ask(store, TWO), ask(store, TWO)
    store.refund([slot])
    store.renew([slot])
    assert remaining(store, TWO) == 1
    store.refund([other])
    store.renew([slot, other])
    assert remaining(store, TWO) == 2


def test_each_slot_lapses_for_itself(store: Store, clock: ManualClock) -> None:
    """Renewing one leaves the other to lapse, and what it weighs is what it weighed."""
    policy = Concurrency(5, lease=60)
    heavy, _ = ask(store, policy, 3), ask(store, policy, 2)
    clock.advance(40)
    store.renew([heavy])
    clock.advance(20)
    assert remaining(store, policy) == 2
    store.refund([heavy])
    assert remaining(store, policy) == 5


def test_a_renewed_slot_is_given_back_as_itself(store: Store) -> None:
    """Renewing one of several changes their order, and none's name or weight."""
    policy = Concurrency(9, lease=60)
    slots = [ask(store, policy, cost) for cost in (1, 2, 3)]
    for slot, left in zip((slots[1], slots[0], slots[2]), (5, 6, 9), strict=True):
        store.renew([slots[1], slot])
        store.refund([slot])
        assert remaining(store, policy) == left


def test_many_slots_are_renewed_together(store: Store, clock: ManualClock) -> None:
    """In any order, on one key or several, beside what is no slot."""
    policy = Concurrency(20, lease=60)
    receipts = [ask(store, policy, key=key) for key in "abab"] + [ask(store, FixedWindow(5, per=60))]
    clock.advance(50)
    store.renew(receipts[::-1])
    clock.advance(50)
    assert [remaining(store, policy, key) for key in "ab"] == [18, 18]
    assert remaining(store, FixedWindow(5, per=60)) == 5


def test_only_what_is_held_is_renewed(store: Store, clock: ManualClock) -> None:
    """The window of a limit that has both a window and slots ends when it would have."""
    both = Charge((Cell("{k}window", FixedWindow(5, per=60)), Cell("{k}slots", TWO)))
    (receipt,) = store.decide([both])
    clock.advance(50)
    store.renew([receipt])
    clock.advance(10)
    assert remaining(store, FixedWindow(5, per=60), "{k}window") == 5
    assert remaining(store, TWO, "{k}slots") == 1


def test_a_slot_renewed_while_the_clock_is_back_keeps_its_place(store: Store, clock: ManualClock) -> None:
    """A little back, it is renewed as of the newest slot; far back, all are dated anew."""
    early = ask(store, TWO)
    clock.advance(20)
    ask(store, TWO)
    clock.advance(-20)
    store.renew([early])
    clock.advance(79.999999)
    assert remaining(store, TWO) == 0
    clock.advance(-100_000)
    store.renew([early])
    clock.advance(60)
    assert remaining(store, TWO) == 2


def test_nothing_held_nothing_renewed() -> None:
    """A store that counts nothing has nothing to renew."""
    store = NoopStorage()
    store.renew(store.decide([charge(TWO)]))
    assert not store.counts


@pytest.fixture
def moved(valkey_client: redis.Redis, clock: ManualClock) -> RedisStorage:
    """A store on a server, on a clock that stands still."""
    return RedisStorage(valkey_client, clock)


def test_a_renewal_is_one_command(moved: RedisStorage, valkey_client: redis.Redis) -> None:
    """However many slots are renewed, and none where nothing is held."""
    slots = [ask(moved, TWO, key=f"{number}") for number in range(5)]
    rest = [ask(moved, policy, key=policy.kind) for policy in POLICIES[:5]]
    valkey_client.config_resetstat()
    moved.renew([*slots, *rest])
    moved.renew(rest)
    stats: Any = valkey_client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1


@pytest.mark.parametrize("lost", [False, True], ids=["kept", "lost"])
def test_a_renewed_key_lives_as_long_as_its_slots(
    moved: RedisStorage, valkey_client: redis.Redis, clock: ManualClock, lost: bool
) -> None:
    """Its expiry is set anew with each renewal, whether it had one or had lost it."""
    slot = ask(moved, TWO)
    clock.advance(30)
    ask(moved, TWO)
    # the server's own clock stands almost still here; as it would be, the key's end is nearer by now
    valkey_client.pexpire("k", 10_000)
    if lost:
        valkey_client.persist("k")
    clock.advance(20)
    moved.renew([slot])
    assert 3_659_000 < valkey_client.pttl("k") <= 3_660_000


def test_a_renewal_in_vain_leaves_no_key_without_expiry(
    moved: RedisStorage, valkey_client: redis.Redis
) -> None:
    """A key that lost its expiry gets one, whether it still holds the slot or became something else."""
    slot, other = ask(moved, TWO), ask(moved, TWO, key="list")
    moved.refund([slot])
    ask(moved, TWO)
    valkey_client.persist("k")
    valkey_client.delete("list")
    valkey_client.rpush("list", "a")
    moved.renew([slot, other])
    assert 0 < valkey_client.pttl("k") <= 3_660_000
    assert 0 < valkey_client.pttl("list") <= 60_000


def test_the_last_slot_given_back_leaves_nothing(moved: RedisStorage, valkey_client: redis.Redis) -> None:
    """A key without slots is gone, and a refusal leaves none behind."""
    receipts = [ask(moved, TWO, key=key) for key in "aab"]
    moved.refund(receipts)
    hits(moved, Concurrency(0), 3, "c")
    assert contents(valkey_client) == {}

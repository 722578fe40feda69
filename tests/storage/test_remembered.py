"""Refusals that are remembered for a moment, so that a flood of refused requests does not reach the store."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from flask_venuelimit.decisions import Charge, Receipt
from flask_venuelimit.policies import FixedWindow, Policy, SlidingWindow, TokenBucket
from flask_venuelimit.storage.guarded import Guarded
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.storage.remembered import MOST, Remembered
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer
from tests.storage.asking import charge, forking, in_child

FULL = FixedWindow(0, per=60)
SHORT = TokenBucket(1, rate=4)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStorage:
    """What refuses."""
    return MemoryStorage(clock=clock)


@pytest.fixture
def memory(clock: ManualClock) -> Remembered:
    """What remembers, and knows nothing yet."""
    return Remembered(clock)


def refuse(store: MemoryStorage, memory: Remembered, asked: Charge) -> Receipt:
    """Ask until the store refuses, and let that be remembered."""
    while True:
        (receipt,) = store.decide([asked])
        memory.note([receipt])
        if not receipt.allowed:
            return receipt


@pytest.mark.parametrize(("policy", "wait"), [(FixedWindow(1, 60), 1), (SHORT, 0.25), (FULL, 1)], ids=str)
def test_a_refusal_is_remembered_for_its_wait_at_most_a_second(
    store: MemoryStorage, memory: Remembered, clock: ManualClock, policy: Policy, wait: float
) -> None:
    """To the microsecond, on the store's own clock."""
    refuse(store, memory, charge(policy))
    clock.advance(wait - 0.000_001)
    assert len(memory.refusing([charge(policy)])) == 1
    clock.advance(0.000_001)
    assert memory.refusing([charge(policy)]) == []


def test_what_is_remembered_says_what_the_store_would(
    store: MemoryStorage, memory: Remembered, clock: ManualClock
) -> None:
    """The wait and the reset are those of now, and whatever else is the store's."""
    refuse(store, memory, charge(SlidingWindow(3, per=60), 2))
    clock.advance(0.3)
    (known,) = memory.refusing([charge(SlidingWindow(3, per=60), 2)])
    (asked,) = store.decide([known.charge])
    assert (known.records, known.charged, known.allowed) == (asked.records, False, False)


def test_a_cheaper_request_is_asked_for(store: MemoryStorage, memory: Remembered) -> None:
    """Cost 3 does not fit, cost 1 may; what costs more is refused as well."""
    bucket = TokenBucket(5, rate=1)
    store.decide([charge(bucket, 3)])
    refuse(store, memory, charge(bucket, 3))
    assert [len(memory.refusing([charge(bucket, cost)])) for cost in (1, 2, 3, 4)] == [0, 0, 1, 1]


def test_what_never_fits_is_told_no_wait(store: MemoryStorage, memory: Remembered) -> None:
    """A dearer request that no wait helps is not told the wait of the cheaper one."""
    refuse(store, memory, charge(TokenBucket(5, rate=1), 5))
    (known,) = memory.refusing([charge(TokenBucket(5, rate=1), 6)])
    assert known.records[0].wait is None


def test_another_policy_of_the_key_is_asked_for(store: MemoryStorage, memory: Remembered) -> None:
    """After a change of plan the same person may have room."""
    refuse(store, memory, charge(FixedWindow(1, 60)))
    assert memory.refusing([charge(FixedWindow(9, 60))]) == []


@pytest.mark.parametrize("asked", [charge(FULL, binding=False), charge(FULL, stays=True)], ids=str)
def test_some_refusals_are_not_remembered(store: MemoryStorage, memory: Remembered, asked: Charge) -> None:
    """Those of shadow limits, which refuse nothing, and of failure limits, which others give room."""
    refuse(store, memory, asked)
    assert len(memory) == 0


def test_a_refusal_of_this_process_in_the_store_s_place_is_not_remembered(
    store: MemoryStorage, memory: Remembered
) -> None:
    """When the store is back it is asked at once."""
    (receipt,) = store.decide([charge(FULL)])
    receipt.local = True
    memory.note([receipt])
    assert memory.refusing([charge(FULL)]) == []


def test_what_is_given_back_or_reset_is_forgotten(store: MemoryStorage, memory: Remembered) -> None:
    """At once, and that key's alone."""
    refuse(store, memory, charge(FULL, key="a"))
    refuse(store, memory, charge(FULL, key="b"))
    memory.forget(["a", "never seen"])
    assert [len(memory.refusing([charge(FULL, key=key)])) for key in "ab"] == [0, 1]


def test_a_clock_that_steps_back_makes_it_forget(
    store: MemoryStorage, memory: Remembered, clock: ManualClock
) -> None:
    """No refusal outlives its second because the clock was set."""
    clock.advance(100)
    refuse(store, memory, charge(FULL))
    clock.advance(-0.5)
    assert memory.refusing([charge(FULL)]) == []


def test_it_is_bounded(store: MemoryStorage, memory: Remembered) -> None:
    """Of more refusals than it holds, the oldest go; one that is refused anew is no longer old."""
    refuse(store, memory, charge(FULL, key="first"))
    refuse(store, memory, charge(FULL, key="second"))
    refuse(store, memory, charge(FULL, key="first"))
    for number in range(MOST - 1):
        refuse(store, memory, charge(FULL, key=str(number)))
    assert len(memory) == MOST
    assert [len(memory.refusing([charge(FULL, key=key)])) for key in ("first", "second")] == [1, 0]


def test_threads_may_remember_and_forget_at_once(store: MemoryStorage, memory: Remembered) -> None:
    """Nothing is lost and nobody stumbles."""

    def churn(number: int) -> int:
        for _ in range(200):
            refuse(store, memory, charge(FULL, key=str(number % 3)))
            memory.forget([str(number % 3)])
        refuse(store, memory, charge(FULL, key=f"own {number}"))
        return len(memory.refusing([charge(FULL, key=f"own {number}")]))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(churn, range(8))) == [1] * 8


@forking
def test_a_child_remembers_for_itself(store: MemoryStorage, memory: Remembered) -> None:
    """Forked while a thread holds the lock, a child goes on, with what was known."""
    refuse(store, memory, charge(FULL))

    def child() -> bool:
        memory.forget(["k"])
        return len(memory) == 0

    with memory._lock, ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_child, child).result(10)
    assert len(memory) == 1


# -- in front of a server ------------------------------------------------------------------------


@pytest.fixture
def guarded(valkey_client: redis.Redis, clock: ManualClock) -> Guarded:
    """A guard over a real server, on a clock that stands still."""
    return Guarded(RedisStorage(valkey_client, clock), MemoryStorage(), lambda _: None, lambda: None, clock)


def calls(client: redis.Redis) -> int:
    """How many script calls the server has had."""
    stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "eval"))


def test_a_flood_of_refused_requests_makes_a_call_a_second(
    guarded: Guarded, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """Ten seconds of a hundred refused requests each: ten calls, and every request is refused."""
    guarded.decide([charge(FULL)])
    valkey_client.config_resetstat()
    for _ in range(10):
        clock.advance(1)
        answers = [receipt for _ in range(100) for receipt in guarded.decide([charge(FULL)])]
        assert not any(receipt is None or receipt.allowed for receipt in answers)
    assert calls(valkey_client) == 10


def test_a_failure_limit_that_covers_the_flood_is_charged(
    guarded: Guarded, valkey_client: redis.Redis
) -> None:
    """Each refusal is a failure, so that flood is a call each, and the refused limit is not asked for."""
    failures = charge(FixedWindow(50, 60), key="f", stays=True)
    point = [charge(FULL), failures]
    for _ in range(20):
        guarded.decide(point)
    (seen,) = guarded.peek([failures])
    assert seen is not None
    assert seen.records[0].remaining == 30


@pytest.mark.parametrize("how", ["reset", "refund"])
def test_room_that_is_made_in_this_process_is_there_at_once(guarded: Guarded, how: str) -> None:
    """After a reset or a refund the next request is admitted, though the last was refused."""
    asked = charge(FixedWindow(1, 60))
    (charged,) = guarded.decide([asked])
    assert charged is not None
    guarded.decide([asked])
    guarded.reset(["k"]) if how == "reset" else guarded.refund([charged])
    (receipt,) = guarded.decide([asked])
    assert receipt is not None
    assert receipt.allowed


@pytest.mark.parametrize("how", ["reset", "refund"])
def test_room_that_is_made_while_the_refusal_is_on_its_way_is_there_at_once(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Another thread may make room between the store's answer and its being remembered."""
    asked = charge(FixedWindow(1, 60))
    (charged,) = guarded.decide([asked])
    assert charged is not None
    decide = guarded.storage.decide

    def decide_and_make_room(charges: Sequence[Charge]) -> list[Receipt]:
        receipts = decide(charges)
        guarded.reset(["k"]) if how == "reset" else guarded.refund([charged])
        return receipts

    with monkeypatch.context() as patched:
        patched.setattr(guarded.storage, "decide", decide_and_make_room)
        guarded.decide([asked])
    (receipt,) = guarded.decide([asked])
    assert receipt is not None
    assert receipt.allowed


@pytest.mark.parametrize("how", ["reset", "refund"])
def test_room_that_another_app_of_this_process_makes_is_there_at_once(
    guarded: Guarded, valkey: StoreServer, clock: ManualClock, how: str
) -> None:
    """Apps that share a server, a prefix and a salt share buckets, and what is remembered of them."""
    asked = charge(FixedWindow(1, 60))
    other = Guarded(
        RedisStorage(valkey.client(), clock), MemoryStorage(), lambda _: None, lambda: None, clock
    )
    (charged,) = other.decide([asked])
    guarded.decide([asked])
    other.reset(["k"]) if how == "reset" or charged is None else other.refund([charged])
    (receipt,) = guarded.decide([asked])
    assert receipt is not None
    assert receipt.allowed


def test_room_that_is_made_elsewhere_is_there_after_a_second(
    guarded: Guarded, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """Another process's reset is noticed when the second is over, not later."""
    asked = charge(FixedWindow(1, 60))
    for _ in range(2):
        guarded.decide([asked])
    valkey_client.flushall()
    admitted = []
    for step in (0, 0.999, 0.001):
        clock.advance(step)
        (receipt,) = guarded.decide([asked])
        admitted.append(receipt is not None and receipt.allowed)
    assert admitted == [False, False, True]

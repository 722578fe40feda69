"""How the tests of this folder ask a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import pytest
import redis

from flask_venuelimit.decisions import Cell, Charge, Receipt, Record
from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage

Store: TypeAlias = MemoryStorage | RedisStorage
SECOND = 1_000_000
#: Each policy, of a size that 5 hits use up, and a minute makes good.
POLICIES: list[Policy] = [
    FixedWindow(5, per=60),
    SlidingWindow(5, per=60),
    SlidingLog(5, per=60),
    TokenBucket(5, rate=5, per=60),
    LeakyBucket(rate=5, per=60, max_delay=48),
    Concurrency(5, lease=60),
]
#: The same of another size, 9, under which the usage counted so far stays.
RAISED: dict[str, Policy] = {
    policy.kind: policy
    for policy in (
        FixedWindow(9, per=60),
        SlidingWindow(9, per=60),
        SlidingLog(9, per=60),
        TokenBucket(9, rate=7, per=60),
        LeakyBucket(rate=7, per=63, max_delay=72),
        Concurrency(9, lease=60),
    )
}
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.kind)
#: All whose waits are arithmetic; Concurrency cannot know them.
every_wait = pytest.mark.parametrize("policy", POLICIES[:5], ids=lambda policy: policy.kind)
#: Newer Pythons warn of threads at a fork; these tests are about exactly that.
forking = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def charge(
    policy: Policy, cost: int = 1, key: str = "k", *, binding: bool = True, stays: bool = False
) -> Charge:
    """Make a charge on one key."""
    return Charge((Cell(key, policy),), cost, binding, stays)


def ask(store: Store, policy: Policy, cost: int = 1, key: str = "k") -> Receipt:
    """Charge one key and take the receipt."""
    (receipt,) = store.decide([charge(policy, cost, key)])
    return receipt


def hit(store: Store, policy: Policy, cost: int = 1, key: str = "k") -> Record:
    """Charge one key and take what its counter answered."""
    return ask(store, policy, cost, key).records[0]


def hits(store: Store, policy: Policy, times: int, key: str = "k") -> int:
    """Charge one key so many times, and count how many were admitted."""
    return sum(hit(store, policy, key=key).allowed for _ in range(times))


def look(store: Store, policy: Policy, cost: int = 1, key: str = "k") -> Record:
    """Peek at one key."""
    (receipt,) = store.peek([charge(policy, cost, key)])
    return receipt.records[0]


def remaining(store: Store, policy: Policy, key: str = "k") -> int:
    """Peek at the room one key has."""
    return look(store, policy, key=key).remaining


def contents(client: redis.Redis) -> dict[object, object]:
    """Take everything a server holds, as it holds it."""
    keys = client.keys()
    assert isinstance(keys, list)
    return {key: client.dump(key) for key in keys}


def in_child(question: Callable[[], bool]) -> bool:
    """Fork, and take the child's answer to a question."""
    child = os.fork()
    if child == 0:
        answer = 1
        try:
            answer = 0 if question() else 1
        finally:
            # whatever happens, the child must not go on with the tests
            os._exit(answer)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

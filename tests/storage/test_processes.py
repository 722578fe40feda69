"""Several processes at once on one key of a server: forked ones and fresh ones."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from multiprocessing.pool import Pool

import pytest
import redis

from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.storage.redis import RedisStorage
from tests.servers import StoreServer
from tests.storage.asking import forking, remaining
from tests.storage.crowd import come_and_go, knock

#: Each holds 50, and takes hours to make one good.
POLICIES: list[Policy] = [
    FixedWindow(50, per=36_000),
    SlidingWindow(50, per=36_000),
    SlidingLog(50, per=36_000),
    TokenBucket(50, rate=1, per=36_000),
    LeakyBucket(rate=1, per=36_000, max_delay=49 * 36_000),
    Concurrency(50, lease=36_000),
]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.kind)


@pytest.fixture(scope="module", params=["fork", "spawn"])
def processes(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """Four processes, forked from this one or started afresh."""
    with multiprocessing.get_context(request.param).Pool(4) as pool:
        yield pool


@forking
@every_policy
def test_processes_are_admitted_up_to_the_limit(
    processes: Pool, valkey: StoreServer, valkey_client: redis.Redis, policy: Policy
) -> None:
    """Four processes of two threads each get exactly the limit between them, and none of it is lost."""
    admitted = processes.starmap(knock, [(valkey.port, policy, "k", 25)] * 4, chunksize=1)
    assert sum(admitted) == 50
    assert remaining(RedisStorage(valkey_client), policy) == 0


@forking
@every_policy
def test_processes_that_come_and_go_leave_nothing_behind(
    processes: Pool, valkey: StoreServer, valkey_client: redis.Redis, policy: Policy
) -> None:
    """Charging, renewing and refunding in parallel, they leave the counter as they found it."""
    admitted = processes.starmap(come_and_go, [(valkey.port, policy, "k", 25)] * 4, chunksize=1)
    assert sum(admitted) == 100
    assert remaining(RedisStorage(valkey_client), policy) == 50

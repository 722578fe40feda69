"""What several processes do at once to one key; here, for a fresh process to find it by name."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import redis

from flask_venuelimit.policies import Policy
from flask_venuelimit.storage.redis import RedisStorage
from tests.storage.asking import ask, hits


def knock(port: int, policy: Policy, key: str, times: int) -> int:
    """Charge one key from two threads, so many times each, and count how many were admitted."""
    with redis.Redis(port=port) as client, ThreadPoolExecutor(2) as threads:
        store = RedisStorage(client)
        return sum(threads.map(lambda _: hits(store, policy, times, key), range(2)))


def come_and_go(port: int, policy: Policy, key: str, times: int) -> int:
    """Charge one key, renew it and give it back, over and over, and count how many were admitted."""
    with redis.Redis(port=port) as client:
        store = RedisStorage(client)
        admitted = 0
        for _ in range(times):
            receipt = ask(store, policy, key=key)
            store.renew([receipt])
            store.refund([receipt])
            admitted += receipt.charged
        return admitted

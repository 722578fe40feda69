"""A server's user with the rights that the documentation names, and none besides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.storage import open_storage
from flask_venuelimit.storage.redis import RedisStorage
from tests.servers import StoreServer
from tests.several import Cluster
from tests.storage.asking import charge

DOCS = Path(__file__).parents[2] / "docs" / "storage.md"
POLICIES = [
    FixedWindow(2, per=60),
    SlidingWindow(2, per=60),
    SlidingLog(2, per=60),
    TokenBucket(2, rate=1),
    LeakyBucket(1, max_delay=1),
    Concurrency(2),
]


def rights() -> list[str]:
    """What the documentation tells an operator to type."""
    (line,) = re.findall(r"^ACL SETUSER limiter .*$", DOCS.read_text("utf-8"), re.MULTILINE)
    return str(line).split()


@pytest.fixture
def operator(valkey_client: redis.Redis) -> Any:
    """A client that may do anything on an empty server."""
    return valkey_client


@pytest.fixture
def limiter(valkey: StoreServer, operator: Any) -> Iterator[redis.Redis]:
    """A client that signs in as that user."""
    operator.execute_command(*rights())
    with valkey.client(username="limiter", password="password") as client:
        yield client
    operator.execute_command("ACL", "DELUSER", "limiter")


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_rights_that_are_documented_are_enough(
    limiter: redis.Redis, operator: Any, policy: Policy
) -> None:
    """To charge and refuse, look, renew, give back, forget, and to date a key that has no expiry."""
    store, key = RedisStorage(limiter), "venuelimit:{subject}:limit"
    asked = [charge(policy, key=key)]
    operator.script_flush()
    receipts = [store.decide(asked)[0] for _ in range(4)]
    operator.persist(key)
    store.decide(asked)
    assert store.peek(asked)[0].allowed is False
    store.renew(receipts)
    store.refund(receipts)
    assert store.peek(asked)[0].allowed is True
    store.reset([key])
    assert operator.exists(key) == 0


def test_a_counter_of_a_wrong_type_needs_no_more(limiter: redis.Redis, operator: Any) -> None:
    """It fails its own charge, and is given an expiry."""
    operator.rpush("venuelimit:{s}:list", "a")
    for policy in POLICIES:
        (receipt,) = RedisStorage(limiter).decide([charge(policy, key="venuelimit:{s}:list")])
        assert "WRONGTYPE" in (receipt.error or "")
    assert int(operator.pttl("venuelimit:{s}:list")) > 0


def test_no_right_is_documented_that_is_not_needed(limiter: redis.Redis, operator: Any) -> None:
    """Without any one of them some call is refused."""
    for right in [right for right in rights() if right.startswith("+")]:
        operator.execute_command("ACL", "SETUSER", "limiter", right.replace("+", "-"))
        with pytest.raises(redis.RedisError, match=r"(?i)permission|ACL"):
            use_all(limiter, operator)
        operator.execute_command("ACL", "SETUSER", "limiter", right)
    use_all(limiter, operator)


def use_all(client: redis.Redis, operator: Any) -> None:
    """Call all that a store can be asked, on counters that are new, used, and without an expiry."""
    store = RedisStorage(client)
    operator.flushall()
    operator.script_flush()
    for policy in POLICIES:
        both = Charge((Cell("venuelimit:{s}:a", policy), Cell("venuelimit:{s}:b", policy)))
        receipts = [store.decide([both])[0] for _ in range(4)]
        operator.persist("venuelimit:{s}:a")
        store.decide([both])
        store.renew(receipts)
        store.refund(receipts)
        store.reset(["venuelimit:{s}:a", "venuelimit:{s}:b"])
    # a log that is too long to be read at once
    for _ in range(300):
        store.decide([charge(SlidingLog(500, per=60), key="venuelimit:{s}:a")])


def test_in_a_cluster_two_more_rights_are_enough(cluster: Cluster) -> None:
    """To ask who has which slots, and redis-py asks what commands there are."""
    cluster.empty()
    assert "`+cluster|slots +command`" in DOCS.read_text("utf-8")
    for client in cluster.clients():
        client.execute_command(*rights(), "+cluster|slots", "+command")
    uri = cluster.url.replace("//", "//limiter:password@")
    store = open_storage(uri)
    receipts = store.decide([charge(POLICIES[0], key=f"venuelimit:{{{n}}}:a") for n in range(9)])
    assert all(receipt.charged for receipt in receipts)
    for client in cluster.clients():
        client.execute_command("ACL", "DELUSER", "limiter")

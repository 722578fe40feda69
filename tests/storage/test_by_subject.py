"""One call a subject where subjects live on different servers, and all or none across these calls."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.cluster import RedisCluster
from redis.crc import key_slot

from flask_venuelimit.decisions import Charge
from flask_venuelimit.policies import FixedWindow
from flask_venuelimit.storage.by_subject import hash_tag
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.several import Cluster
from tests.storage.asking import charge, remaining

TEN, NONE = FixedWindow(10, per=60), FixedWindow(0, per=60)
#: Three subjects, each on another server.
A, B, C = "v:{a}:", "v:{b}:", "v:{c}:"


@pytest.fixture
def store(cluster: Cluster, clock: ManualClock) -> RedisStorage:
    """A store of an empty cluster."""
    cluster.empty()
    assert len({cluster.owner(key).port for key in (A, B, C)}) == 3
    return cluster.store(clock)


@contextmanager
def calls(cluster: Cluster) -> Iterator[list[int]]:
    """How many script calls and deletions each server has had, once it is over."""
    for client in cluster.clients():
        client.config_resetstat()
    counted: list[int] = []
    yield counted
    for client in cluster.clients():
        stats = client.info("commandstats")
        counted.append(
            sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("evalsha", "del"))
        )


def point(*stays: str) -> list[Charge]:
    """Two charges on each of three subjects; those on the subjects in ``stays`` are failure limits'."""
    return [charge(TEN, 1, f"{key}{n}", stays=key in stays) for n in range(2) for key in (A, B, C)]


def test_a_subject_is_one_call_whatever_is_asked_of_it(store: RedisStorage, cluster: Cluster) -> None:
    """Two limits on each of three subjects: three calls to decide, to look, to give back, to forget."""
    store.decide(point())
    with calls(cluster) as counted:
        receipts = store.decide(point())
        store.peek(point())
        store.refund(receipts)
        store.reset([f"{key}{n}" for key in (A, B, C) for n in range(2)])
    assert counted == [4, 4, 4]


def test_answers_come_in_the_order_of_the_charges(store: RedisStorage) -> None:
    """However they were put together on the way."""
    asked = [charge(FixedWindow(10 + n, per=60), 1, f"{key}{n}") for n in range(3) for key in (C, A, B)]
    receipts = store.decide(asked)
    assert [receipt.charge for receipt in receipts] == asked
    assert [receipt.records[0].remaining for receipt in receipts] == [9] * 3 + [10] * 3 + [11] * 3


def test_what_was_charged_first_is_given_back_when_a_later_one_refuses(
    store: RedisStorage, cluster: Cluster
) -> None:
    """Nothing is charged, and each still says whether it would fit; a call a subject, and the refund."""
    with calls(cluster) as counted:
        receipts = store.decide([*point(), charge(NONE, 1, f"{B}no")])
    assert [receipt.charged for receipt in receipts] == [False] * 7
    assert [receipt.records[0].remaining for receipt in receipts] == [10] * 6 + [0]
    assert [remaining(store, TEN, each.cells[0].key) for each in point()] == [10] * 6
    assert sorted(counted) == [1, 1, 2]


@pytest.mark.parametrize("refusing", [A, B, C])
def test_failure_limits_stay_charged_wherever_the_refusal_comes_from(
    store: RedisStorage, refusing: str
) -> None:
    """Asked before it, with it, or after it: the refusal is a failure; others are not charged."""
    receipts = store.decide([*point(A, C), charge(NONE, 1, f"{refusing}no")])
    assert [receipt.charged for receipt in receipts] == [True, False, True] * 2 + [False]
    assert [remaining(store, TEN, each.cells[0].key) for each in point()] == [9, 10, 9] * 2


def test_a_refused_point_leaves_no_key_of_its_own_behind(store: RedisStorage, cluster: Cluster) -> None:
    """What keeps later calls from charging is never written."""
    store.decide([charge(NONE, 1, f"{A}no"), charge(TEN, 1, f"{B}0")])
    assert [client.dbsize() for client in cluster.clients()] == [0, 0, 0]


def test_what_was_charged_first_is_given_back_when_a_later_call_fails(
    store: RedisStorage, cluster: Cluster
) -> None:
    """Failure limits too: nobody holds a receipt by which their refund could come later."""
    owner = cluster.owner(C)
    with owner.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(store.failures):
            store.decide(point(A))
        client.config_set("maxmemory", "0")
    assert [remaining(store, TEN, each.cells[0].key) for each in point()] == [10] * 6


def test_one_server_s_failure_keeps_no_refund_from_the_others(store: RedisStorage, cluster: Cluster) -> None:
    """Each subject is given back what its server can be told of, and the failure is told."""
    receipts = store.decide(point())
    with cluster.owner(A).client() as client:
        client.config_set("maxmemory", "1")
        client.config_set("min-replicas-to-write", "1")
        with pytest.raises(store.failures):
            store.refund(receipts)
        client.config_set("maxmemory", "0")
        client.config_set("min-replicas-to-write", "0")
    assert [remaining(store, TEN, each.cells[0].key) for each in point()] == [9, 10, 10] * 2


def test_a_given_cluster_client_is_asked_a_call_a_subject(cluster: Cluster, clock: ManualClock) -> None:
    """One made by the app keeps its own ways, and counts the same."""
    cluster.empty()
    client = RedisCluster(host="127.0.0.1", port=cluster.servers[0].port, protocol=2)
    store = RedisStorage(client, clock)
    assert [receipt.charged for receipt in store.decide(point())] == [True] * 6
    refused = store.decide([*point(B), charge(NONE, 1, f"{C}no")])
    assert sum(receipt.charged for receipt in refused) == 2
    assert "hunter2" not in repr(store)
    client.close()


@pytest.mark.parametrize(
    ("key", "tag"),
    [
        ("{user1000}.following", "user1000"),
        ("foo{}{bar}", "foo{}{bar}"),
        ("foo{{bar}}zap", "{bar"),
        ("foo{bar}{zap}", "bar"),
        ("foo{bar", "foo{bar"),
        ("foo}bar{", "foo}bar{"),
    ],
)
def test_the_hash_tag_is_what_the_cluster_specification_says(key: str, tag: str) -> None:
    """Its own examples: the text in the first pair of braces, unless that is empty."""
    assert hash_tag(key) == tag


_BEFORE, _INSIDE, _AFTER = (st.text(alphabet=alphabet, max_size=4) for alphabet in ("ab}", "ab", "ab{}"))


@given(st.builds("{0}{{{1}}}{2}".format, _BEFORE, _INSIDE, _AFTER) | _BEFORE)
def test_a_hash_tag_lives_where_its_key_does(key: str) -> None:
    """As redis-py counts slots."""
    assert key_slot(hash_tag(key).encode()) == key_slot(key.encode())

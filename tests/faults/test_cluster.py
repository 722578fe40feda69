"""A cluster that is moved about, loses a server and gets it back, under an app that counts in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import Limit, VenueLimit, by_ip
from flask_venuelimit.storage import open_storage
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, statuses
from tests.faults.conftest import PLENTY
from tests.servers import StoreServer, free_port, wait_until
from tests.several import Cluster, run_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of these tests' own, which each of them leaves well."""
    with run_cluster() as cluster:
        yield cluster


@pytest.fixture
def uri(cluster: Cluster) -> str:
    """The cluster, with time for a busy machine."""
    cluster.empty()
    return cluster.url


def keys(cluster: Cluster) -> list[str]:
    """All keys there are."""
    return [key.decode() for client in cluster.clients() for key in client.scan_iter()]


class Move:
    """A slot on its way from one server to another."""

    def __init__(self, cluster: Cluster, key: str) -> None:
        self._cluster = cluster
        self.source = cluster.owner(key)
        self.target = next(server for server in cluster.servers if server is not self.source)
        self._slot: int = cluster.clients()[0].cluster("KEYSLOT", key)

    def begin(self) -> None:
        """From now on the source sends those on who ask for what it no longer has."""
        self._set(self.target, "IMPORTING", self._id(self.source))
        self._set(self.source, "MIGRATING", self._id(self.target))

    def carry(self, key: str) -> None:
        """Move one key."""
        with self.source.client() as client:
            client.execute_command("MIGRATE", "127.0.0.1", self.target.port, key, 0, 5000)

    def end(self) -> None:
        """Tell everybody who has the slot now."""
        for server in (self.target, self.source, *self._cluster.servers):
            self._set(server, "NODE", self._id(self.target))

    def _id(self, server: StoreServer) -> str:
        with server.client() as client:
            return str(client.execute_command("CLUSTER MYID"), "ascii")

    def _set(self, server: StoreServer, what: str, which: str) -> None:
        with server.client() as client:
            client.execute_command("CLUSTER SETSLOT", self._slot, what, which)


def test_a_slot_that_moves_loses_no_count(
    app: Flask, limit: Limit, cluster: Cluster, told: list[str]
) -> None:
    """Before its key has moved, after it has (ASK), and once all servers know (MOVED): each hit is one."""
    statuses(caller(app), "/", 2)
    (key,) = keys(cluster)
    move = Move(cluster, key)
    for step in (move.begin, lambda: move.carry(key), move.end):
        step()
        statuses(caller(app), "/", 2)
    assert (limit.peek(subject=C).remaining, told) == (992, [])
    assert cluster.owner(key) is move.target


def test_a_subject_whose_keys_are_half_moved_is_waited_for(
    app: Flask, limiter: VenueLimit, cluster: Cluster, counts_again: Callable[[], None]
) -> None:
    """TRYAGAIN: while its keys lie on two servers requests pass, and afterwards they are counted again."""
    for name in ("one", "two"):
        limiter.limit(PLENTY, name=name, key=by_ip).everywhere()
    assert set(statuses(caller(app), "/", 2)) == {404}
    first, _ = keys(cluster)
    move = Move(cluster, first)
    move.begin()
    move.carry(first)
    assert set(statuses(caller(app), "/", 3)) == {404}
    for key in keys(cluster):
        move.carry(key)
    move.end()
    counts_again()


def test_each_server_is_sent_the_script_it_has_forgotten(
    app: Flask, limit: Limit, cluster: Cluster, told: list[str]
) -> None:
    """NOSCRIPT, of any server at any time, is a request that counts once."""
    for client in (*cluster.clients(), *cluster.clients()):
        client.script_flush()
        for address in range(6):
            limit.hit(subject=f"198.51.100.{address}")
    counts = [limit.peek(subject=f"198.51.100.{address}").remaining for address in range(6)]
    assert (counts, told) == ([994] * 6, [])


def test_a_server_that_dies_and_comes_back(
    app: Flask, limit: Limit, cluster: Cluster, clock: ManualClock, told: list[str]
) -> None:
    """Whose subjects it has pass uncounted; it comes back, empty, and everybody is counted."""
    statuses(caller(app), "/", 1)
    (key,) = keys(cluster)
    owner = cluster.owner(key)
    owner.kill()
    assert statuses(caller(app), "/", 5) == [200] * 5
    assert told == ["failed"]
    owner.start()
    wait_until(cluster.are_well, 20, what="the cluster has met again")

    def all_are_counted() -> bool:
        clock.advance(30)
        return all("RateLimit" in caller(app, address).get("/").headers for address in (A, C, "203.0.113.9"))

    wait_until(all_are_counted, what="each subject is counted")
    assert told[-1] == "recovered"


def test_a_silent_cluster_is_waited_for_side_by_side(
    app: Flask, cluster: Cluster, clock: ManualClock, told: list[str], counts_again: Callable[[], None]
) -> None:
    """Thirty requests at once wait together, not one after the other for the servers to be asked anew."""
    limiter = VenueLimit(app, storage=open_storage(cluster.hasty_url, clock=clock))
    app.add_url_rule("/", "home", limiter.limit(PLENTY, key=by_ip)(lambda: "ok"))
    statuses(caller(app), "/", 1)
    for server in cluster.servers:
        server.pause()
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(statuses, caller(app), "/", 1) for _ in range(30)]
        # each by itself waits a tenth of a second; asking three servers in turn, thirty times, takes nine
        assert all(each.result(4) == [200] for each in asked)
    for server in cluster.servers:
        server.resume()
    wait_until(cluster.are_well, 20, what="the cluster has met again")
    counts_again()
    assert told[-1] == "recovered"


def test_a_cluster_that_is_down_at_the_start_lets_the_app_start(app: Flask, told: list[str]) -> None:
    """Nothing is asked before the first request, which passes uncounted."""
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    app.add_url_rule("/", "home", VenueLimit(app).limit(PLENTY, key=by_ip)(lambda: "ok"))
    assert (statuses(caller(app), "/", 3), told) == ([200] * 3, ["failed"])


def test_a_server_that_is_no_cluster_is_a_failure(
    app: Flask, valkey: StoreServer, told: list[str], caplog: Any
) -> None:
    """What redis-py raises then is no RedisError; requests pass all the same, and the log says why."""
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis+cluster://127.0.0.1:{valkey.port}"
    app.add_url_rule("/", "home", VenueLimit(app).limit(PLENTY, key=by_ip)(lambda: "ok"))
    assert (statuses(caller(app), "/", 3), told) == ([200] * 3, ["failed"])
    assert "Cluster mode is not enabled" in caplog.text

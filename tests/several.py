"""Stores that are several servers: a cluster of three, and a primary with a replica under Sentinel."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis

from flask_venuelimit.storage.clients import Line
from flask_venuelimit.storage.connecting import cluster as cluster_line
from flask_venuelimit.storage.redis import RedisStorage
from tests.parts import SERVER, require
from tests.servers import StoreServer, wait_until

_SLOTS = 16384
#: The name of the service that Sentinel watches over.
SERVICE = "venue"


class Cluster:
    """A cluster of three servers, a third of the slots each."""

    def __init__(self, servers: list[StoreServer]) -> None:
        self.servers = servers
        self._clients: list[Any] = [server.client() for server in servers]
        self._line: Line | None = None

    @property
    def url(self) -> str:
        """The address, as VENUELIMIT_STORAGE_URI takes it, with time enough for a busy machine."""
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis+cluster://{hosts}?socket_timeout=10&socket_connect_timeout=10"

    @property
    def hasty_url(self) -> str:
        """The same with the time-outs an app has."""
        return self.url.partition("?")[0]

    def clients(self) -> list[Any]:
        """A client of each server by itself."""
        return self._clients

    def store(self, clock: Callable[[], float] | None = None) -> RedisStorage:
        """A store of these servers, over connections that all such stores share."""
        if self._line is None:
            self._line = cluster_line(self.url, {})
        return RedisStorage.over(self._line, clock)

    def empty(self) -> None:
        """Forget every key."""
        for client in self.clients():
            client.flushall()

    def owner(self, key: str) -> StoreServer:
        """The server that has a key."""
        slot = self.clients()[0].cluster("KEYSLOT", key)
        return self.owner_of_slot(slot)

    def owner_of_slot(self, slot: int) -> StoreServer:
        """The server that has a slot, as the servers themselves say."""
        for server, client in zip(self.servers, self.clients(), strict=True):
            own = client.cluster("MYID").decode()
            ranges = client.execute_command("CLUSTER SLOTS")
            if any(first <= slot <= last and node[2].decode() == own for first, last, node, *_ in ranges):
                return server
        raise LookupError(slot)

    def are_well(self) -> bool:
        """Whether every server says that the cluster is."""
        return all(_is_well(server, len(self.servers)) for server in self.servers)


def _is_well(server: StoreServer, known: int) -> bool:
    with server.client() as client:
        try:
            info: Any = client.cluster("INFO")
        except redis.RedisError:
            return False
    wanted = {"cluster_state": "ok", "cluster_known_nodes": str(known), "cluster_slots_assigned": str(_SLOTS)}
    return all(info.get(name) == value for name, value in wanted.items())


@contextmanager
def run_cluster() -> Iterator[Cluster]:
    """Run a cluster of three."""
    settings = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000")
    with ExitStack() as stack:
        servers = [StoreServer(*settings, port=_free_ports()) for _ in range(3)]
        cluster = Cluster([stack.enter_context(server) for server in servers])
        share = _SLOTS // 3 + 1
        for number, client in enumerate(cluster.clients()):
            slots = range(number * share, min((number + 1) * share, _SLOTS))
            client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            # Redis 6.2 knows no ADDSLOTSRANGE
            client.execute_command("CLUSTER ADDSLOTS", *slots)
        for server in cluster.servers[1:]:
            cluster.clients()[0].execute_command("CLUSTER MEET", "127.0.0.1", server.port)
        wait_until(cluster.are_well, 30, what="the cluster has met")
        yield cluster


def _free_ports() -> int:
    """Find a port that is free together with the one 10,000 above, over which a cluster's servers talk."""
    for _ in range(200):
        port = random.randint(20_000, 22_000)
        if _is_free(port) and _is_free(port + 10_000):
            return port
    raise RuntimeError("no two free ports 10,000 apart")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class SentinelServer(StoreServer):
    """One Sentinel, which watches over a primary; see :class:`StoreServer`."""

    def __init__(self, primary: StoreServer) -> None:
        super().__init__()
        self._conf = Path(self._folder, "sentinel.conf")
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self._folder}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary.port} 1",
            f"sentinel down-after-milliseconds {SERVICE} 500",
            f"sentinel failover-timeout {SERVICE} 3000",
        ]
        self._conf.write_text("\n".join(lines) + "\n")

    def _command(self) -> list[str]:
        return [require(SERVER), str(self._conf), "--sentinel"]


class Watched(NamedTuple):
    """A primary and a replica, and the Sentinel that watches over them."""

    sentinel: SentinelServer
    primary: StoreServer
    replica: StoreServer

    @property
    def url(self) -> str:
        """The address, as VENUELIMIT_STORAGE_URI takes it, with time enough for a busy machine."""
        return f"{self.hasty_url}?socket_timeout=10&socket_connect_timeout=10"

    @property
    def hasty_url(self) -> str:
        """The same with the time-outs an app has."""
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/{SERVICE}"


@contextmanager
def run_sentinel() -> Iterator[Watched]:
    """Run a primary, a replica of it, and one Sentinel."""
    with ExitStack() as stack:
        primary = stack.enter_context(StoreServer("--repl-diskless-sync-delay", "0"))
        replica = stack.enter_context(StoreServer("--replicaof", "127.0.0.1", str(primary.port)))
        with primary.client() as client:
            # Sentinel asks the primary every ten seconds, and has to see the replica the first time
            wait_until(lambda: _has_replica(client), what="the replica is in step")
        sentinel = SentinelServer(primary)
        stack.enter_context(sentinel)
        with sentinel.client() as client:
            wait_until(lambda: _sees_replica(client), what="Sentinel sees the replica")
        yield Watched(sentinel, primary, replica)


def _has_replica(client: Any) -> bool:
    return bool(client.info("replication").get("slave0", {}).get("state") == "online")


def _sees_replica(client: Any) -> bool:
    found = client.sentinel_slaves(SERVICE)
    return len(found) == 1 and found[0]["flags"] == "slave"

"""redis-py clients of every kind: how a command is sent, and what is seen to when that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import finalize

import redis
from redis.cluster import ClusterPipeline, RedisCluster
from redis.exceptions import (
    AskError,
    InvalidResponse,
    MovedError,
    NoScriptError,
    RedisClusterException,
    ResponseError,
    TryAgainError,
)

from ..errors import ConfigurationError
from .forks import mend_in_children

#: What redis-py raises where a server fails; a cluster client's own error is no RedisError.
FAILURES: tuple[type[Exception], ...] = (redis.RedisError, RedisClusterException, OSError)

Client = redis.Redis | RedisCluster
_LOCK, _RLOCK = type(threading.Lock()), type(threading.RLock())
_PLACES = ("host", "port", "path", "db")


class Line:
    """Sends commands over a redis-py client, which keeps its own time-outs and retries.

    :param client: a client of one server, Sentinel's of a service, or a cluster's.
    :raises ConfigurationError: ``client`` is no such client.
    """

    def __init__(self, client: Client) -> None:
        self._client = _checked(client)
        mend_in_children(self)

    @property
    def client(self) -> Client:
        """The client itself."""
        return self._client

    @property
    def sharded(self) -> bool:
        """Whether keys live on several servers, so that those of one command have to share a slot."""
        return isinstance(self.client, RedisCluster)

    def send(self, key: str, *command: str | int) -> Any:
        """Send a command and wait for its answer.

        :param key: one of the command's keys.
        :raises NoScriptError: the server does not know the script; nothing was done.
        :raises Exception: one of :data:`FAILURES`. Whether the command was carried out is not known.
        """
        try:
            return self._execute(key, command)
        except NoScriptError:
            raise
        except BaseException as error:
            self.mistrust()
            if self._gives_away(error):
                raise ResponseError("the server's error repeats the password, so it is not shown") from None
            if isinstance(error, FAILURES) or not isinstance(error, Exception):
                raise
            # redis-py stumbles over answers that it does not expect, with whatever Python raises then
            raise InvalidResponse(f"redis-py failed with {type(error).__name__}: {error}") from error

    def mistrust(self) -> None:
        """Close idle connections after a failure: they may be as dead, or lead to yesterday's primary.

        Nor may an answer that nobody has read be taken for the next one.
        """
        for pool in _pools(self.client):
            pool.disconnect(inuse_connections=False)

    def _gives_away(self, error: BaseException) -> bool:
        """Whether a text that will be logged holds a password: some servers repeat what they do not know."""
        client = self._existing()
        pools = () if client is None else _pools(client)
        words = [pool.connection_kwargs.get("password") for pool in pools]
        return any(word and str(word) in str(error) for word in words)

    def place(self) -> str:
        """Where the client leads, without passwords."""
        client: Any = self.client
        if hasattr(client, "get_nodes"):
            return f"cluster of {', '.join(sorted(node.name for node in client.get_nodes()))}"
        service = getattr(client.connection_pool, "service_name", None)
        given = client.connection_pool.connection_kwargs
        places = [f"{name}={given[name]!r}" for name in _PLACES if name in given]
        return ", ".join([*([] if service is None else [f"service={service!r}"]), *places])

    def _execute(self, key: str, command: tuple[str | int, ...]) -> Any:
        execute: Callable[..., Any] = self.client.execute_command
        return execute(*command)

    def after_fork(self) -> None:
        """Free what threads of the parent, which a child does not have, may have locked."""
        for thing in _reachable(self._existing()):
            for name, value in list(vars(thing).items()):
                if isinstance(value, _RLOCK):
                    setattr(thing, name, threading.RLock())
                elif isinstance(value, _LOCK):
                    setattr(thing, name, threading.Lock())

    def _existing(self) -> Client | None:
        return self._client


class ClusterLine(Line):
    """Sends each command to the server that has its key, once, and follows where the cluster sends it.

    redis-py's own way asks all servers anew where one has failed, and every request that failed waits for
    that, one after the other. Here the next request does, which the breaker lets probe alone.

    :param make: makes the client; called at the first command, since a cluster's client connects at once.
    :param place: where that leads, without passwords.
    """

    sharded = True

    def __init__(self, make: Callable[[], RedisCluster], place: str) -> None:
        self._make = make
        self._made: RedisCluster | None = None
        self._place = place
        self._outdated = False
        mend_in_children(self)

    @property
    def client(self) -> RedisCluster:
        """The client itself, made where there is none yet.

        :raises Exception: one of :data:`FAILURES`: no server answers.
        """
        if self._made is None:
            # no lock: threads that wait for a silent server wait side by side
            self._made = self._make()
            close_with(self, self._made)
        return self._made

    def mistrust(self) -> None:
        """Close idle connections, and ask who has which slots before the next command is sent."""
        if self._made is not None:
            self._outdated = True
            super().mistrust()

    def place(self) -> str:
        """Where the client leads, without passwords; asks nobody."""
        return self._place

    def _existing(self) -> RedisCluster | None:
        return self._made

    def _execute(self, key: str, command: tuple[str | int, ...]) -> Any:
        client: Any = self.client
        if self._outdated:
            client.nodes_manager.initialize()
            self._outdated = False
        node = client.get_node_from_key(key)
        try:
            return client.get_redis_connection(node).execute_command(*command)
        except (MovedError, AskError, TryAgainError):
            # the server did nothing: redis-py knows the way, and remembers it
            return super()._execute(key, command)


def close_with(line: Line, client: Client) -> None:
    """Close a client's connections once the line to it is gone, for a client that nobody else has."""
    finalize(line, _close, client).atexit = False


def _close(client: Client) -> None:
    for pool in _pools(client):
        pool.disconnect()


def _checked(client: Any) -> Client:
    """Take a redis-py client that answers before it returns."""
    pipelines = (redis.client.Pipeline, ClusterPipeline)
    if isinstance(client, redis.Redis | RedisCluster) and not isinstance(client, pipelines):
        return client
    raise ConfigurationError(
        f"storage: RedisStorage cannot use a {type(client).__module__}.{type(client).__qualname__}. Use a "
        "redis-py client such as redis.Redis(host=...), no pipeline and not the one of redis.asyncio."
    )


def _pools(client: Any) -> Iterator[redis.ConnectionPool]:
    """All pools of connections that a client draws from."""
    if hasattr(client, "get_nodes"):
        nodes = [node.redis_connection for node in client.get_nodes()]
        yield from (node.connection_pool for node in nodes if node is not None)
    else:
        yield client.connection_pool
        sentinels = getattr(client.connection_pool, "sentinel_manager", None)
        if sentinels is not None:
            yield from (each.connection_pool for each in sentinels.sentinels)


def _reachable(root: object) -> Iterator[object]:
    """Walk the objects of redis-py's own classes that hang together."""
    seen: set[int] = set()
    todo = [root]
    while todo:
        thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            todo += thing.values()
        elif isinstance(thing, list | tuple | set):
            todo += thing
        elif _is_redis_py_s(thing):
            yield thing
            todo += vars(thing).values()


def _is_redis_py_s(thing: object) -> bool:
    return hasattr(thing, "__dict__") and any(
        base.__module__.partition(".")[0] == "redis" for base in type(thing).__mro__
    )

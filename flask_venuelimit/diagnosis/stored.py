"""VL101 to VL108: whether the storage answers, keeps what it is given, and is the same for every process."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import redis

from ..storage.memory import MemoryStorage
from ..storage.redis import RedisStorage
from .findings import ERROR, NOTE, WARNING, Check
from .setup import Setup

#: How servers begin what they say where they take no writes now, whoever asks.
_CLOSED = ("OOM", "READONLY", "MISCONF", "NOREPLICAS")
_OLDEST = (6, 2)
#: Seconds that a request waits for a storage that fails; longer, and the app seems to hang.
_PATIENCE = 10
_WORKERS = re.compile(r"(?:^|\s)(?:-w\s*|--workers[=\s]\s*)(\d+)")


def silent(setup: Setup) -> Iterator[str]:
    """It does not answer."""
    error = setup.checkup.failure
    if error is not None:
        # an error of somebody else's store may say anything
        text = f": {error}" if isinstance(setup.state.raw_storage, RedisStorage) and str(error) else ""
        told = f"{type(error).__name__}{text.rstrip('.')}"
        yield f"{_called(setup)} does not answer as a storage should. {told}."


def takes_no_writes(setup: Setup) -> Iterator[str]:
    """It answers, and counts nothing."""
    for words in dict.fromkeys(words for words in setup.checkup.refused.values() if _is_closed(words)):
        yield f"{_called(setup)} answers, but takes no writes. It says: {words.rstrip('.')}."


def lacks_rights(setup: Setup) -> Iterator[str]:
    """Its user may not do what limits do."""
    refused = {name: words for name, words in setup.checkup.refused.items() if not _is_closed(words)}
    if refused:
        words = next(iter(refused.values())).rstrip(".")
        names = ", ".join(refused)
        yield f"The user of {_called(setup)} lacks the right to {names}. The server says: {words}."


def evicts(setup: Setup) -> Iterator[str]:
    """It throws counts away when memory runs short."""
    for where, told in setup.checkup.told.items():
        policy = _text(told, "maxmemory_policy")
        if policy not in ("", "noeviction"):
            bound = "" if told.get("maxmemory") else ", once it has a maxmemory"
            yield f"{_server(setup, where)} has maxmemory-policy {policy}: it throws counts away{bound}."


def too_old(setup: Setup) -> Iterator[str]:
    """It is of a version that limits are not made for."""
    for where, told in setup.checkup.told.items():
        version = _text(told, "redis_version")
        numbers = _numbers(version)
        if "valkey_version" not in told and numbers and numbers < _OLDEST:
            yield f"{_server(setup, where)} is Redis {version}."


def not_looked_at(setup: Setup) -> Iterator[str]:
    """It does not tell everybody how it is."""
    hidden = [f"{where} tells no maxmemory-policy" for where in _without_policy(setup)]
    for words in dict.fromkeys([*setup.checkup.unseen, *hidden]):
        yield (
            f"Whether {_called(setup)} throws counts away, and which version it is, could not be looked at: "
            f"{words.rstrip('.')}."
        )


def _without_policy(setup: Setup) -> Iterable[str]:
    told = setup.checkup.told.items()
    return [where or "the server" for where, each in told if not _text(each, "maxmemory_policy")]


def counts_apart(setup: Setup) -> Iterator[str]:
    """Every worker counts for itself."""
    workers = _workers(setup.environ)
    if isinstance(setup.state.raw_storage, MemoryStorage) and workers:
        yield f"memory:// counts in one process, and {workers} starts several."


def waits_long(setup: Setup) -> Iterator[str]:
    """A client that the app has made waits long for a server that does not answer."""
    storage = setup.state.raw_storage
    if not isinstance(storage, RedisStorage) or not setup.storage_given:
        return
    # a cluster's client may not be had while the cluster does not answer
    if setup.checkup.failure is not None:
        return
    pool = getattr(storage.client, "connection_pool", None)
    seconds = 0.0 if pool is None else _patience(pool)
    if seconds > _PATIENCE:
        told = "for ever" if math.isinf(seconds) else f"up to {seconds:.0f} s"
        yield f"The redis-py client that the app has made waits {told} for a server that does not answer."


def _patience(pool: redis.ConnectionPool) -> float:
    """Seconds that a client waits for an answer, all its tries together, pauses aside."""
    # it connects when it is first used; until then it only tells redis-py's own defaults
    connection: Any = pool.connection_class(**pool.connection_kwargs)
    tries = connection.retry._retries + 1
    timeout = connection.socket_timeout
    return math.inf if timeout is None or tries < 1 else float(tries * timeout)


def _workers(environ: Mapping[str, str]) -> str:
    """What in the environment says that the server runs several workers; empty if nothing does."""
    named = _WORKERS.findall(environ.get("GUNICORN_CMD_ARGS", ""))
    if named:
        return f"GUNICORN_CMD_ARGS with {named[-1]} workers" if int(named[-1]) > 1 else ""
    for name in ("WEB_CONCURRENCY", "UWSGI_PROCESSES", "UWSGI_WORKERS"):
        value = environ.get(name, "").strip()
        if value.isdecimal() and int(value) > 1:
            return f"{name}={value}"
    return ""


def _is_closed(words: str) -> bool:
    return words.startswith(_CLOSED)


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _called(setup: Setup) -> str:
    storage = setup.state.raw_storage
    return repr(storage) if isinstance(storage, RedisStorage) else type(storage).__name__


def _server(setup: Setup, where: str) -> str:
    return where or _called(setup)


CHECKS = (
    Check(
        "VL101",
        ERROR,
        silent,
        "While it does not, limits do what on_error says: by default everybody passes uncounted, and budgets "
        "refuse everybody.",
        "Start the server, or correct its address, user and password, or what stands between it and the app.",
    ),
    Check(
        "VL102",
        ERROR,
        takes_no_writes,
        "Nothing can be counted there: limits do what on_error says, by default let everybody pass.",
        "READONLY: name the primary, not a replica. OOM: give limits more memory, or a server of their own. "
        "MISCONF, NOREPLICAS: see to its disk, or its replicas.",
    ),
    Check(
        "VL103",
        ERROR,
        lacks_rights,
        "Requests that need it are not counted: limits do what on_error says, by default let everybody pass.",
        "Give it the rights that the documentation lists for a user with no more than is needed.",
    ),
    Check(
        "VL104",
        WARNING,
        evicts,
        "Whose count is thrown away starts anew, and a flood of made-up callers throws away everybody's.",
        "CONFIG SET maxmemory-policy noeviction, on a server of limits' own.",
    ),
    Check(
        "VL105",
        ERROR,
        too_old,
        "Limits are made for, and tested on, Redis 6.2 and later, and Valkey.",
        "Use a newer server.",
    ),
    Check(
        "VL106",
        NOTE,
        not_looked_at,
        "Limits count all the same; what may be amiss there is not known here.",
        "Ask whoever runs the server, or let its user run INFO: ACL SETUSER limiter +info.",
    ),
    Check(
        "VL107",
        WARNING,
        counts_apart,
        "Each client gets every limit once a worker, budgets too.",
        "Set VENUELIMIT_STORAGE_URI to a Redis, or run one process.",
    ),
    Check(
        "VL108",
        NOTE,
        waits_long,
        "When the server fails, the first request waits that long, and one more at each probe.",
        "Give the client a socket_timeout, a socket_connect_timeout and retry=Retry(NoBackoff(), 0), or name "
        "the server in VENUELIMIT_STORAGE_URI instead.",
    ),
)

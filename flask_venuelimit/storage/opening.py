"""How ``VENUELIMIT_STORAGE_URI``, or an object in its place, becomes a store. Nothing is connected to yet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from .clients import Line
from .connecting import bad, cluster, one_server, sentinels, split
from .memory import MemoryStorage
from .noop import NoopStorage
from .protocols import Storage
from .redis import RedisStorage
from .sketch import LEAST, SketchStorage

Clock = Callable[[], float]

_SCHEMES = ("memory", "redis", "rediss", "unix", "valkey", "valkeys", "redis+sentinel", "redis+cluster")
_KNOWN = ", ".join(f"{scheme}://" for scheme in _SCHEMES)


def open_storage(source: Any, options: Mapping[str, Any] | None = None, clock: Clock | None = None) -> Any:
    """Make the store that is named or given.

    :param source: ``VENUELIMIT_STORAGE_URI``; None: no storage, nobody counts; a store, which is taken as
        it is; or a redis-py client.
    :param options: redis-py's own options; they outrank the defaults. Other stores have no use for them.
    :param clock: reads seconds, in place of the store's own clock; a store that is given keeps its own.
    :returns: a :class:`Storage`.
    :raises ConfigurationError: the source cannot be kept. The text never shows a password.
    """
    if source is None:
        return NoopStorage()
    if isinstance(source, str):
        return _named(source, options or {}, clock)
    return as_storage(source, clock)


def as_storage(given: Any, clock: Clock | None = None) -> Storage:
    """Take a store as it is, and a redis-py client as the store that asks it.

    :raises ConfigurationError: it is neither.
    """
    usable = isinstance(given, Storage) and not isinstance(given, type)
    return given if usable else RedisStorage(given, clock)


def _named(uri: str, options: Mapping[str, Any], clock: Clock | None) -> MemoryStorage | RedisStorage:
    scheme = _scheme(uri)
    if scheme == "memory":
        return _memory(uri, clock or time.monotonic)
    if scheme not in _SCHEMES:
        raise bad(f"names the unknown scheme {scheme}://. Use one of {_KNOWN}.")
    return RedisStorage.over(_line(uri, scheme, options), clock)


def _line(uri: str, scheme: str, options: Mapping[str, Any]) -> Line:
    if scheme == "redis+sentinel":
        return sentinels(uri, options)
    if scheme == "redis+cluster":
        return cluster(uri, options)
    return one_server(uri, scheme, options)


def _scheme(uri: str) -> str:
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", uri)
    if match is None:
        raise bad(f"has no scheme. Use one of {_KNOWN}.")
    return match[1].lower()


def _memory(uri: str, clock: Clock) -> MemoryStorage:
    parts = split(uri)
    if parts.netloc or parts.path.strip("/") or parts.fragment:
        raise bad("has more than options after memory://. Use memory:// or memory://?max_keys=100000.")
    query = parse_qs(parts.query, keep_blank_values=True)
    unknown = set(query).difference(("max_keys", "sketch"))
    if unknown:
        raise bad(f"has the unknown option {min(unknown)!r}. memory:// knows max_keys and sketch only.")
    max_keys = _max_keys(query["max_keys"]) if "max_keys" in query else None
    if "sketch" in query:
        return _sketch(query["sketch"], max_keys, clock)
    return MemoryStorage(clock=clock) if max_keys is None else MemoryStorage(max_keys, clock)


def _max_keys(given: list[str]) -> int:
    # one text, digits only, not all of them 0
    if not re.fullmatch("0*[1-9][0-9]{,14}", "&".join(given)):
        raise bad(f"has max_keys={', '.join(given)!r}. Use one whole number of at least 1.")
    return int(given[0])


def _sketch(given: list[str], max_keys: int | None, clock: Clock) -> SketchStorage:
    number = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{,9})?|\.[0-9]{1,9}", "&".join(given))
    if number is None or float(given[0]) < LEAST:
        raise bad(f"has sketch={', '.join(given)!r}. Use one number of MiB from {LEAST} on, such as 8.")
    try:
        return SketchStorage(float(given[0]), max_keys, clock)
    except (MemoryError, OverflowError):
        problem = bad(
            f"has sketch={given[0]!r}, and there are not so many MiB to be had. Use a smaller number."
        )
    raise problem

"""How ``VENUELIMIT_STORAGE_URI``, or an object in its place, becomes a store. Nothing is connected to yet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import ConfigurationError
from .memory import MemoryStorage
from .noop import NoopStorage
from .redis import RedisStorage

Clock = Callable[[], float]

_SCHEMES = ("memory", "redis", "rediss", "unix", "valkey", "valkeys", "redis+sentinel", "redis+cluster")
_KNOWN = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
#: What redis-py calls the schemes it does not know.
_TRANSLATED = {"valkey": "redis", "valkeys": "rediss"}
_CONNECT_SECONDS = 0.25
_ANSWER_SECONDS = 0.1


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
    return source if _is_store(source) else RedisStorage(source, clock)


def _named(uri: str, options: Mapping[str, Any], clock: Clock | None) -> MemoryStorage | RedisStorage:
    scheme = _scheme(uri)
    if scheme == "memory":
        return _memory(uri, clock or time.monotonic)
    if scheme in ("redis+sentinel", "redis+cluster"):
        raise _bad(f"names {scheme}://, which is not built yet. Use redis:// for now.")
    if scheme not in _SCHEMES:
        raise _bad(f"names the unknown scheme {scheme}://. Use one of {_KNOWN}.")
    return RedisStorage(_redis(uri, scheme, options), clock)


def _is_store(source: object) -> bool:
    return all(hasattr(source, name) for name in ("decide", "peek", "refund", "reset", "counts", "failures"))


def _scheme(uri: str) -> str:
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", uri)
    if match is None:
        raise _bad(f"has no scheme. Use one of {_KNOWN}.")
    return match[1].lower()


def _memory(uri: str, clock: Clock) -> MemoryStorage:
    parts = _split(uri)
    if parts.netloc or parts.path.strip("/") or parts.fragment:
        raise _bad("has more than options after memory://. Use memory:// or memory://?max_keys=100000.")
    query = parse_qs(parts.query, keep_blank_values=True)
    given = query.pop("max_keys", ["100000"])
    if query:
        raise _bad(f"has the unknown option {min(query)!r}. memory:// knows max_keys only.")
    # one text, digits only, not all of them 0
    if not re.fullmatch("0*[1-9][0-9]{,14}", "&".join(given)):
        raise _bad(f"has max_keys={', '.join(given)!r}. Use one whole number of at least 1.")
    return MemoryStorage(int(given[0]), clock)


def _redis(uri: str, scheme: str, options: Mapping[str, Any]) -> redis.Redis:
    """Make a client that gives up quickly and does not try again: the breaker sees to what follows."""
    parts = _split(uri)
    _check_place(parts, scheme)
    url = _TRANSLATED.get(scheme, scheme) + uri[len(scheme) :]
    defaults: dict[str, Any] = {
        "socket_connect_timeout": _CONNECT_SECONDS,
        "socket_timeout": _ANSWER_SECONDS,
        # redis-py 8 would try ten times
        "retry": Retry(NoBackoff(), 0),
    }
    problem = ""
    try:
        client = redis.Redis.from_url(url, **defaults | dict(options))
        pool = client.connection_pool
        # made and thrown away unconnected: only so does redis-py tell which options it knows
        pool.connection_class(**pool.connection_kwargs)
    except (TypeError, ValueError, redis.RedisError) as error:
        problem = _name_option(error, [*parse_qs(parts.query, keep_blank_values=True), *options])
    if problem:
        # outside the except block, so that no traceback leads to redis-py's own text and the URL in it
        raise ConfigurationError(problem)
    return client


def _split(uri: str) -> SplitResult:
    try:
        parts = urlsplit(uri)
        sound = parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise _bad(
            "has a host or port that cannot be read. Use a port from 1 to 65535, and percent-encode "
            "special characters in a password."
        )
    return parts


def _check_place(parts: SplitResult, scheme: str) -> None:
    if parts.fragment:
        raise _bad("has a # in it. Percent-encode special characters in a password.")
    if scheme == "unix":
        if not parts.path.strip("/"):
            raise _bad("names no socket. Use unix:///path/to/redis.sock.")
    elif not re.fullmatch("/?[0-9]*/?", parts.path):
        raise _bad("has a path that is no database number. Use redis://host:port/0.")


def _name_option(error: Exception, names: list[str]) -> str:
    """Say which option redis-py would not take; its value may be a secret, so only by its name."""
    quoted = [name for name in names if name in re.findall(r"\w+", str(error))]
    which = f"the option {quoted[0]!r}" if quoted else "an option"
    return (
        f"VENUELIMIT_STORAGE_URI or VENUELIMIT_STORAGE_OPTIONS has {which} that redis-py does not take "
        f"({type(error).__name__}). The names and values are those of redis.Redis(...)."
    )


def _bad(what: str) -> ConfigurationError:
    return ConfigurationError(f"VENUELIMIT_STORAGE_URI {what}")

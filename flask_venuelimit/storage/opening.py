"""How ``VENUELIMIT_STORAGE_URI`` becomes a store. Nothing is connected to yet."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ..errors import ConfigurationError
from .memory import MemoryStorage
from .noop import NoopStorage

Clock = Callable[[], float]

_KNOWN = (
    "memory://, redis://, rediss://, unix://, valkey://, valkeys://, redis+sentinel:// and redis+cluster://"
)


def open_storage(
    uri: str | None, options: Mapping[str, Any] | None = None, clock: Clock | None = None
) -> NoopStorage | MemoryStorage:
    """Make the store that a URI names.

    :param uri: ``VENUELIMIT_STORAGE_URI``, or None: no storage, nobody counts.
    :param options: redis-py's own options; they outrank the defaults. ``memory://`` has no use for them.
    :param clock: reads seconds, in place of the store's own clock.
    :raises ConfigurationError: the URI cannot be kept. The text never shows a password.
    """
    if uri is None:
        return NoopStorage()
    scheme = _scheme(uri)
    if scheme == "memory":
        return _memory(uri, clock or time.monotonic)
    raise _bad(f"names the unknown scheme {scheme}://. Use one of {_KNOWN}.")


def _scheme(uri: str) -> str:
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*)://", uri)
    if match is None:
        raise _bad(f"has no scheme. Use one of {_KNOWN}.")
    return match[1].lower()


def _memory(uri: str, clock: Clock) -> MemoryStorage:
    parts = urlsplit(uri)
    if parts.netloc or parts.path.strip("/") or parts.fragment:
        raise _bad("has more than options after memory://. Use memory:// or memory://?max_keys=100000.")
    query = parse_qs(parts.query, keep_blank_values=True)
    for name in query:
        if name != "max_keys":
            raise _bad(f"has the unknown option {name!r}. memory:// knows max_keys only.")
    given = query.get("max_keys", ["100000"])
    if len(given) != 1 or not re.fullmatch("[0-9]{1,15}", given[0]) or int(given[0]) < 1:
        raise _bad(f"has max_keys={'&'.join(given)!r}. Use one whole number of at least 1.")
    return MemoryStorage(int(given[0]), clock)


def _bad(what: str) -> ConfigurationError:
    return ConfigurationError(f"VENUELIMIT_STORAGE_URI {what}")

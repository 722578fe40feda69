"""How each kind of setting is checked: what it may be, and what to say where it is not.

A function takes the setting's name, which its message names, and the value as the app has it; ``proxies`` and
``salt`` make one thing of two settings. What it raises is a ConfigurationError.
"""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Mapping
from typing import Any

from .addresses import Network, parse_network
from .decisions import ON_ERROR
from .edges import EDGES
from .errors import ConfigurationError
from .policies import Policy, as_policies
from .proxies import Proxies

PREFIX = "VENUELIMIT_"

_HEADER_KINDS = ("draft", "trio", "x")
_PAGE_MODES = ("redirect", "inline")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


def switch(name: str, value: object) -> bool:
    """Read a yes-or-no setting; text counts as environments write it.

    :raises ConfigurationError: the value is neither.
    """
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ConfigurationError(f"{name} is {value!r}, which is neither true nor false. Use True or False.")


def listed(name: str, value: object) -> tuple[str, ...]:
    """Read a list setting; comma-separated text counts, as environments give it.

    :raises ConfigurationError: the value is no list of text.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple, set, frozenset)) or not all(isinstance(p, str) for p in parts):
        raise ConfigurationError(f"{name} is {value!r}. Use a list of texts, or one text with commas.")
    return tuple(part.strip() for part in parts if part.strip())


def optional_text(name: str, value: object) -> str | None:
    """Read text; empty text is none."""
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} has to be text, not {type(value).__name__}.")
    return value.strip() or None


def mapping(name: str, value: object) -> Mapping[str, Any]:
    """Read a dict of redis-py's own options."""
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} is {value!r}. Use a dict of redis-py's own options.")
    return dict(value)


def on_error(name: str, value: object) -> str:
    """Read what becomes of requests while storage fails."""
    if value not in ON_ERROR:
        raise ConfigurationError(f"{name} is {value!r}. Use one of: {', '.join(ON_ERROR)}.")
    return str(value)


def plans(name: str, value: object) -> Mapping[str, tuple[Policy, ...]]:
    """Read an app's own policies for named limits."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigurationError(
            f"{name} is {value!r}. Use a dict of limits' names and policies, such as "
            "{'submit-answer': '20/minute'}."
        )
    found = {}
    for key, policy in value.items():
        try:
            found[key] = as_policies(policy)
        except ValueError as error:
            raise ConfigurationError(f"{name} has for {key!r} what is no policy: {error}") from None
    return found


def proxies(named: tuple[str, ...], header: str | None) -> Proxies:
    """Make of names, networks and a header the proxies that are believed.

    :raises ConfigurationError: a network holds every address of IPv4 or IPv6.
    """
    name = PREFIX + "TRUSTED_PROXIES"
    texts = [text for each in named for text in (EDGES[each].networks if each in EDGES else (each,))]
    written = [text for text in texts if text != "unix"]
    trusted = networks(name, written)
    for text, network in zip(written, trusted, strict=True):
        if network.prefixlen == 0:
            raise ConfigurationError(
                f"{name} names {text!r}, which is everybody: then any client could write itself any address. "
                "Name the networks your proxies connect from."
            )
    return Proxies(trusted, "unix" in texts, header or Proxies.header)


def believed(name: str, value: object) -> tuple[str, ...]:
    """Read who is believed: networks, addresses, names of known sets, ``unix``."""
    named = listed(name, value)
    for text in named:
        if not set(text) & set(".:") and text not in (*EDGES, "unix"):
            raise ConfigurationError(
                f"{name} names {text!r}, which is no known set of networks. Known are: "
                f"{', '.join(sorted(EDGES))}, and unix for a peer on a unix socket."
            )
    return named


def header_name(name: str, value: object) -> str:
    """Read the name of the header in which proxies name the client."""
    plain = value.strip().replace("-", "") if isinstance(value, str) else ""
    if not isinstance(value, str) or not (plain.isascii() and plain.isalnum()):
        raise ConfigurationError(
            f"{name} is {value!r}. Use X-Forwarded-For, Forwarded, or the name of a header that holds "
            "exactly one address, such as X-Real-IP."
        )
    return value.strip()


def networks(name: str, value: object) -> tuple[Network, ...]:
    """Read networks and single addresses."""
    found = []
    for text in listed(name, value):
        try:
            found.append(parse_network(text))
        except ValueError as error:
            raise ConfigurationError(
                f"{name} names {text!r}, which is no network ({error}). Use networks such as 192.0.2.0/24 or "
                "single addresses."
            ) from None
    return tuple(found)


def key_prefix(name: str, value: object) -> str:
    """Read what storage keys begin with."""
    text = str(value)
    if not text or not text.isascii() or not text.isprintable() or set(text) & set("{} "):
        raise ConfigurationError(
            f"{name} is {value!r}. Use printable ASCII without spaces or braces: braces decide where "
            "a Redis Cluster keeps a key."
        )
    return text


def ipv6_prefix(name: str, value: object) -> int:
    """Read a number of bits."""
    text = str(value).strip().removeprefix("/")
    if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= 128:
        raise ConfigurationError(
            f"{name} is {value!r}. Use a whole number of bits from 1 to 128; 56 is what a household gets."
        )
    return int(text)


def page_path(name: str, value: object) -> str:
    """Read a path of the app."""
    text = str(value)
    # a browser takes dot segments away, and would never arrive
    usable = text.isprintable() and not set(text) & set("<>?#\\ ") and not {".", ".."} & set(text.split("/"))
    if not text.startswith("/") or text.startswith("//") or len(text) < 2 or not usable:
        raise ConfigurationError(
            f"{name} is {value!r}. Use a path of this app that starts with one slash, such as "
            "/too-many-requests."
        )
    return text.rstrip("/")


def page_mode(name: str, value: object) -> str:
    """Read how the limit page is shown."""
    if value not in _PAGE_MODES:
        raise ConfigurationError(f"{name} is {value!r}. Use one of: {', '.join(_PAGE_MODES)}.")
    return str(value)


def jitter(name: str, value: object) -> float:
    """Read a share, from 0 to 1."""
    try:
        share = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise ConfigurationError(f"{name} is {value!r}. Use a number from 0 to 1: a share of the wait.")
    return share


def header_kinds(name: str, value: object) -> tuple[str, ...]:
    """Read which kinds of limit state are sent."""
    kinds = listed(name, value)
    for kind in kinds:
        if kind not in _HEADER_KINDS:
            raise ConfigurationError(
                f"{name} names {kind!r}. Use any of: {', '.join(_HEADER_KINDS)}; an empty list sends none."
            )
    return kinds


def salt(config: Mapping[str, Any], counted: bool) -> bytes:
    """The salt as given, else one derived from SECRET_KEY, so that neither tells the other."""
    given = config.get(PREFIX + "SALT")
    if given is not None and str(given):
        return given if isinstance(given, bytes) else str(given).encode()
    secret = config.get("SECRET_KEY")
    if secret:
        raw = secret if isinstance(secret, bytes) else str(secret).encode()
        return hmac.digest(raw, b"flask-venuelimit salt", "sha256")
    if counted:
        raise ConfigurationError(
            "VENUELIMIT_SALT is not set, and there is no SECRET_KEY to derive it from. Without a salt "
            "anyone who can read the storage could guess who is behind a key. Set either of them, the "
            "same in every process."
        )
    return secrets.token_bytes(32)

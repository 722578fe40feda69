"""Every ``VENUELIMIT_`` setting, read once into one frozen value.

``VENUELIMIT_ENABLED`` alone is asked at each request, by the extension, so that a test can switch it.
"""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from .addresses import Network, parse_network
from .errors import ConfigurationError
from .policies import ON_ERROR, Policy, as_policies

PREFIX = "VENUELIMIT_"
ENABLED = "VENUELIMIT_ENABLED"

_T = TypeVar("_T")
_HEADER_KINDS = ("draft", "trio", "x")
_PAGE_MODES = ("redirect", "inline")
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0", ""})


@dataclass(frozen=True)
class Settings:
    """One app's settings, checked.

    :param storage_uri: where counts live, or None: limiting is off.
    :param storage_options: redis-py's own options.
    :param require_storage: whether a missing storage is an error.
    :param salt: keys the digests of subjects and signs the limit page's token.
    :param key_prefix: what every storage key begins with.
    :param ipv6_prefix: how many bits of an IPv6 address make one client.
    :param page_path: the limit page's path, below SCRIPT_NAME.
    :param page_mode: ``"redirect"`` or ``"inline"``.
    :param retry_jitter: by how much of itself Retry-After may grow.
    :param headers: which kinds of limit state responses carry: of ``draft``, ``trio``, ``x``.
    :param robots_txt: whether ``/robots.txt`` is served.
    :param on_error: what limits do while storage fails, unless they say otherwise: ``allow``, ``local`` or
        ``deny``.
    :param exempt_networks: whose requests no limit touches.
    :param limits: policies of this app for named limits.
    """

    storage_uri: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    require_storage: bool = False
    salt: bytes = b""
    key_prefix: str = "venuelimit"
    ipv6_prefix: int = 56
    page_path: str = "/too-many-requests"
    page_mode: str = "redirect"
    retry_jitter: float = 0.1
    headers: tuple[str, ...] = ("draft", "trio")
    robots_txt: bool = False
    on_error: str = "allow"
    limits: Mapping[str, tuple[Policy, ...]] = field(default_factory=dict)
    exempt_networks: tuple[Network, ...] = ()


def read_settings(config: Mapping[str, Any], *, storage_given: bool = False) -> Settings:
    """Read and check ``app.config``.

    :param storage_given: whether a storage object was handed to the extension, which outranks the URI.
    :raises ConfigurationError: a value cannot be kept; the text names the setting.
    """

    def setting(name: str, check: Callable[[str, Any], _T], default: _T) -> _T:
        value = config.get(PREFIX + name)
        return default if value is None else check(PREFIX + name, value)

    uri = setting("STORAGE_URI", _optional_text, None)
    counted = storage_given or uri is not None
    require = setting("REQUIRE_STORAGE", switch, False)
    if require and not counted:
        raise ConfigurationError(
            "VENUELIMIT_REQUIRE_STORAGE is set, but there is no storage, so no limit would count. "
            "Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379."
        )
    # read again at each request, but a value that says neither is told at once
    setting("ENABLED", switch, True)
    return Settings(
        storage_uri=uri,
        storage_options=setting("STORAGE_OPTIONS", _mapping, {}),
        require_storage=require,
        salt=_salt(config, counted),
        key_prefix=setting("KEY_PREFIX", _key_prefix, "venuelimit"),
        ipv6_prefix=setting("IPV6_PREFIX", _ipv6_prefix, 56),
        page_path=setting("PAGE_PATH", _page_path, "/too-many-requests"),
        page_mode=setting("PAGE_MODE", _page_mode, "redirect"),
        retry_jitter=setting("RETRY_JITTER", _jitter, 0.1),
        headers=setting("HEADERS", _headers, ("draft", "trio")),
        robots_txt=setting("ROBOTS_TXT", switch, False),
        on_error=setting("ON_ERROR", _on_error, "allow"),
        limits=setting("LIMITS", _limits, {}),
        exempt_networks=setting("EXEMPT_NETWORKS", _networks, ()),
    )


#: What an app may set, for the hint at a misspelt name.
KNOWN = frozenset(PREFIX + name.upper() for name in (*Settings.__dataclass_fields__, "enabled"))


def unknown_settings(config: Mapping[str, Any]) -> list[str]:
    """Say of each ``VENUELIMIT_`` name that no code reads what it may have been meant to be."""
    found = []
    for name in sorted(key for key in config if key.startswith(PREFIX) and key not in KNOWN):
        close = get_close_matches(name, KNOWN, n=1)
        hint = f"; did you mean {close[0]}?" if close else ". It has no effect."
        found.append(f"{name} is not a setting of flask_venuelimit{hint}")
    return found


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


def _optional_text(name: str, value: object) -> str | None:
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} has to be text, not {type(value).__name__}.")
    return value.strip() or None


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{name} is {value!r}. Use a dict of redis-py's own options.")
    return dict(value)


def _on_error(name: str, value: object) -> str:
    if value not in ON_ERROR:
        raise ConfigurationError(f"{name} is {value!r}. Use one of: {', '.join(ON_ERROR)}.")
    return str(value)


def _limits(name: str, value: object) -> Mapping[str, tuple[Policy, ...]]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise ConfigurationError(
            f"{name} is {value!r}. Use a dict of limits' names and policies, such as "
            "{'submit-answer': '20/minute'}."
        )
    plans = {}
    for key, policy in value.items():
        try:
            plans[key] = as_policies(policy)
        except ValueError as error:
            raise ConfigurationError(f"{name} has for {key!r} what is no policy: {error}") from None
    return plans


def _networks(name: str, value: object) -> tuple[Network, ...]:
    networks = []
    for text in listed(name, value):
        try:
            networks.append(parse_network(text))
        except ValueError as error:
            raise ConfigurationError(
                f"{name} names {text!r}, which is no network ({error}). Use networks such as 192.0.2.0/24 or "
                "single addresses."
            ) from None
    return tuple(networks)


def _key_prefix(name: str, value: object) -> str:
    text = str(value)
    if not text or not text.isascii() or not text.isprintable() or set(text) & set("{} "):
        raise ConfigurationError(
            f"{name} is {value!r}. Use printable ASCII without spaces or braces: braces decide where "
            "a Redis Cluster keeps a key."
        )
    return text


def _ipv6_prefix(name: str, value: object) -> int:
    text = str(value).strip().removeprefix("/")
    if isinstance(value, bool) or not text.isdecimal() or not 1 <= int(text) <= 128:
        raise ConfigurationError(
            f"{name} is {value!r}. Use a whole number of bits from 1 to 128; 56 is what a household gets."
        )
    return int(text)


def _page_path(name: str, value: object) -> str:
    text = str(value)
    if not text.startswith("/") or text.startswith("//") or len(text) < 2 or set(text) & set("<>?#\\ "):
        raise ConfigurationError(
            f"{name} is {value!r}. Use a path of this app that starts with one slash, such as "
            "/too-many-requests."
        )
    return text.rstrip("/")


def _page_mode(name: str, value: object) -> str:
    if value not in _PAGE_MODES:
        raise ConfigurationError(f"{name} is {value!r}. Use one of: {', '.join(_PAGE_MODES)}.")
    return str(value)


def _jitter(name: str, value: object) -> float:
    try:
        share = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share <= 1:
        raise ConfigurationError(f"{name} is {value!r}. Use a number from 0 to 1: a share of the wait.")
    return share


def _headers(name: str, value: object) -> tuple[str, ...]:
    kinds = listed(name, value)
    for kind in kinds:
        if kind not in _HEADER_KINDS:
            raise ConfigurationError(
                f"{name} names {kind!r}. Use any of: {', '.join(_HEADER_KINDS)}; an empty list sends none."
            )
    return kinds


def _salt(config: Mapping[str, Any], counted: bool) -> bytes:
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

"""Every ``VENUELIMIT_`` setting, read once into one frozen value.

``VENUELIMIT_ENABLED`` alone is read at each request, by the app's state, so that a test can switch it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from . import checks
from .addresses import Network
from .checks import PREFIX
from .errors import ConfigurationError
from .policies import Policy
from .proxies import Proxies

ENABLED = "VENUELIMIT_ENABLED"

_T = TypeVar("_T")


@dataclass(frozen=True)
class Settings:
    """One app's settings, checked.

    :param storage_uri: where counts live, or None: limiting is off.
    :param storage_options: redis-py's own options.
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
    :param proxies: which proxies are believed when they name the client.
    :param limits: policies of this app for named limits.
    """

    storage_uri: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict)
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
    proxies: Proxies = field(default_factory=Proxies)


def read_settings(config: Mapping[str, Any], *, storage_given: bool = False) -> Settings:
    """Read and check ``app.config``.

    :param storage_given: whether a storage object was handed to the extension, which outranks the URI.
    :raises ConfigurationError: a value cannot be kept; the text names the setting.
    """

    def setting(name: str, check: Callable[[str, Any], _T], default: _T) -> _T:
        value = config.get(PREFIX + name)
        return default if value is None else check(PREFIX + name, value)

    uri = setting("STORAGE_URI", checks.optional_text, None)
    counted = storage_given or uri is not None
    if setting("REQUIRE_STORAGE", checks.switch, False) and not counted:
        raise ConfigurationError(
            "VENUELIMIT_REQUIRE_STORAGE is set, but there is no storage, so no limit would count. "
            "Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379."
        )
    # read again at each request, but a value that says neither is told at once
    setting("ENABLED", checks.switch, True)
    return Settings(
        storage_uri=uri,
        storage_options=setting("STORAGE_OPTIONS", checks.mapping, {}),
        salt=checks.salt(config, counted),
        key_prefix=setting("KEY_PREFIX", checks.key_prefix, Settings.key_prefix),
        ipv6_prefix=setting("IPV6_PREFIX", checks.ipv6_prefix, Settings.ipv6_prefix),
        page_path=setting("PAGE_PATH", checks.page_path, Settings.page_path),
        page_mode=setting("PAGE_MODE", checks.page_mode, Settings.page_mode),
        retry_jitter=setting("RETRY_JITTER", checks.jitter, Settings.retry_jitter),
        headers=setting("HEADERS", checks.header_kinds, Settings.headers),
        robots_txt=setting("ROBOTS_TXT", checks.switch, Settings.robots_txt),
        on_error=setting("ON_ERROR", checks.on_error, Settings.on_error),
        limits=setting("LIMITS", checks.plans, {}),
        exempt_networks=setting("EXEMPT_NETWORKS", checks.networks, Settings.exempt_networks),
        proxies=checks.proxies(
            setting("TRUSTED_PROXIES", checks.believed, ()),
            setting("FORWARDED_HEADER", checks.header_name, None),
        ),
    )


#: Settings that are read, but are no field of their own.
_READ_BESIDES = ("enabled", "require_storage", "trusted_proxies", "forwarded_header")
#: What an app may set, for the hint at a misspelt name.
KNOWN = frozenset(
    PREFIX + name.upper() for name in (*Settings.__dataclass_fields__, *_READ_BESIDES) if name != "proxies"
)


def unknown_settings(config: Mapping[str, Any]) -> list[str]:
    """Say of each ``VENUELIMIT_`` name that no code reads what it may have been meant to be."""
    found = []
    for name in sorted(key for key in config if key.startswith(PREFIX) and key not in KNOWN):
        close = get_close_matches(name, KNOWN, n=1)
        hint = f"; did you mean {close[0]}?" if close else ". It has no effect."
        found.append(f"{name} is not a setting of flask_venuelimit{hint}")
    return found

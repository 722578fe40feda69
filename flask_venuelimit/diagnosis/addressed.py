"""VL301 to VL306: whether the client's address is the client's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from werkzeug.middleware.proxy_fix import ProxyFix

from ..addresses import Network, parse_network
from ..edges import EDGES
from .findings import NOTE, WARNING, Check
from .setup import Setup

#: Platforms whose routers stand in front of whatever runs there, by what they put into the environment.
PLATFORMS = {
    "DYNO": "Heroku",
    "RENDER": "Render",
    "FLY_APP_NAME": "Fly.io",
    "K_SERVICE": "Cloud Run",
    "GAE_SERVICE": "App Engine",
    "RAILWAY_ENVIRONMENT_ID": "Railway",
    "WEBSITE_SITE_NAME": "Azure App Service",
}
_UNIX = re.compile(r"(?:^|\s)(?:-b\s*|--bind[=\s]\s*)['\"]?unix:")
#: What each edge writes itself, whatever the client has sent.
_WRITTEN = {
    "cloudflare": ("cf-connecting-ip", "x-forwarded-for"),
    "google-load-balancers": ("x-forwarded-for",),
}
#: How middlewares call what they pass requests on to.
_NEXT = ("app", "wsgi_app", "application", "_app", "wrapped")
_INSIDE = [parse_network(text) for name in ("private", "loopback") for text in EDGES[name].networks]


def proxy_nobody_trusts(setup: Setup) -> Iterator[str]:
    """A proxy stands in front, it seems, and nobody is believed."""
    if setup.settings.proxies.any or _proxy_fix(setup) is not None:
        return
    signs = [
        f"{name} in the environment: {what}" for name, what in PLATFORMS.items() if setup.environ.get(name)
    ]
    if _UNIX.search(setup.environ.get("GUNICORN_CMD_ARGS", "")):
        signs.append("a unix socket in GUNICORN_CMD_ARGS")
    if signs:
        yield f"A proxy seems to stand in front of the app ({signs[0]}), and no proxy is trusted."


def two_views_of_the_client(setup: Setup) -> Iterator[str]:
    """``ProxyFix`` and our own setting both say who the client is."""
    fix = _proxy_fix(setup)
    if fix is not None and setup.settings.proxies.any:
        yield (
            f"ProxyFix(x_for={fix.x_for}) and VENUELIMIT_TRUSTED_PROXIES both say who the client is. Limits "
            "go by the setting, the rest of the app by ProxyFix."
        )


def header_that_anybody_writes(setup: Setup) -> Iterator[str]:
    """The header that is read is not one that the trusted edge keeps to itself."""
    proxies = setup.settings.proxies
    header = proxies.header.lower()
    edges = [name for name in _WRITTEN if set(_networks(name)) <= set(proxies.networks)]
    if "cloudflare" in edges and header == "x-forwarded-for":
        yield (
            "Cloudflare is trusted with X-Forwarded-For: anybody's Worker connects from its networks too, "
            "and writes that header as it likes."
        )
    elif edges and _nobody_else(setup, edges) and not any(header in _WRITTEN[name] for name in edges):
        yield f"Of {' and '.join(edges)} alone {proxies.header} is believed, which it never writes itself."


def _nobody_else(setup: Setup, edges: list[str]) -> bool:
    """Whether no other proxy is trusted, which might write the header in between."""
    known = {network for name in edges for network in _networks(name)}
    return not setup.settings.proxies.unix and set(setup.settings.proxies.networks) <= known


def whole_machines(setup: Setup) -> Iterator[str]:
    """An IPv6 client is less than a machine."""
    bits = setup.settings.ipv6_prefix
    if bits > 64:
        yield f"VENUELIMIT_IPV6_PREFIX is {bits}, and any machine has a /64 to choose its addresses from."


def whole_households(setup: Setup) -> Iterator[str]:
    """An IPv6 client is less than a household."""
    bits = setup.settings.ipv6_prefix
    if 56 < bits <= 64:
        yield f"VENUELIMIT_IPV6_PREFIX is {bits}: a customer who holds a /56 has {2 ** (bits - 56)} buckets."


def half_the_internet(setup: Setup) -> Iterator[str]:
    """A network that is exempt, or believed, holds a great part of all there is."""
    exempt = ("VENUELIMIT_EXEMPT_NETWORKS", setup.settings.exempt_networks)
    trusted = ("VENUELIMIT_TRUSTED_PROXIES", setup.settings.proxies.networks)
    for name, networks in (exempt, trusted):
        for network in filter(_is_vast, networks):
            yield f"{name} has {network}, which is a great part of the internet."


def _is_vast(network: Network) -> bool:
    known = any(network.version == each.version and _lies_in(network, each) for each in _INSIDE)
    return not known and network.prefixlen < (8 if network.version == 4 else 16)


def _lies_in(network: Any, other: Any) -> bool:
    return bool(network.subnet_of(other))


def _networks(name: str) -> list[Network]:
    return [parse_network(text) for text in EDGES[name].networks]


def _proxy_fix(setup: Setup) -> ProxyFix | None:
    """A ``ProxyFix`` around the app that takes the client's address from a header."""
    middleware: Any = setup.app.wsgi_app
    seen: list[Any] = []
    while middleware is not None and not any(middleware is each for each in seen):
        seen.append(middleware)
        if isinstance(middleware, ProxyFix) and middleware.x_for:
            return middleware
        inner = vars(middleware) if hasattr(middleware, "__dict__") else {}
        middleware = next((inner[name] for name in _NEXT if callable(inner.get(name))), None)
    return None


CHECKS = (
    Check(
        "VL301",
        NOTE,
        proxy_nobody_trusts,
        "Everybody behind the proxy has its address, and shares one bucket.",
        "Set VENUELIMIT_TRUSTED_PROXIES to where the proxy connects from, or use werkzeug's ProxyFix.",
    ),
    Check(
        "VL302",
        NOTE,
        two_views_of_the_client,
        "Where the two do not agree, the log shows one client and limits count another.",
        "Give ProxyFix x_for=0, or take the setting out.",
    ),
    Check(
        "VL303",
        WARNING,
        header_that_anybody_writes,
        "Who writes the header themselves has a new address, and a new bucket, with each request.",
        "Set VENUELIMIT_FORWARDED_HEADER to the one that the edge writes: CF-Connecting-IP for cloudflare, "
        "X-Forwarded-For for google-load-balancers.",
    ),
    Check(
        "VL304",
        WARNING,
        whole_machines,
        "Each request can come from an address of its own: limits by address hold nobody back.",
        "Take VENUELIMIT_IPV6_PREFIX out (56), or set at most 64.",
    ),
    Check(
        "VL305",
        NOTE,
        whole_households,
        "A household may have that many times each limit.",
        "Take VENUELIMIT_IPV6_PREFIX out: 56 is what a household gets.",
    ),
    Check(
        "VL306",
        WARNING,
        half_the_internet,
        "Whoever comes from an exempt network is never limited; whoever comes from a trusted one writes "
        "themselves any address.",
        "Name the networks that are meant, as narrow as they are.",
    ),
)

"""The text of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network
from typing import Any, NamedTuple
from urllib.parse import quote

from flask import Flask

from ..manifest import manifest
from ..proxies import Proxies
from ..settings import Settings
from ..state import require_state
from .kept import Kept, LeftOut, divide

_WIDER = """\
nginx keeps the limits on addresses first, and more loosely: it passes twice a limit at once, then its rate,
a request counting 1 whatever it costs, and cuts off what is more. The app counts exactly, and answers with
a wait and a page."""
_OFF = "Limiting is off in the app as it is set now: only nginx keeps limits."
_NOBODY_BELIEVED = """\
The app believes no proxy, and takes nginx for its only client. Set VENUELIMIT_TRUSTED_PROXIES to where
nginx connects from, which is `loopback` if both are on one machine."""
_EXEMPT_IF = """\
exempt_if exempts some requests, and nginx cannot ask: it counts them. Name networks in
VENUELIMIT_EXEMPT_NETWORKS to exempt them here too."""


class Where(NamedTuple):
    """Where nginx listens, and what stands behind it.

    :param listen: as the directive takes it, one each.
    :param upstream: as ``proxy_pass`` takes it.
    """

    server_name: str = "_"
    listen: Sequence[str] = ("80",)
    upstream: str = "http://127.0.0.1:8000"


def nginx_config(app: Flask, where: Where) -> str:
    """Write a whole ``nginx.conf`` for an app.

    :raises ConfigurationError: the app has no limiter, or ``VENUELIMIT_LIMITS`` does not match its limits.
    """
    state = require_state(app)
    told, settings = manifest(state), state.settings
    kept, left_out = divide(told["limits"], app.url_map)
    inside = [*_real_client(settings.proxies), *_forwarded(settings.proxies.header)]
    if kept:
        inside += [*_whose(settings), *(line for each in kept for line in _zones(each)), *_person(settings)]
    lines = [
        *_comments(told, settings, left_out),
        "worker_processes auto;",
        "events {}",
        "",
        "http {",
        *_indented([*inside, *_server(kept, settings, where)]),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _comments(told: dict[str, Any], settings: Settings, left_out: Sequence[LeftOut]) -> Iterator[str]:
    yield f"# nginx in front of the app {told['app']!a}, made by `flask venuelimit nginx`."
    yield from _paragraph(_WIDER)
    if not told["counting"]:
        yield from _paragraph(_OFF)
    if not settings.proxies.any:
        yield from _paragraph(_NOBODY_BELIEVED)
    if told["exempt_if"]:
        yield from _paragraph(_EXEMPT_IF)
    if left_out:
        yield from _paragraph("Left to the app:")
        yield from (f"#   {each.what}: {each.why}" for each in left_out)
    yield ""


def _paragraph(text: str) -> Iterator[str]:
    yield "#"
    yield from (f"# {line}" for line in text.splitlines())


def _real_client(proxies: Proxies) -> Iterator[str]:
    """Who the client is where proxies stand in front of nginx too (ngx_http_realip_module)."""
    # what is on this machine is nginx itself, as the app sees it
    ahead = [each for each in map(str, proxies.networks) if not ip_network(each).is_loopback]
    if ahead and proxies.header.lower() == "forwarded":
        yield "# nginx reads no Forwarded: a proxy in front of it has to name the client in another header."
        yield ""
    elif ahead:
        yield "# VENUELIMIT_TRUSTED_PROXIES: whom they name is the client"
        yield from (f"set_real_ip_from {each};" for each in ahead)
        yield f"real_ip_header {proxies.header};"
        yield "real_ip_recursive on;"
        yield ""


def _forwarded(header: str) -> Iterator[str]:
    """What RFC 7239 calls the client, where the app reads that."""
    if header.lower() == "forwarded":
        yield "map $remote_addr $venuelimit_node {"
        yield '    "~^[0-9.]+$"        "for=$remote_addr";'
        yield '    "~^[0-9A-Fa-f:.]+$" "for=\\"[$remote_addr]\\"";'
        yield "    default             for=unknown;"
        yield "}"
        yield "map $http_forwarded $venuelimit_forwarded {"
        yield '    ""      $venuelimit_node;'
        yield '    default "$http_forwarded, $venuelimit_node";'
        yield "}"
        yield ""


def _whose(settings: Settings) -> Iterator[str]:
    """Whose bucket it is: the address, an IPv6 one by its network; nobody's where it is exempt."""
    # nginx compares whole bytes; more of them make more clients of one, which is the wider filter
    size = -(-settings.ipv6_prefix // 8)
    yield f"# whose bucket it is: an IPv4 address, the first {size * 8} bits of an IPv6 address"
    yield f"map $binary_remote_addr $venuelimit_{'network' if settings.exempt_networks else 'address'} {{"
    yield '    "~(?s)^\\x00{10}\\xff\\xff(?<venuelimit_ipv4>.{4})$" $venuelimit_ipv4;'
    yield f'    "~(?s)^(?<venuelimit_ipv6>.{{{size}}}).{{{16 - size}}}$" $venuelimit_ipv6;'
    yield "    default $binary_remote_addr;"
    yield "}"
    if settings.exempt_networks:
        yield "# VENUELIMIT_EXEMPT_NETWORKS: an empty key, which nginx does not count"
        yield "geo $venuelimit_exempt {"
        yield from (f"    {each} 1;" for each in settings.exempt_networks)
        yield "    default 0;"
        yield "}"
        yield "map $venuelimit_exempt $venuelimit_address {"
        yield '    1 "";'
        yield "    default $venuelimit_network;"
        yield "}"
    yield ""


def _zones(kept: Kept) -> Iterator[str]:
    """Which requests count for a limit, and how fast they may come."""
    counts = {True: "$venuelimit_address", False: '""'}
    yield f"# {kept.name}"
    yield f'map "$request_method $uri" $venuelimit_for_{kept.slug} {{'
    yield from (f'    "~{entry.pattern}" {counts[entry.counts]};' for entry in kept.covered.entries)
    yield f"    default {counts[kept.covered.default]};"
    yield "}"
    for name, rate in zip(_names(kept), kept.rates, strict=True):
        policy = rate.policy + (", rounded up to what nginx can count" if rate.rounded else "")
        zone = f"limit_req_zone $venuelimit_for_{kept.slug} zone={name}:10m rate={rate.text};"
        yield f"{zone}  # {policy}"
    yield ""


def _names(kept: Kept) -> list[str]:
    """What the zones of a limit are called, one a policy."""
    return [f"venuelimit_{kept.slug}{f'__{n + 1}' if n else ''}" for n in range(len(kept.rates))]


def _person(settings: Settings) -> Iterator[str]:
    """Who is led to the limit page: a browser that says that it navigates."""
    if settings.page_mode == "redirect":
        yield "# a person who navigates, and no prefetch"
        yield 'map "$request_method $http_sec_fetch_mode$http_sec_purpose" $venuelimit_person {'
        yield '    "~^(GET|HEAD|POST) navigate$" 1;'
        yield "    default 0;"
        yield "}"
        yield ""


def _server(kept: Sequence[Kept], settings: Settings, where: Where) -> Iterator[str]:
    yield "server {"
    yield from (f"    listen {each};" for each in where.listen)
    yield f"    server_name {where.server_name};"
    yield ""
    if kept:
        for each in kept:
            for name, rate in zip(_names(each), each.rates, strict=True):
                yield f"    limit_req zone={name} burst={rate.burst} nodelay;"
        yield "    limit_req_status 429;"
        yield "    # only what nginx refuses itself; what the app answers passes as it is"
        yield "    error_page 429 = @venuelimit_refused;"
        yield ""
    yield "    location / {"
    yield f"        proxy_pass {where.upstream};"
    yield "        proxy_set_header Host $host;"
    yield "        proxy_set_header X-Forwarded-Proto $scheme;"
    yield f"        {_names_client(settings.proxies.header)}"
    yield "    }"
    if kept:
        yield from _indented(_refused(kept, settings))
    yield "}"


def _names_client(header: str) -> str:
    """Tell the app who the client is, in the header that it reads."""
    named = {"x-forwarded-for": "$proxy_add_x_forwarded_for", "forwarded": "$venuelimit_forwarded"}
    return f"proxy_set_header {header} {named.get(header.lower(), '$remote_addr')};"


def _refused(kept: Sequence[Kept], settings: Settings) -> Iterator[str]:
    """What nginx answers where it refuses: as the app does, with the wait until there is room for one."""
    wait = max(rate.wait for each in kept for rate in each.rates)
    body = {
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Too Many Requests",
        "status": 429,
        "error": "rate_limited",
        "detail": "Too many requests. Please slow down.",
        "retry_after": wait,
    }
    yield ""
    yield "location @venuelimit_refused {"
    if settings.page_mode == "redirect":
        yield "    absolute_redirect off;"
        yield "    if ($venuelimit_person) {"
        yield "        add_header Cache-Control no-store always;"
        yield '        add_header Vary "Accept, Sec-Fetch-Mode" always;'
        yield f"        return 303 {quote(settings.page_path, safe='/')};"
        yield "    }"
    yield "    default_type application/json;"
    yield f"    add_header Retry-After {wait} always;"
    yield "    add_header Cache-Control no-store always;"
    yield '    add_header Vary "Accept, Sec-Fetch-Mode" always;'
    yield f"    return 429 '{json.dumps(body)}';"
    yield "}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"    {line}" if line else "" for line in lines)

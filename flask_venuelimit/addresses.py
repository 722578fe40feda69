"""Who the client is: the address of a connection, brought to the one spelling that names its bucket."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

_IPV4_WITH_PORT = re.compile(r"([0-9.]+):[0-9]{1,5}", re.ASCII)
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::[0-9]{1,5})?", re.ASCII)


@lru_cache(maxsize=4096)
def normalise(text: str, ipv6_prefix: int = 56) -> str | None:
    """Bring an address to the form in which all its spellings are equal.

    A port is dropped, and so is the zone of a link-local peer. An IPv4-mapped IPv6 address becomes
    IPv4, by its bits (RFC 4291, 2.5.5.2). IPv6 is cut to its network, because one customer holds a
    whole prefix and can send every request from a new address of it (RFC 6177).

    :param text: an address, with a port or without: ``198.51.100.7:5678``, ``[2001:db8::1]:443``. A
        bare IPv6 address is never split.
    :param ipv6_prefix: how many bits name one client.
    :returns: ``"198.51.100.7"``, ``"2001:db8:0:1200::/56"``, or None where the text is no address or
        the unspecified one.
    """
    parsed = _parse(text)
    if parsed is None:
        return None
    if isinstance(parsed, ipaddress.IPv6Address):
        mapped = parsed.ipv4_mapped
        if mapped is None:
            return None if parsed.is_unspecified else _network(parsed, ipv6_prefix)
        parsed = mapped
    return None if parsed.is_unspecified else str(parsed)


def _parse(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    text = text.strip()
    if match := _IPV4_WITH_PORT.fullmatch(text) or _BRACKETED.fullmatch(text):
        text = match[1]
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None


def _network(address: ipaddress.IPv6Address, prefix: int) -> str:
    return str(ipaddress.IPv6Network((address, prefix), strict=False))

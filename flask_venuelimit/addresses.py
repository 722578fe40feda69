"""Who the client is: the address of a connection, brought to the one spelling that names its bucket."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from functools import lru_cache

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

#: The kinds of subject that are everybody behind one address, or behind none.
SHARED_KINDS = frozenset({"ip", "no-address"})
#: Longer than any address with brackets, a zone and a port.
LONGEST = 80

_IPV4_WITH_PORT = re.compile(r"([0-9.]+):[0-9]{1,5}", re.ASCII)
_BRACKETED = re.compile(r"\[([^\[\]]*:[^\[\]]*)\](?::[0-9]{1,5})?", re.ASCII)


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
    # what is no address is not kept: whoever sends it would choose how much memory that takes
    return _normalised(text, ipv6_prefix) if len(text) <= LONGEST else None


@lru_cache(maxsize=4096)
def _normalised(text: str, ipv6_prefix: int) -> str | None:
    address = parse(text)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, ipv6_prefix), strict=False))
    return None if address is None else str(address)


def parse(text: str) -> Address | None:
    """Read an address as :func:`normalise` does, before it is cut to a network."""
    text = text.strip(" \t")
    if len(text) > LONGEST:
        return None
    if match := _IPV4_WITH_PORT.fullmatch(text) or _BRACKETED.fullmatch(text):
        text = match[1]
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return None if address.is_unspecified else address


def parse_network(text: str) -> Network:
    """Read a network such as ``10.0.0.0/8``, or an address as the network of that one.

    :raises ValueError: it is neither, or bits are set outside its prefix.
    """
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.prefixlen >= 96:
        mapped = network.network_address.ipv4_mapped
        # addresses are compared by what they are, and so are networks
        return network if mapped is None else ipaddress.IPv4Network((mapped, network.prefixlen - 96))
    return network


def lies_in(text: str, networks: Sequence[Network]) -> bool:
    """Whether an address lies in one of ``networks``, however it is spelt."""
    address = parse(text)
    return address is not None and any(address in network for network in networks)

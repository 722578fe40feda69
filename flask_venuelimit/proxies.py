"""Which proxies are believed, and what the believed ones say of the client.

A chain of forwarded addresses is written from left to right, and whoever stands on the left may have written
anything. So it is read from the right, only as far as needed: entries of proxies that are believed are
passed over, the first other one is the client, and what lies left of it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .addresses import Network, lies_in, parse, parse_network
from .edges import EDGES
from .forwarded import CHAINS

#: Where werkzeug's ProxyFix keeps what it replaced.
_PROXY_FIXED = "werkzeug.proxy_fix.orig"
#: Headers by which proxies name the client.
_USUAL = (
    "X-Forwarded-For",
    "Forwarded",
    "X-Real-IP",
    "CF-Connecting-IP",
    "True-Client-IP",
    "X-Client-IP",
    "Fastly-Client-IP",
)
_INSIDE = tuple(parse_network(text) for name in ("private", "loopback") for text in EDGES[name].networks)


@dataclass(frozen=True)
class Proxies:
    """The proxies an app believes.

    :param networks: where they connect from.
    :param unix: whether a peer that is no IP address, as on a unix socket, is one.
    :param header: what they name the client in: ``X-Forwarded-For``, ``Forwarded`` (RFC 7239), or a header
        of exactly one address.
    """

    networks: tuple[Network, ...] = ()
    unix: bool = False
    header: str = "X-Forwarded-For"

    @cached_property
    def any(self) -> bool:
        """Whether anybody is believed."""
        return self.unix or bool(self.networks)

    def client(self, environ: Mapping[str, Any]) -> str | None:
        """The client's address as text, or None where the connection has none.

        :param environ: a WSGI environ.
        """
        return self._forwarded(environ) or _peer(environ)

    def certain(self, environ: Mapping[str, Any], reported: str | None) -> str | None:
        """The client's address, or None where somebody that nobody vouches for may stand behind it.

        Where a header names a client and is not read, the peer may be a proxy, and whoever comes through it
        must not be taken for it.

        :param reported: the address as Flask reports it.
        """
        if self._sent(environ) is None:
            return self.client(environ) if self.any else reported
        if self.any:
            return self._forwarded(environ)
        return reported if _fixed(environ) else None

    def overlooked(self, environ: Mapping[str, Any]) -> str | None:
        """The header that a proxy on this very network seems to send while nobody is believed, or None."""
        if self.any or environ.keys().isdisjoint(self._names) or _fixed(environ):
            return None
        peer = environ.get("REMOTE_ADDR") or ""
        return self._sent(environ) if parse(peer) is None or lies_in(peer, _INSIDE) else None

    def _sent(self, environ: Mapping[str, Any]) -> str | None:
        """The first header present that names a client."""
        return next((name for spelt, name in self._names.items() if spelt in environ), None)

    @cached_property
    def _names(self) -> dict[str, str]:
        """Headers that name a client: as people spell them, by how the environ does."""
        return {_spelt(name): name for name in (self.header, *_USUAL)}

    def _forwarded(self, environ: Mapping[str, Any]) -> str | None:
        """Whom a believed peer names, or None where it is not believed, or names nobody."""
        header = environ.get(_spelt(self.header))
        if header is None:
            return None
        peer = parse(_peer(environ) or "")
        believed = self.unix if peer is None else self._believes(str(peer))
        return self._named(header) if believed else None

    @cached_property
    def _believes(self) -> Callable[[str], bool]:
        """Whether an address is a believed proxy's."""
        networks = self.networks
        # remembered here, for hashing the networks costs as much as looking through them
        return lru_cache(maxsize=4096)(lambda address: lies_in(address, networks))

    def _named(self, header: str) -> str | None:
        """Whom the header names, or None where an entry that has to be read is no address."""
        chain = CHAINS.get(self.header.lower())
        if chain is None:
            return _address(header)
        address = None
        for entry in chain(header):
            address = _address(entry)
            if address is None or not self._believes(address):
                break
        return address


def _peer(environ: Mapping[str, Any]) -> str | None:
    """Who is directly connected, whatever a ProxyFix has made of it."""
    fixed = environ.get(_PROXY_FIXED)
    address: str | None = (fixed or environ).get("REMOTE_ADDR")
    return address


def _fixed(environ: Mapping[str, Any]) -> bool:
    """Whether a ProxyFix took the client's address from X-Forwarded-For.

    It leaves the address as it is where it is not told to (``x_for=0``), or where fewer proxies have written
    into the header than it is told of. Nobody else can be meant where the header names the peer alone.
    """
    fixed = environ.get(_PROXY_FIXED)
    if fixed is None:
        return False
    peer = environ.get("REMOTE_ADDR")
    named = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    return bool(peer != fixed.get("REMOTE_ADDR") or all(name.strip() == peer for name in named))


def _spelt(header: str) -> str:
    """A header's name as a WSGI environ spells it (PEP 3333)."""
    return "HTTP_" + header.upper().replace("-", "_")


def _address(text: str) -> str | None:
    """An address that a proxy wrote, its port dropped; None for anything else, a zone included."""
    address = None if "%" in text else parse(text)
    return None if address is None else str(address)

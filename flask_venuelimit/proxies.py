"""Which proxies are believed, and what the believed ones say of the client.

A chain of forwarded addresses is written from left to right, and whoever stands on the left may have written
anything. So it is read from the right, only as far as needed: entries of proxies that are believed are
passed over, the first other one is the client, and what lies left of it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from .addresses import Network, lies_in, parse, parse_network
from .edges import EDGES
from .forwarded import CHAINS, LONGEST

#: Where werkzeug's ProxyFix keeps what it replaced.
_PROXY_FIXED = "werkzeug.proxy_fix.orig"
#: Headers by which proxies name the client, as a WSGI environ spells them.
_USUAL = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP")
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

    @property
    def any(self) -> bool:
        """Whether anybody is believed."""
        return self.unix or bool(self.networks)

    def client(self, environ: Mapping[str, Any]) -> str | None:
        """The client's address as text, or None where the connection has none.

        :param environ: a WSGI environ.
        """
        if not self.any:
            return environ.get("REMOTE_ADDR")
        peer = _peer(environ)
        header = environ.get(_spelt(self.header))
        if header is None or not self._believes_peer(peer):
            return peer
        return self._named(header) or peer

    def vouched(self, environ: Mapping[str, Any]) -> bool:
        """Whether no header names a client that nobody vouches for, so that the address can be relied on."""
        if self._sent(environ) is None or _PROXY_FIXED in environ:
            return True
        return self.any and self._believes_peer(_peer(environ))

    def overlooked(self, environ: Mapping[str, Any]) -> str | None:
        """The header that a proxy on this very network seems to send while nobody is believed, or None."""
        sent = self._sent(environ)
        if sent is None or self.any or _PROXY_FIXED in environ:
            return None
        peer = environ.get("REMOTE_ADDR") or ""
        if parse(peer) is not None and not lies_in(peer, _INSIDE):
            return None
        return sent.removeprefix("HTTP_").replace("_", "-").title()

    def _sent(self, environ: Mapping[str, Any]) -> str | None:
        """The first header present that names a client, as the environ spells it."""
        for name in self._names:
            if name in environ:
                return name
        return None

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*_USUAL, _spelt(self.header))))

    def _believes_peer(self, peer: str | None) -> bool:
        address = parse(peer) if peer else None
        return self.unix if address is None else self._believes(str(address))

    def _believes(self, address: str) -> bool:
        return _lies_in(address, self.networks)

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


@lru_cache(maxsize=4096)
def _lies_in(address: str, networks: tuple[Network, ...]) -> bool:
    return lies_in(address, networks)


def _peer(environ: Mapping[str, Any]) -> str | None:
    """Who is directly connected, whatever a ProxyFix has made of it."""
    fixed = environ.get(_PROXY_FIXED)
    address: str | None = (fixed or environ).get("REMOTE_ADDR")
    return address


def _spelt(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


def _address(text: str) -> str | None:
    """An address that a proxy wrote, its port dropped; None for anything else, a zone included."""
    if len(text) > LONGEST or "%" in text:
        return None
    address = parse(text)
    return None if address is None else str(address)

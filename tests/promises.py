"""What holds for every header and every peer, held by tests/test_fuzz.py and by fuzz/headers.py."""

from __future__ import annotations

import ipaddress

from flask_venuelimit.addresses import normalise, parse_network
from flask_venuelimit.forwarded import comma_separated, elements
from flask_venuelimit.proxies import Proxies

TRUSTED = tuple(map(parse_network, ("192.0.2.0/28", "2001:db8:ffff::/48")))
#: A client that is not trusted, as a proxy appends it in each header that is a chain.
CLIENT = "198.51.100.7"
APPENDED = {
    "X-Forwarded-For": [f", {CLIENT}", f",{CLIENT}:49152", f", ::ffff:{CLIENT}, 192.0.2.5"],
    "Forwarded": [f", for={CLIENT}", f',For="{CLIENT}:49152";proto=https', f", for={CLIENT}, for=192.0.2.5"],
}
HEADERS = ("X-Forwarded-For", "Forwarded", "X-Real-IP")
STRANGERS = ("203.0.113.50", "2001:db8:1::5", "203.0.113.50:4711", "", None)
PROXIES = {name: Proxies(TRUSTED, header=name) for name in HEADERS}


def environ(header: str, value: str, peer: str | None) -> dict[str, str | None]:
    """A WSGI environ with this header from this peer."""
    return {"REMOTE_ADDR": peer, "HTTP_" + header.upper().replace("-", "_"): value}


def hold(header: str, value: str, peer: str | None) -> bool:
    """Hold all promises for a header's value and a peer, both any text.

    :param header: one of ``HEADERS``.
    :returns: true, or an AssertionError says which promise is broken.
    """
    names_an_address_or_nobody(header, value, peer)
    no_stranger_is_heard(header, value)
    what_a_proxy_appends_decides(header, value)
    proxy_fix_is_no_surprise(header, value, peer)
    return True


def names_an_address_or_nobody(header: str, value: str, peer: str | None) -> None:
    """The client is the peer or a true address, and its key is an address in its one spelling or none."""
    for proxies in (PROXIES[header], Proxies(unix=True, header=header), Proxies()):
        client = proxies.client(environ(header, value, peer))
        assert client == peer or str(ipaddress.ip_address(client or "")) == client, client
        key = normalise(client or "")
        if key is not None:
            network = ipaddress.ip_network(key)
            assert str(network).removesuffix("/32") == key, key
            assert network.prefixlen == (32 if network.version == 4 else 56), key
            # the network of ::1 begins with ::, which is nobody's address
            assert key == "::/56" or normalise(key.removesuffix("/56")) == key, key


def no_stranger_is_heard(header: str, value: str) -> None:
    """Nothing that somebody who is not trusted sends changes a key, or makes an address certain."""
    for peer in STRANGERS:
        sent = environ(header, value, peer)
        assert PROXIES[header].client(sent) == peer, peer
        assert PROXIES[header].certain(sent, peer) is None, peer
        assert Proxies(header=header).certain(sent, peer) is None, peer


def what_a_proxy_appends_decides(header: str, value: str) -> None:
    """Whatever a client sends, the client is whom the proxy adds to it."""
    for appended in APPENDED.get(header, ()):
        seen = PROXIES[header].client(environ(header, value + appended, "192.0.2.10"))
        assert seen == CLIENT, appended
    read = {"X-Forwarded-For": comma_separated, "Forwarded": elements}.get(header)
    if read is not None:
        entries = list(read(value))
        assert 1 <= len(entries) <= value.count(",") + 1
        assert sum(map(len, entries)) <= len(value)


def proxy_fix_is_no_surprise(header: str, value: str, peer: str | None) -> None:
    """Whatever a ProxyFix found before, the address is what it made of it, or not certain."""
    fixed = {**environ(header, value, CLIENT), "werkzeug.proxy_fix.orig": {"REMOTE_ADDR": peer}}
    assert Proxies(header=header).certain(fixed, CLIENT) in ((None, CLIENT) if peer == CLIENT else (CLIENT,))
    assert PROXIES[header].client(fixed) == PROXIES[header].client(environ(header, value, peer))
    for sent in (environ(header, value, peer), fixed):
        assert Proxies(header=header).overlooked(sent) in (None, header)

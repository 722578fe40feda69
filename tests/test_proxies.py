"""Who is believed, and what the believed ones say of the client. Cases A1 to A9 of the public record."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from flask_venuelimit.addresses import normalise, parse_network
from flask_venuelimit.edges import EDGES
from flask_venuelimit.proxies import Proxies
from flask_venuelimit.settings import Settings, read_settings
from tests.acceptance.callers import message

#: A proxy that is believed, and the documentation addresses of the cases.
P, C, A = "192.0.2.10", "198.51.100.7", "203.0.113.50"
TRUSTED = "192.0.2.0/28"
NET = "2001:db8:1:2300::/56"


def settings(**named: Any) -> Settings:
    """The settings of an app, ``VENUELIMIT_`` left out of their names."""
    return read_settings(
        {"SECRET_KEY": "s", **{f"VENUELIMIT_{name}": value for name, value in named.items()}}
    )


def environ(peer: str | None = P, **headers: str) -> dict[str, Any]:
    """A WSGI environ: who is connected, and header fields with underscores in their names."""
    return {"REMOTE_ADDR": peer, **{f"HTTP_{name.upper()}": value for name, value in headers.items()}}


def client(value: str, header: str = "X-Forwarded-For", peer: str = P, trusted: str = TRUSTED) -> str | None:
    """Whom a peer names in a header, normalised."""
    proxies = settings(TRUSTED_PROXIES=trusted, FORWARDED_HEADER=header).proxies
    named = proxies.client(environ(peer, **{header.replace("-", "_"): value}))
    return normalise(named or "")


# -- the cases -----------------------------------------------------------------------------------

CHAINS = [
    ("A1", ["203.0.113.30", "198.51.100.45", "192.0.2.1"], "198.51.100.45"),
    ("A1, the first entry changed", ["8.8.8.8", "198.51.100.45", "192.0.2.1"], "198.51.100.45"),
    ("A1, the first entry broken", ['"\\;=,unknown', "198.51.100.45", "192.0.2.1"], "198.51.100.45"),
    ("A2, a trusted address planted", ["203.0.113.66", "192.0.2.5", C], C),
    ("A2, trusted ones alone", ["192.0.2.4", "192.0.2.5"], "192.0.2.4"),
    ("A3", ["198.51.100.7:49152"], C),
    ("A3, another port", ["198.51.100.7:50001"], C),
    ("A3, a trusted one with a port", [C, "192.0.2.5:443"], C),
    ("A4", ["[2001:db8:1:2300::5]:4711"], NET),
    ("A4, bare", ["2001:db8:1:23ff::9"], NET),
    ("A5, junk on the left", ["unknown", C], C),
    ("A5, junk that has to be read", ["203.0.113.9", "unknown"], P),
    ("A5, junk behind a trusted one", ["203.0.113.9", "unknown", "192.0.2.5"], P),
    ("A5, an empty entry", ["203.0.113.9", ""], P),
    ("A5, nothing", [""], P),
    ("A5, the unspecified address", ["203.0.113.9", "0.0.0.0"], P),
    ("A5, a zone", ["203.0.113.9", "fe80::1%eth0"], P),
    ("A7", ["::ffff:198.51.100.7"], C),
    ("A7, in hexadecimal", ["::ffff:c633:6407"], C),
    ("A7, a trusted one", [C, "::ffff:c000:205"], C),
    ("A7, not mapped", ["2001:db8:1234:5678::192.0.2.1"], "2001:db8:1234:5600::/56"),
    ("A8", ["2001:db8:1234:56ab:1:2:3:4"], "2001:db8:1234:5600::/56"),
    ("A8, another spelling", ["2001:DB8:1234:56CD::9"], "2001:db8:1234:5600::/56"),
    ("A8, the next network", ["2001:db8:1234:5700::1"], "2001:db8:1234:5700::/56"),
]
CHAIN = pytest.mark.parametrize(("case", "entries", "right"), CHAINS, ids=[case for case, *_ in CHAINS])


@CHAIN
def test_x_forwarded_for_is_read_from_the_right(case: str, entries: list[str], right: str) -> None:
    """Trusted entries are passed over, the first other one is the client."""
    assert client(", ".join(entries)) == right
    assert client(",".join(entries)) == right


@CHAIN
def test_forwarded_is_read_from_the_right_too(case: str, entries: list[str], right: str) -> None:
    """The same chains as RFC 7239 writes them have the same client."""
    chain = [f'For="{entry}";proto=https;host="a,b"' for entry in entries]
    assert client(", ".join(chain), "Forwarded") == right


@CHAIN
def test_a_header_of_one_address_holds_exactly_one(case: str, entries: list[str], right: str) -> None:
    """``X-Real-IP`` is the client where it is one address, and counts as absent where it is anything else."""
    expected = right if len(entries) == 1 else P
    assert client(", ".join(entries), "X-Real-IP") == expected


@pytest.mark.parametrize(
    ("value", "right"),
    [
        ("for=198.51.100.17, for=192.0.2.5", "198.51.100.17"),
        ('For="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::/56"),
        (r'for="198.51.100.7";host="a,b;c=\"d"', C),
        ('for="x, for=198.51.100.7', C),
        ("for=2001:db8:cafe::17", "2001:db8:cafe::/56"),
        ("for=198.51.100.7;for=203.0.113.9", P),
        ("for=_hidden", P),
        ("for=unknown, for=192.0.2.5", P),
        ("host=example.org", P),
    ],
)
def test_forwarded_in_its_own_notations(value: str, right: str) -> None:
    """Case A6: quotes, brackets and bare IPv6 are read; a hidden or doubled client is none."""
    assert client(value, "Forwarded") == right


def test_a_stranger_is_not_heard() -> None:
    """Case A9: whoever connects from elsewhere is the client, whatever the header says."""
    told = {
        client(value, header, peer=A)
        for header in ("X-Forwarded-For", "X-Real-IP", "Forwarded")
        for value in (C, P, f"for={C}", "127.0.0.1", "junk", "")
    }
    assert told == {A}


# -- who is believed -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "peer", ["192.0.2.10:4711", "::ffff:192.0.2.10", "::ffff:c000:20a", "[::ffff:192.0.2.10]:1"]
)
def test_a_peer_is_believed_however_it_is_spelt(peer: str) -> None:
    """A server on a dual-stack socket reports mapped addresses, others a port."""
    assert client(C, peer=peer) == C


def test_a_zone_of_the_peer_is_dropped() -> None:
    """A proxy that is reached over a link is believed by its address."""
    assert client(C, peer="fe80::1%eth0", trusted="fe80::/10") == C


@pytest.mark.parametrize("peer", ["", None, "unix:", "-"])
def test_a_peer_on_a_unix_socket_is_believed_where_that_is_said(peer: str | None) -> None:
    """``unix`` trusts a peer that is no IP address, and no one else."""
    sent = environ(peer, X_FORWARDED_FOR=f"{A}, {C}")
    assert settings(TRUSTED_PROXIES="unix").proxies.client(sent) == C
    assert settings(TRUSTED_PROXIES=TRUSTED).proxies.client(sent) == peer
    assert settings(TRUSTED_PROXIES="unix").proxies.client({**sent, "REMOTE_ADDR": A}) == A


def test_behind_a_unix_socket_other_proxies_are_passed_over() -> None:
    """``unix`` and networks add up."""
    proxies = settings(TRUSTED_PROXIES=["unix", TRUSTED]).proxies
    assert proxies.client(environ("", X_FORWARDED_FOR=f"{A}, {C}, 192.0.2.5")) == C


@pytest.mark.parametrize("trusted", [None, "", [], ()])
def test_nobody_is_believed_unless_named(trusted: Any) -> None:
    """Without VENUELIMIT_TRUSTED_PROXIES no header is read."""
    proxies = settings(TRUSTED_PROXIES=trusted).proxies
    assert proxies.client(environ(P, X_FORWARDED_FOR=C)) == P


def test_only_the_named_header_is_read() -> None:
    """A proxy that overwrites one header passes others through as clients send them."""
    proxies = settings(TRUSTED_PROXIES=TRUSTED, FORWARDED_HEADER="x-real-ip").proxies
    assert proxies.client(environ(X_FORWARDED_FOR=A, FORWARDED=f"for={A}")) == P
    assert proxies.client(environ(X_FORWARDED_FOR=A, X_REAL_IP=C)) == C


# -- known edges ---------------------------------------------------------------------------------


def test_well_known_edges_go_by_their_names() -> None:
    """``cloudflare``, ``private`` and ``loopback`` stand for their networks."""
    proxies = settings(TRUSTED_PROXIES=["cloudflare", "private", "loopback"]).proxies
    chain = f"{A}, {C}, 172.68.1.1, 2606:4700::1, 10.1.2.3, ::1"
    assert proxies.client(environ("127.0.0.1", X_FORWARDED_FOR=chain)) == C


@pytest.mark.parametrize("name", EDGES)
def test_each_edge_is_data_with_a_source_and_a_date(name: str) -> None:
    """Every network of a set can be read and is nobody's whole internet."""
    edge = EDGES[name]
    networks = [parse_network(text) for text in edge.networks]
    assert [str(network) for network in networks] == list(edge.networks)
    assert min(network.prefixlen for network in networks) >= 7
    assert edge.source
    assert len(edge.date.split("-")) == 3


@pytest.mark.parametrize(
    "inside", ["10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1", "fe80::1"]
)
def test_private_addresses_are_private(inside: str) -> None:
    """The set ``private`` holds what its name says, and none of the internet."""
    proxies = settings(TRUSTED_PROXIES="private").proxies
    assert proxies.client(environ(inside, X_FORWARDED_FOR=C)) == C
    assert not any(ipaddress.ip_address(C) in parse_network(text) for text in EDGES["private"].networks)


# -- settings that cannot be kept ----------------------------------------------------------------

EVERYBODY = (
    "VENUELIMIT_TRUSTED_PROXIES names {!r}, which is everybody: then any client could write itself any "
    "address. Name the networks your proxies connect from."
)
UNKNOWN = (
    "VENUELIMIT_TRUSTED_PROXIES names {!r}, which is no known set of networks. Known are: cloudflare, "
    "google-load-balancers, loopback, private, and unix for a peer on a unix socket."
)
MALFORMED = (
    "VENUELIMIT_TRUSTED_PROXIES names {!r}, which is no network ({}). Use networks such as 192.0.2.0/24 or "
    "single addresses."
)
NO_HEADER = (
    "VENUELIMIT_FORWARDED_HEADER is {!r}. Use X-Forwarded-For, Forwarded, or the name of a header that holds "
    "exactly one address, such as X-Real-IP."
)


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "::ffff:0:0/96", "0.0.0.0/0.0.0.0"])
def test_nobody_can_believe_everybody(network: str) -> None:
    """A network of /0 is refused, however it is written, beside others too."""
    for trusted in (network, [network], f"loopback, {network}"):
        assert message(settings, TRUSTED_PROXIES=trusted) == EVERYBODY.format(network)


@pytest.mark.parametrize("name", ["cloudfare", "Cloudflare", "everybody", "*", "nginx2", "10", "unix!"])
def test_an_unknown_edge_lists_the_known_ones(name: str) -> None:
    """Whoever mistypes a name is told the names there are."""
    assert message(settings, TRUSTED_PROXIES=["loopback", name]) == UNKNOWN.format(name)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("192.0.2.0/33", "'192.0.2.0/33' does not appear to be an IPv4 or IPv6 network"),
        ("192.0.2.1/28", "192.0.2.1/28 has host bits set"),
        ("2001:db8::/129", "'2001:db8::/129' does not appear to be an IPv4 or IPv6 network"),
        ("proxy.example.org", "'proxy.example.org' does not appear to be an IPv4 or IPv6 network"),
        ("unix:/run/app.sock", "'unix:/run/app.sock' does not appear to be an IPv4 or IPv6 network"),
    ],
)
def test_a_malformed_network_is_named(text: str, why: str) -> None:
    """The error quotes it, and says why it is none."""
    assert message(settings, TRUSTED_PROXIES=f"192.0.2.1,{text}") == MALFORMED.format(text, why)


@pytest.mark.parametrize("value", [7, [1], {"loopback": 1}])
def test_the_trusted_are_a_list_of_texts(value: Any) -> None:
    """Anything else is quoted back."""
    assert message(settings, TRUSTED_PROXIES=value) == (
        f"VENUELIMIT_TRUSTED_PROXIES is {value!r}. Use a list of texts, or one text with commas."
    )


@pytest.mark.parametrize(
    "value", ["", " ", "-", "X_Real_IP", "X-Real-IP:", "X-Reäl-IP", "a b", 7, ["Forwarded"]]
)
def test_a_header_s_name_is_one(value: Any) -> None:
    """What cannot be the name of a header field is refused; an underscore would never arrive."""
    assert message(settings, FORWARDED_HEADER=value) == NO_HEADER.format(value)


# -- whom an exemption may reach, and what is overlooked -----------------------------------------


def fixed(peer: str, before: str, **headers: str) -> dict[str, Any]:
    """An environ through a ProxyFix that found ``before``."""
    return {**environ(peer, **headers), "werkzeug.proxy_fix.orig": {"REMOTE_ADDR": before}}


@pytest.mark.parametrize(
    ("trusted", "sent", "certain"),
    [
        ("", environ(A), A),
        ("", environ(A, X_FORWARDED_FOR=C), None),
        ("", environ(A, FORWARDED="junk"), None),
        ("", environ(A, CF_CONNECTING_IP=C), None),
        ("", fixed(C, A, X_FORWARDED_FOR=C), C),
        # a ProxyFix that has left the address alone vouches for nobody
        ("", fixed(A, A, X_FORWARDED_FOR=C), None),
        ("", fixed(A, A, X_REAL_IP=C), None),
        ("", fixed(A, A, X_FORWARDED_FOR=A), A),
        (TRUSTED, environ(P), P),
        (TRUSTED, environ(A), A),
        (TRUSTED, environ(P, X_FORWARDED_FOR=C), C),
        (TRUSTED, environ(A, X_FORWARDED_FOR=C), None),
        (TRUSTED, environ(A, X_REAL_IP=C), None),
        # a header that cannot be read names nobody, and not the proxy either
        (TRUSTED, environ(P, X_FORWARDED_FOR=f"{C}, unknown"), None),
        (TRUSTED, environ(P, X_REAL_IP=C), None),
        # where proxies are named, they alone vouch
        (TRUSTED, fixed(C, A, X_FORWARDED_FOR=C), None),
        (TRUSTED, fixed(C, P, X_FORWARDED_FOR=C), C),
    ],
)
def test_an_address_is_certain_where_no_header_could_move_it(
    trusted: str, sent: dict[str, Any], certain: str | None
) -> None:
    """An exemption is for the client itself, never for a proxy through which anybody may come."""
    assert settings(TRUSTED_PROXIES=trusted).proxies.certain(sent, sent["REMOTE_ADDR"]) == certain


@pytest.mark.parametrize(
    "peer", ["127.0.0.1", "::1", "10.0.0.1", "192.168.0.2:80", "::ffff:10.0.0.1", "fd00::1", "", None]
)
@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP"])
def test_a_header_from_close_by_is_overlooked(peer: str | None, header: str) -> None:
    """A proxy on this very network seems to send it, and nobody reads it."""
    assert Proxies().overlooked(environ(peer, **{header.replace("-", "_"): C})) == header


@pytest.mark.parametrize(
    ("proxies", "sent"),
    [
        (Proxies(), environ("127.0.0.1")),
        (Proxies(), environ(A, X_FORWARDED_FOR=C)),
        (Proxies(), environ("127.0.0.1", X_FORWARDED_PROTO="https")),
        (Proxies(), fixed(C, "127.0.0.1", X_FORWARDED_FOR=C)),
        (Proxies(unix=True), environ("127.0.0.1", X_FORWARDED_FOR=C)),
        (Proxies((parse_network(TRUSTED),)), environ("127.0.0.1", X_FORWARDED_FOR=C)),
    ],
)
def test_nothing_is_overlooked_otherwise(proxies: Proxies, sent: dict[str, Any]) -> None:
    """No header, a public peer, a ProxyFix that acted, or somebody who is believed: nothing to say."""
    assert proxies.overlooked(sent) is None


def test_an_app_s_own_header_may_be_overlooked() -> None:
    """Named in VENUELIMIT_FORWARDED_HEADER with nobody trusted, it is one of those that are looked for."""
    proxies = settings(FORWARDED_HEADER="X-Client-Address").proxies
    assert proxies.overlooked(environ("10.0.0.1", X_CLIENT_ADDRESS=C)) == "X-Client-Address"

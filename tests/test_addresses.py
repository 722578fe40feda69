"""Addresses: all spellings of one are one, and what is none is none."""

from __future__ import annotations

import pytest

from flask_venuelimit.addresses import lies_in, normalise, parse_network


@pytest.mark.parametrize(
    ("text", "address"),
    [
        # ports are dropped, and a bare IPv6 address is never split
        ("198.51.100.7", "198.51.100.7"),
        ("198.51.100.7:49152", "198.51.100.7"),
        ("[2001:db8:1:2300::5]:4711", "2001:db8:1:2300::/56"),
        ("[2001:db8:1:2300::5]", "2001:db8:1:2300::/56"),
        ("2001:db8:1:23ff::9", "2001:db8:1:2300::/56"),
        ("2001:db8::1:443", "2001:db8::/56"),
        # IPv4 in IPv6 by its bits, however it is spelt, and only where it is mapped
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("::FFFF:C000:0201", "192.0.2.1"),
        ("0:0:0:0:0:ffff:c000:0201", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("2001:db8:1234:5678::192.0.2.1", "2001:db8:1234:5600::/56"),
        ("::192.0.2.1", "::/56"),
        # one customer's network
        ("2001:db8:1234:56ab:1:2:3:4", "2001:db8:1234:5600::/56"),
        ("2001:DB8:1234:56CD::9", "2001:db8:1234:5600::/56"),
        ("2001:db8:1234:5700::1", "2001:db8:1234:5700::/56"),
        ("2001:0db8:0000:1234:0000:0000:0000:0005", "2001:db8:0:1200::/56"),
        # a zone says on which wire of this machine, not who
        ("fe80::1%eth0", "fe80::/56"),
        ("[fe80::1%eth0]:80", "fe80::/56"),
        ("::1", "::/56"),
        (" 198.51.100.7\t", "198.51.100.7"),
    ],
)
def test_all_spellings_of_an_address_are_one(text: str, address: str) -> None:
    """Port, zone, case, zeros and notation change nothing."""
    assert normalise(text) == address


NO_ADDRESSES = [
    "",
    " ",
    "unknown",
    "_hidden",
    "unix:",
    "localhost",
    "0.0.0.0",
    "0.0.0.0:80",
    "::",
    "[::]:80",
    "::ffff:0.0.0.0",
    "198.51.100",
    "198.51.100.7.1",
    "198.51.100.256",
    "198.51.100.007",
    "198.51.100.7:",
    "198.51.100.7:http",
    "198.51.100.7:123456",
    "198.51.100.7/32",
    "198.51.100.7 80",
    "3325256711",
    "0xc6336407",
    "[198.51.100.7]",
    "[]",
    "[2001:db8::1",
    "2001:db8::1]",
    "[[2001:db8::1]]",
    "[2001:db8::1]443",
    "[2001:db8::1]:",
    "[2001:db8::1]:443:443",
    "2001:db8::1::2",
    "2001:db8::12345",
    "2001:db8::/56",
    "١٩٨.51.100.7",
    "198.51.100.7\n",
    "198.51.100.7\x00",
    "\xa0198.51.100.7",
    '"198.51.100.7"',
    "198.51.100.7,203.0.113.9",
    "\udcff",
]


@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_what_is_no_address_is_none(text: str) -> None:
    """Nothing is guessed: a word, a part, the unspecified address or something beside it is no address."""
    assert normalise(text) is None


@pytest.mark.parametrize("filler", ["1", ":", ".", "[", "f", " ", "0.", "1:"])
def test_a_long_text_is_no_address_and_is_not_kept(filler: str) -> None:
    """However long a text is, it costs neither an error nor memory."""
    assert normalise("198.51.100.7" + filler * 100_000) is None
    assert normalise(filler * 100_000 + "198.51.100.7") is None


@pytest.mark.parametrize(
    ("prefix", "address"),
    [
        (128, "2001:db8:0:1234::5/128"),
        (64, "2001:db8:0:1234::/64"),
        (60, "2001:db8:0:1230::/60"),
        (48, "2001:db8::/48"),
        (1, "::/1"),
    ],
)
def test_how_much_of_ipv6_is_a_client_can_be_chosen(prefix: int, address: str) -> None:
    """The prefix is IPv6's alone: IPv4, mapped too, stays whole."""
    assert normalise("2001:db8:0:1234::5", prefix) == address
    assert normalise("::ffff:198.51.100.7", prefix) == "198.51.100.7"


# -- networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("192.0.2.0/28", "192.0.2.0/28"),
        ("192.0.2.10", "192.0.2.10/32"),
        ("192.0.2.0/255.255.255.0", "192.0.2.0/24"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("::ffff:192.0.2.0/124", "192.0.2.0/28"),
        ("::ffff:c000:20a", "192.0.2.10/32"),
        ("::ffff:0:0/96", "0.0.0.0/0"),
    ],
)
def test_a_network_is_read_like_an_address(text: str, network: str) -> None:
    """An address is its own network, and one of mapped addresses is IPv4's."""
    assert str(parse_network(text)) == network


@pytest.mark.parametrize(
    "text", ["", "everybody", "192.0.2.1/28", "192.0.2.0/33", "192.0.2.0/-1", "2001:db8::/129", "192.0.2.0/"]
)
def test_a_malformed_network_is_an_error(text: str) -> None:
    """A network with bits outside its prefix is one as well: which of two was meant cannot be told."""
    with pytest.raises(ValueError, match=text or "''"):
        parse_network(text)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("192.0.2.1", True),
        ("192.0.2.1:80", True),
        ("::ffff:192.0.2.1", True),
        ("::ffff:c000:201", True),
        ("192.0.2.16", False),
        ("2001:db8:1::5", True),
        ("[2001:db8:1::5]:80", True),
        ("2001:db8:2::5", False),
        ("::192.0.2.1", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_an_address_lies_in_a_network_however_it_is_spelt(text: str, inside: bool) -> None:
    """Addresses are compared by what they are."""
    networks = [parse_network("192.0.2.0/28"), parse_network("2001:db8:1::/48")]
    assert lies_in(text, networks) is inside

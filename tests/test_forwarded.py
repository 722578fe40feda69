"""Chains of addresses, read from the right: X-Forwarded-For by commas, Forwarded by RFC 7239."""

from __future__ import annotations

import itertools

import pytest

from flask_venuelimit.forwarded import comma_separated, elements


@pytest.mark.parametrize(
    ("header", "entries"),
    [
        ("198.51.100.7", ["198.51.100.7"]),
        ("203.0.113.30, 198.51.100.45,192.0.2.1", ["192.0.2.1", "198.51.100.45", "203.0.113.30"]),
        (" \t198.51.100.7 \t", ["198.51.100.7"]),
        ("", [""]),
        (",", ["", ""]),
        ("198.51.100.7,", ["", "198.51.100.7"]),
        ('"198.51.100.7, 192.0.2.1"', ['192.0.2.1"', '"198.51.100.7']),
    ],
)
def test_x_forwarded_for_is_split_at_commas(header: str, entries: list[str]) -> None:
    """The last entry comes first, an empty one keeps its place, and a quote is a character like any other."""
    assert list(comma_separated(header)) == entries


@pytest.mark.parametrize(
    ("header", "nodes"),
    [
        ("for=198.51.100.17, for=192.0.2.5", ["192.0.2.5", "198.51.100.17"]),
        ('For="[2001:db8:cafe::17]:4711"', ["[2001:db8:cafe::17]:4711"]),
        (r'for="198.51.100.7";host="a,b;c=\"d"', ["198.51.100.7"]),
        ("for=192.0.2.60;proto=http;by=203.0.113.43", ["192.0.2.60"]),
        ("proto=http; by=203.0.113.43 ;\tFOR=192.0.2.60;", ["192.0.2.60"]),
        ("by=203.0.113.43;for=192.0.2.60", ["192.0.2.60"]),
        ("for=2001:db8::1", ["2001:db8::1"]),
        (r'for="\1\98.51.100.7"', ["198.51.100.7"]),
        ("for=unknown, for=_gazonk", ["_gazonk", "unknown"]),
        ("for=198.51.100.7;for=198.51.100.7", ["198.51.100.7"]),
        ('for=198.51.100.7;for="198.51.100.7"', ["198.51.100.7"]),
    ],
)
def test_forwarded_is_read_as_rfc_7239_says(header: str, nodes: list[str]) -> None:
    """Names in any case, pairs in any order, quoted or not, and a bare IPv6 address."""
    assert list(elements(header)) == nodes


@pytest.mark.parametrize(
    ("node", "read"),
    [
        ("198.51.100.7:_http", "198.51.100.7"),
        ("[2001:db8::1]:_a.b-c_", "[2001:db8::1]"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("198.51.100.7:_", "198.51.100.7:_"),
        ("198.51.100.7:_a b", "198.51.100.7:_a b"),
        ("2001:db8::1:_a", "2001:db8::1:_a"),
    ],
)
def test_a_port_that_is_kept_secret_is_dropped(node: str, read: str) -> None:
    """RFC 7239 lets a proxy name its port by a word of its own; after a bare IPv6 address it is none."""
    assert list(elements(f'for="{node}"')) == [read]


@pytest.mark.parametrize(
    "element",
    [
        "",
        ";",
        "host=example.org",
        "for",
        "for=",
        "for =198.51.100.7",
        "for= 198.51.100.7",
        "198.51.100.7",
        "=198.51.100.7",
        "for=198.51.100.7;for=203.0.113.9",
        "for=;for=198.51.100.7",
        "for=198.51.100.7 203.0.113.9",
        "for=198.51.100.7;junk",
        'for=198.51.100.7;host="a"b',
        'for="198.51.100.7"x',
        'for=x"198.51.100.7"',
        'f"or=198.51.100.7"',
    ],
)
def test_a_malformed_element_names_nobody(element: str) -> None:
    """What is not a list of pairs with one ``for=`` gives empty text in its place of the chain."""
    assert list(elements(f"for=203.0.113.1, {element}, for=192.0.2.5")) == ["192.0.2.5", "", "203.0.113.1"]


@pytest.mark.parametrize(
    "left",
    [
        'for="x',
        'for="x\\',
        '"',
        '\\"',
        '""" ',
        'for="203.0.113.9, for=203.0.113.10',
        'for=203.0.113.9;host="',
        "for=203.0.113.9\\",
        "\\\\\\",
    ],
)
def test_nobody_on_the_left_can_quote_what_stands_on_the_right(left: str) -> None:
    """A quote that a client leaves open does not swallow the entry that the proxy added."""
    assert next(elements(f"{left}, for=198.51.100.7")) == "198.51.100.7"


def test_an_open_quote_spoils_its_own_element() -> None:
    """Read to its left end, a chain whose quotes do not close ends in nobody."""
    assert list(elements('for=203.0.113.9, for="x, for=192.0.2.5')) == ["192.0.2.5", ""]


@pytest.mark.parametrize("host", [r"a\"b", r"a\\", r"a\\\"", "a, for=203.0.113.9", "a;for=203.0.113.9"])
def test_what_is_quoted_is_passed_over_as_a_whole(host: str) -> None:
    """Escaped quotes, backslashes and commas inside a quoted text are that text's."""
    header = f'for=198.51.100.7;host="{host}";proto=http, for=192.0.2.5'
    assert list(elements(header)) == ["192.0.2.5", "198.51.100.7"]


@pytest.mark.parametrize(("read", "entry"), [(comma_separated, "192.0.2.5"), (elements, "for=192.0.2.5")])
def test_a_chain_is_read_only_as_far_as_it_is_asked_for(read: type, entry: str) -> None:
    """The left of a header is not looked at before it is wanted: here it is no text at all."""

    class Torn(str):
        """A header whose left half must not be touched."""

        def __getitem__(self, index: object) -> str:
            start = index.start if isinstance(index, slice) else index
            assert isinstance(start, int)
            assert start >= len("left")
            return super().__getitem__(index)  # type: ignore[index]

    header = Torn(f"left,{entry},{entry}")
    assert list(itertools.islice(read(header), 2)) == ["192.0.2.5"] * 2

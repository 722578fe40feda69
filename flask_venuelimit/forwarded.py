"""Chains of forwarded addresses, read from the right: ``X-Forwarded-For``, and ``Forwarded`` (RFC 7239).

Both give one text an entry, the last one first, and read no further to the left than they are asked for.
What is no single address comes out as empty text: it still takes its place in the chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

#: Longer than any address with brackets, a port and white space around it.
LONGEST = 80

_PAIR = re.compile(
    r'\s*(?:([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^\s;"]*))?\s*(?:;|$)', re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def comma_separated(header: str) -> Iterator[str]:
    """Entries of ``X-Forwarded-For``: split at commas only, since it knows no quoting."""
    end = len(header)
    while end >= 0:
        comma = header.rfind(",", 0, end)
        yield header[comma + 1 : end].strip() if end - comma <= LONGEST else ""
        end = comma


def elements(header: str) -> Iterator[str]:
    """What ``for=`` says in each element of ``Forwarded``, quoting honoured.

    An element that is malformed, has no ``for=`` or two different ones gives empty text.
    """
    end = position = len(header)
    quoted = False
    while position:
        position -= 1
        char = header[position]
        if char == '"' and not _escaped(header, position):
            quoted = not quoted
        elif char == "," and not quoted:
            yield _for(header[position + 1 : end])
            end = position
    yield "" if quoted else _for(header[:end])


def _escaped(header: str, position: int) -> bool:
    """Whether a character follows an odd number of backslashes."""
    before = position
    while before and header[before - 1] == "\\":
        before -= 1
    return (position - before) % 2 == 1


def _for(element: str) -> str:
    named = set()
    position = 0
    while position < len(element):
        pair = _PAIR.match(element, position)
        if pair is None or pair.end() == position:
            return ""
        if pair[1] and pair[1].lower() == "for":
            named.add(_unquoted(pair[2]))
        position = pair.end()
    return named.pop() if len(named) == 1 else ""


def _unquoted(value: str) -> str:
    return _ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value


#: How the headers that hold a chain are read, by their names in lower case.
CHAINS: dict[str, Callable[[str], Iterator[str]]] = {
    "x-forwarded-for": comma_separated,
    "forwarded": elements,
}

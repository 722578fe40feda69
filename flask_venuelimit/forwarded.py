"""Chains of forwarded addresses, read from the right: ``X-Forwarded-For``, and ``Forwarded`` (RFC 7239).

Both give one text an entry, the last one first, and read no further to the left than they are asked for.
What is no single address comes out as empty text: it still takes its place in the chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

# A white space is matched in one place only before each thing that may be missing, so that a long run of it
# is walked through once.
_PAIR = re.compile(
    r'[ \t]*(?:([!#$%&\'*+.^_`|~0-9A-Za-z-]+)=("(?:[^"\\]|\\.)*"|[^ \t;"]*)[ \t]*)?(?:;|\Z)', re.DOTALL
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
#: A node whose port the proxy keeps to itself (RFC 7239, 6.3).
_OBFUSCATED_PORT = re.compile(r"(\[[^\[\]]*\]|[0-9.]+):_[0-9A-Za-z._-]+")


def comma_separated(header: str) -> Iterator[str]:
    """Entries of ``X-Forwarded-For``: split at commas only, since it knows no quoting."""
    end = len(header)
    while end >= 0:
        comma = header.rfind(",", 0, end)
        yield header[comma + 1 : end].strip(" \t")
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
    yield _for(header[:end])


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
        if pair is None:
            return ""
        if pair[1] and pair[1].lower() == "for":
            named.add(_node(pair[2]))
        position = pair.end()
    return named.pop() if len(named) == 1 else ""


def _node(value: str) -> str:
    """A node's name and port, its quotes taken away, and a port that is no number too."""
    text = _ESCAPE.sub(r"\1", value[1:-1]) if value.startswith('"') else value
    hidden = _OBFUSCATED_PORT.fullmatch(text)
    return hidden[1] if hidden else text


#: How the headers that hold a chain are read, by their names in lower case.
CHAINS: dict[str, Callable[[str], Iterator[str]]] = {
    "x-forwarded-for": comma_separated,
    "forwarded": elements,
}

"""Which requests a limit covers, as nginx can tell: patterns for its ``map``; the first match decides.

nginx knows a method and a path, and no endpoint. Where it cannot tell whether a request is covered it does
not count it, for it is the wider filter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from werkzeug.routing import Map, Rule

from ..coverage import UNMATCHED
from ..page import views as page_views

_CONVERTER = re.compile(r"<(?:([a-zA-Z_]\w*)(?:\(([^>]*)\))?:)?[a-zA-Z_]\w*>")
_ITEM = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^,"']+))\s*,?""")
#: What werkzeug's converters take, save those that may hold a slash.
_TAKES = {
    "default": "[^/]+",
    "string": "[^/]+",
    "int": "[0-9]+",
    "float": "[0-9]+[.][0-9]+",
    "uuid": "[0-9A-Fa-f-]{36}",
}
_SWALLOWS = ".+"


class Entry(NamedTuple):
    """A line of a map: whether a request whose ``METHOD /path`` looks like this counts."""

    pattern: str
    counts: bool


class Covered(NamedTuple):
    """What a limit covers, as nginx can tell it.

    :param entries: the first that matches decides.
    :param default: whether what none of them matches counts.
    :param omitted: rules that are covered, and that nginx cannot tell from those of another host.
    """

    entries: list[Entry]
    default: bool
    omitted: list[str]


class Segment(NamedTuple):
    """What stands between two slashes of a rule.

    :param text: the text itself, None where it holds a converter.
    """

    pattern: str
    text: str | None

    @property
    def swallows(self) -> bool:
        """Whether it may hold slashes; text never looks like this, for its signs are escaped."""
        return _SWALLOWS in self.pattern

    def meets(self, other: Segment) -> bool:
        """Whether something may match both."""
        if self.text is None:
            return other.text is None or re.fullmatch(self.pattern, other.text) is not None
        return self.text == other.text if other.text is not None else other.meets(self)


class Path:
    """A rule of the URL map, as a pattern.

    :param methods: those it is about; None for any.
    :param known: the converters that mean what they mean in werkzeug.
    :param wide: whether to match too much rather than too little.
    """

    def __init__(
        self, rule: Rule, methods: Collection[str] | None, known: Collection[str], wide: bool
    ) -> None:
        self.rule = rule.rule
        #: Whether the rule is about one host, and others may have the same path.
        self.of_a_host = bool(rule.subdomain or rule.host)
        self.methods = None if methods is None else _with_head(methods)
        self._known = known
        self._wide = wide

    @property
    def literal(self) -> bool:
        """Whether it is one path: such a rule wins over any other that matches it."""
        return _CONVERTER.search(self.rule) is None

    @cached_property
    def segments(self) -> list[Segment]:
        """Its parts, split at slashes."""
        found, position = [Segment("", "")], 0
        for match in _CONVERTER.finditer(self.rule):
            _extend(found, self.rule[position : match.start()])
            found[-1] = Segment(found[-1].pattern + self._takes(match[1] or "default", match[2] or ""), None)
            position = match.end()
        _extend(found, self.rule[position:])
        return found

    @property
    def pattern(self) -> str:
        """``^(GET|HEAD) /games/-?[0-9]+$``."""
        methods = "[^ ]+" if self.methods is None else f"({'|'.join(sorted(self.methods))})"
        path = "/".join(segment.pattern for segment in self.segments)
        # a rule may be met without the slash that it ends with
        return f"^{methods} {path}{'?' if self._wide and len(path) > 1 and path.endswith('/') else ''}$"

    def meets(self, other: Path) -> bool:
        """Whether some request may match both."""
        if self.methods is not None and other.methods is not None and not self.methods & other.methods:
            return False
        for one, another in zip(self.segments, other.segments, strict=False):
            if one.swallows or another.swallows:
                return True
            if not one.meets(another):
                return False
        return len(self.segments) == len(other.segments)

    def outranks(self, other: Path) -> bool:
        """Whether werkzeug is known to take this rule where both match.

        What ends in a ``path`` comes after what begins alike and holds no slashes. Of others it is not said.
        """
        known = all((each[1] or "default") in self._known for each in _CONVERTER.finditer(self.rule))
        return known and not self._swallows and other._yields and self.rule.startswith(other._beginning)

    @property
    def _swallows(self) -> bool:
        return any(segment.swallows for segment in self.segments)

    @property
    def _yields(self) -> bool:
        return "path" in self._known and re.fullmatch(r"[^<]*<path:\w+>", self.rule) is not None

    @property
    def _beginning(self) -> str:
        return self.rule.partition("<")[0]

    def _takes(self, converter: str, arguments: str) -> str:
        """What a converter takes; one that is not known too little where it counts, else too much."""
        if converter not in self._known:
            return _SWALLOWS if self._wide else "[^/]+"
        if converter == "any":
            return f"({'|'.join(plain(''.join(item)) for item in _ITEM.findall(arguments))})"
        if converter == "path":
            return _SWALLOWS
        sign = "-?" if self._wide and converter in ("int", "float") else ""
        return sign + _TAKES[converter]


def covered_by(limit: dict[str, Any], url_map: Map) -> Covered:
    """Tell what a limit covers.

    :param limit: as a manifest tells it.
    """
    covers: dict[str, set[str]] = {}
    for place in limit["covers"]:
        covers.setdefault(place["endpoint"], set()).update(place["methods"])
    covered, others = _divided(covers, url_map)
    if UNMATCHED in covers:
        elsewhere = (Entry(each.pattern, False) for each in others)
        return Covered([*_never(limit["methods"]), *elsewhere], True, [])
    omitted = [each.rule for each in covered if each.of_a_host]
    return Covered(_counting([each for each in covered if not each.of_a_host], others), False, omitted)


def plain(text: str) -> str:
    """Write text as a pattern that matches nothing else, within the quotes of a configuration."""
    return "".join(map(_plain, text))


def _plain(char: str) -> str:
    if char.isalnum() or char in "/_~:@!,;=&%'-" or (char.isprintable() and not char.isascii()):
        return char
    # nginx takes a backslash before these away: " ' \ t r n
    return "[.]" if char == "." else "".join(f"\\x{byte:02x}" for byte in char.encode())


def _extend(segments: list[Segment], text: str) -> None:
    """Add text, which may begin new segments."""
    first, *further = text.split("/")
    pattern, known = segments[-1]
    segments[-1] = Segment(pattern + plain(first), None if known is None else known + first)
    segments += [Segment(plain(each), each) for each in further]


def _divided(covers: dict[str, set[str]], url_map: Map) -> tuple[list[Path], list[Path]]:
    """The rules that are covered, and those that are not; one may be both, by its methods."""
    usual = {**_TAKES, "any": "", "path": ""}
    known = {name for name in usual if url_map.converters.get(name) is Map.default_converters.get(name)}
    covered, others = [], []
    for rule in url_map.iter_rules():
        methods = covers.get(rule.endpoint, set())
        here = methods if rule.methods is None else methods & set(rule.methods)
        if here:
            covered.append(Path(rule, here, known, wide=False))
        rest = _uncovered(rule, here)
        if rest is None or rest:
            others.append(Path(rule, rest, known, wide=True))
    return covered, others


def _uncovered(rule: Rule, here: Collection[str]) -> set[str] | None:
    """The methods of a rule that are not covered; None for any."""
    # the limit page is exempt whatever the method
    if not here and (rule.methods is None or page_views.is_ours(rule.endpoint)):
        return None
    return set(rule.methods or ()) - _with_head(here) - {"OPTIONS"}


def _never(methods: Collection[str] | None) -> list[Entry]:
    """The methods that do not count where everything is covered: a preflight's, and what is left out."""
    entries = [Entry("^OPTIONS ", False)]
    if methods is not None:
        entries.append(Entry(f"^(?!({'|'.join(map(plain, sorted(_with_head(methods))))}) )", False))
    return entries


def _counting(covered: Sequence[Path], others: Iterable[Path]) -> list[Entry]:
    """What counts, and ahead of it what may look the same and does not."""
    literal = [Entry(each.pattern, True) for each in covered if each.literal]
    patterns = [each for each in covered if not each.literal]
    ahead = [Entry(each.pattern, False) for each in others if _may_take(each, patterns)]
    return [*literal, *ahead, *(Entry(each.pattern, True) for each in patterns)]


def _may_take(path: Path, patterns: Iterable[Path]) -> bool:
    """Whether a rule that is not covered may take requests that one of these patterns matches."""
    return any(path.meets(each) and not each.outranks(path) for each in patterns)


def _with_head(methods: Collection[str]) -> frozenset[str]:
    return frozenset({*methods, "HEAD"} if "GET" in methods else methods)

"""The numbers policies are made of: checked, kept exact, read from text, put into words."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from typing import TypeAlias, TypeGuard

#: How policies take a length of time.
Seconds: TypeAlias = "int | float | timedelta"

#: Microseconds in a second: inside, times are whole microseconds.
SECOND = 1_000_000
_TICK = timedelta(microseconds=1)
UNITS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}

#: The largest integer a structured header field holds (RFC 9651, section 3.3.1).
MOST = 999_999_999_999_999
#: Fifty years of seconds: longer ones Lua's doubles do not multiply and divide exactly.
LONGEST = 18_262 * 86_400
#: A bucket's parts stay below this, so that Lua's doubles add and divide them exactly.
_EXACT = 2**51
#: The finest split of a microsecond a bucket's rate is rounded to.
_FINEST = 1_000_000

_SHORT = {"s": 1, "sec": 1, "secs": 1, "m": 60, "min": 60, "mins": 60, "h": 3_600, "d": 86_400}
_SPELT = UNITS | {unit + "s": length for unit, length in UNITS.items()} | _SHORT
_PART = re.compile(r"([0-9]+)\s*(?:/|per)\s*([0-9]+(?:\.[0-9]+)?)?\s*([a-z]+)", re.IGNORECASE)
_GRAMMAR = (
    'Write a whole number, "/" or "per", and a time: "10/minute", "10 per 15 minutes", "5/10s". '
    "Units are second, minute, hour, day, their plurals, and s, m, h, d, sec, min; "
    'several limits are joined by ";".'
)


def check_whole(owner: object, name: str, value: object, least: int) -> None:
    """Take a whole number from ``least`` on.

    :raises ValueError: it is none; the text quotes it.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        raise ValueError(
            f"{type(owner).__name__}({name}={value!r}): {name} has to be a whole number "
            f"from {least} to {MOST}."
        )


def check_rate(owner: object, value: object) -> None:
    """Take a number over 0.

    :raises ValueError: it is none; the text quotes it.
    """
    if not _is_number(value) or not 0 < value <= MOST:
        raise ValueError(
            f"{type(owner).__name__}(rate={value!r}): rate has to be a number over 0, at most {MOST}."
        )


def seconds(owner: object, name: str, value: object, *, or_zero: bool = False) -> int | float:
    """Take a length of time over 0 (or 0 as well, with ``or_zero``) as seconds.

    :raises ValueError: it is none; the text quotes it.
    """
    # a timedelta counts microseconds, so that this division is exact
    length = plain(Fraction(value // _TICK, SECOND)) if isinstance(value, timedelta) else value
    if _is_number(length) and (0.000_001 <= length <= LONGEST or (or_zero and length == 0)):
        return length
    least = "0 or over" if or_zero else "over 0"
    raise ValueError(
        f"{type(owner).__name__}({name}={value!r}): {name} has to be {least}: seconds or a timedelta, "
        "from a microsecond to fifty years."
    )


def exact(value: Seconds) -> Fraction:
    """Take a number as it is written, not as binary rounds it: 0.1 is a tenth."""
    return Fraction(str(value))


def microseconds(value: Seconds) -> int:
    """Turn checked seconds into whole microseconds."""
    return round(exact(value) * SECOND)


def as_parts(interval: Fraction, most: int) -> tuple[int, int] | None:
    """Split the time one of something takes into parts of which whole numbers come back each microsecond.

    Kept as two integers, no rate is ever rounded to whole seconds or milliseconds.

    :param interval: microseconds one takes, over 0.
    :param most: how many of them are ever added up.
    :returns: parts one is made of, and parts a microsecond; their quotient is ``interval``, or close to it
        where that would need numbers Lua's doubles do not hold. None where nothing is close.
    """
    finest = _FINEST if most * interval <= LONGEST * SECOND else 0
    while finest:
        close = interval.limit_denominator(finest)
        if close and most * close.numerator < _EXACT:
            return close.numerator, close.denominator
        finest //= 2
    return None


def plain(value: Fraction) -> int | float:
    """Give an int where the fraction is whole, else a float."""
    return int(value) if value.denominator == 1 else float(value)


def spell_rate(limit: int, span: int) -> str:
    """Spell ``limit`` in ``span`` microseconds: ``10/minute``, ``10 per 15 minutes``."""
    period = spell_period(span)
    return f"{limit}/{period}" if period in UNITS else f"{limit} per {period}"


def spell_period(span: int) -> str:
    """Spell microseconds by the largest unit that goes whole into them: ``minute``, ``0.5 seconds``."""
    for unit, length in reversed(UNITS.items()):
        count, rest = divmod(span, length * SECOND)
        if count and not rest:
            return unit if count == 1 else f"{count} {unit}s"
    # fixed point, since the grammar reads no exponents
    return f"{span / SECOND:.6f}".rstrip("0") + " seconds"


def split_rates(text: str) -> list[str]:
    """Split ``"10/minute; 100/hour"`` into its parts.

    :raises ValueError: a part is empty; the text quotes the whole.
    """
    parts = [part.strip() for part in text.split(";")]
    if not all(parts):
        raise ValueError(f"{text!r} has an empty part. {_GRAMMAR}")
    return parts


def read_rate(part: str) -> tuple[int, int | float]:
    """Read ``"10 per 15 minutes"`` as a whole number and seconds.

    :raises ValueError: it cannot be read or is out of range; the text quotes it and lists what can.
    """
    match = _PART.fullmatch(part)
    if match is None:
        raise ValueError(f"{part!r} is not a limit. {_GRAMMAR}")
    limit, count, unit = match.groups()
    length = _SPELT.get(unit.lower())
    if length is None:
        raise ValueError(f"{part!r} has the unknown unit {unit!r}. {_GRAMMAR}")
    period = Fraction(count or 1) * length
    if len(limit) > 15 or not Fraction(1, SECOND) <= period <= LONGEST:
        raise ValueError(
            f"{part!r} is out of range: a limit has at most 15 digits, a time is over 0, from a "
            f"microsecond to fifty years. {_GRAMMAR}"
        )
    return int(limit), plain(period)


def _is_number(value: object) -> TypeGuard[int | float]:
    # bool is an int to Python, and True seconds is a slip
    return isinstance(value, (int, float)) and not isinstance(value, bool)

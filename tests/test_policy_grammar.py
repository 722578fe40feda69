"""The strings that spell a policy, and what is told of those that do not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.policies import SlidingWindow, parse

GRAMMAR = (
    'Write a whole number, "/" or "per", and a time: "10/minute", "10 per 15 minutes", "5/10s". '
    "Units are second, minute, hour, day, their plurals, and s, m, h, d, sec, min; "
    'several limits are joined by ";".'
)
RANGE = (
    "is out of range: a limit has at most 15 digits, a time is over 0, from a microsecond to fifty years. "
    + GRAMMAR
)


def _fault(call: Any, *arguments: object, **named: object) -> str:
    with pytest.raises(ValueError) as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "limit", "per"),
    [
        ("10/minute", 10, 60),
        ("10 per 15 minutes", 10, 900),
        ("5/10s", 5, 10),
        ("1/second", 1, 1),
        ("7/hours", 7, 3600),
        ("2 PER Day", 2, 86400),
        ("  3  /  2  h ", 3, 7200),
        ("3per2days", 3, 172800),
        ("100/sec", 100, 1),
        ("9/min", 9, 60),
        ("4/m", 4, 60),
        ("4/d", 4, 86400),
        ("4/1.5h", 4, 5400),
        ("4/0.5s", 4, 0.5),
        ("0/minute", 0, 60),
        ("007/s", 7, 1),
    ],
)
def test_a_string_spells_a_sliding_window(text: str, limit: int, per: float) -> None:
    """Numbers, units, plurals, short forms, any case and any spacing."""
    assert parse(text) == (SlidingWindow(limit, per),)


def test_several_strings_are_joined_by_semicolons() -> None:
    """Each part is a policy, and all of them must agree."""
    assert parse("10/minute;100/hour ; 5/s") == (
        SlidingWindow(10, 60),
        SlidingWindow(100, 3600),
        SlidingWindow(5, 1),
    )


@pytest.mark.parametrize("text", ["", " ", ";", "10/minute;", ";10/minute", "10/minute;;5/s"])
def test_an_empty_part_is_refused(text: str) -> None:
    """The error quotes the whole and lists what can be written."""
    assert _fault(parse, text) == f"{text!r} has an empty part. {GRAMMAR}"


@pytest.mark.parametrize("text", ["5/fortnight", "5 per 2 months", "5/msec", "5/minutess"])
def test_an_unknown_unit_is_refused(text: str) -> None:
    """The error quotes the part and the unit."""
    unit = text.replace("/", " ").split()[-1]
    assert _fault(parse, f"10/minute; {text}") == f"{text!r} has the unknown unit {unit!r}. {GRAMMAR}"


@pytest.mark.parametrize(
    "text",
    ["-5/minute", "5/-1s", "1.5/minute", "minute", "5", "5/", "/minute", "5/5", "5 minute", "٥/minute"],
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    """A negative number, a fraction of a hit, a missing half: the error quotes the part."""
    assert _fault(parse, text) == f"{text!r} is not a limit. {GRAMMAR}"


@pytest.mark.parametrize("text", ["5/0s", "5/0.0000001s", "5 per 51000 days", f"{10**15}/s"])
def test_what_is_out_of_range_is_refused(text: str) -> None:
    """No time at all, or numbers beyond what is counted exactly: the error quotes the part."""
    assert _fault(parse, text) == f"{text!r} {RANGE}"


@given(limit=st.integers(0, 10**15 - 1), span=st.integers(1, 10**13))
def test_a_spelling_can_be_read_again(limit: int, span: int) -> None:
    """What a sliding window is called in lists spells that very policy."""
    policy = SlidingWindow(limit, span / 1_000_000)
    (again,) = parse(policy.spelling)
    assert again.numbers == policy.numbers == (limit, span)

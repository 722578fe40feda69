"""``flask venuelimit size``: the arithmetic of a shared address."""

from __future__ import annotations

import ast
from fractions import Fraction

import pytest
from flask import Flask

from flask_venuelimit import SlidingWindow, VenueLimit
from flask_venuelimit.sizing import size
from tests.commands.terminal import Typed, typed

ROOM = "--clients 100 --per-client 6/minute --extra 600/minute --headroom 1.0"


@pytest.fixture
def bare(app: Flask) -> Flask:
    """An app without storage, without a salt, and without limits."""
    app.config.pop("SECRET_KEY")
    VenueLimit(app)
    return app


def sized(app: Flask, words: str) -> Typed:
    """Type ``flask venuelimit size``."""
    return typed(app, "size", *words.split())


def test_a_full_pub_needs_1200_a_minute(bare: Flask) -> None:
    """A hundred phones that poll, and as much again for everything else, added up line by line."""
    answer = sized(bare, ROOM)
    assert answer.code == 0
    assert answer.lines[:5] == [
        "1200/minute",
        "",
        "100 clients x 6/minute = 600/minute",
        "extra + 600/minute",
        "headroom, x 1 = 1200/minute",
    ]
    assert "Everybody behind an address shares its bucket" in answer.text


def test_the_line_that_declares_it_is_python(bare: Flask) -> None:
    """It can be pasted, and says the same number."""
    shown = [line for line in sized(bare, ROOM).lines if line.startswith("limiter.")]
    assert shown[0] == 'limiter.limit("1200/minute", name="global", key=by_ip).everywhere()'
    assert [isinstance(ast.parse(line), ast.Module) for line in shown] == [True, True]


def test_units_are_brought_to_one(bare: Flask) -> None:
    """One in ten seconds is six a minute."""
    lines = sized(bare, "--clients 100 --per-client 1/10s --extra 600/minute").lines
    assert lines[0] == "1200/minute"
    assert "100 clients x 1 per 10 seconds = 600/minute" in lines


def test_what_is_extra_is_shown_in_its_own_unit_too(bare: Flask) -> None:
    """So that one finds what one typed."""
    lines = sized(bare, "--clients 1 --per-client 60/hour --extra 1/minute").lines
    assert lines[0] == "120/hour"
    assert lines[2:4] == ["1 client x 60/hour = 60/hour", "extra, 1/minute + 60/hour"]


def test_the_sum_is_rounded_up_and_says_so(bare: Flask) -> None:
    """Rounded down, it would refuse somebody who kept to their share."""
    lines = sized(bare, "--clients 3 --per-client 1/7s --extra 1/minute --headroom 1.1").lines
    assert lines[0] == "30/minute"
    assert lines[2:6] == [
        "3 clients x 1 per 7 seconds = 25.715/minute",
        "extra + 1/minute",
        "headroom, x 1.1 = 29.386/minute",
        "rounded up = 30/minute",
    ]


@pytest.mark.parametrize(
    ("clients", "per_client", "extra", "headroom", "limit"),
    [
        (1, "1/minute", None, 1, SlidingWindow(1, per=60)),
        (10, "1/10s", None, 1, SlidingWindow(10, per=10)),
        (10, "1/0.5s", None, "1.05", SlidingWindow(11, per=0.5)),
        (100, "1/s", "1/day", 1, SlidingWindow(8_640_001, per=86_400)),
        (3, "1/7s", "1/3s", 1, SlidingWindow(6, per=7)),
        (10, "1/minute", None, 1.1, SlidingWindow(11, per=60)),
        (1, "0/minute", "5/minute", 1, SlidingWindow(5, per=60)),
    ],
)
def test_the_limit_is_the_sum_never_less(
    clients: int, per_client: str, extra: str | None, headroom: float | str, limit: SlidingWindow
) -> None:
    """In the longer of the two windows; a headroom of 1.1 is eleven tenths, and not a hair more."""
    sizing = size(clients, per_client, extra, headroom)
    assert sizing.policy == limit
    assert limit.limit - 1 < sizing.exact <= limit.limit


def test_a_third_is_no_binary_fraction() -> None:
    """What is added up are the exact numbers."""
    assert size(3, "1/7s", "1/3s").exact == Fraction(16, 3)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--clients 0 --per-client 6/minute", "clients is 0. Use a whole number of at least 1"),
        ("--clients 5 --per-client 6", "per_client: '6' is not a limit. Write a whole number"),
        ("--clients 5 --per-client 6/moon", "per_client: '6/moon' has the unknown unit 'moon'."),
        ("--clients 5 --per-client 6/s --extra -1/s", "extra: '-1/s' is not a limit."),
        ("--clients 5 --per-client 6/s;9/m", "per_client is '6/s;9/m', which is 2 rates. Use one"),
        ("--clients 5 --per-client 6/s --headroom 0.9", "headroom is '0.9'. Use a number of at least 1"),
        ("--clients 5 --per-client 6/s --headroom nan", "headroom is 'nan'. Use a number of at least 1"),
        ("--clients 5 --per-client 6/s --headroom 1e999999999", "Use a number of at least 1, such as 1.25"),
        ("--clients 5 --per-client 0/s", "a limit of 0 refuses everybody"),
        ("--clients 999999999999999 --per-client 2/s", "the sum comes to more than can be counted"),
        ("--per-client 2/s", "Missing option '--clients'"),
        ("--clients many --per-client 2/s", "'many' is not a valid integer"),
    ],
)
def test_bad_input_is_explained(bare: Flask, words: str, complaint: str) -> None:
    """What was typed, what is wrong with it, and what to type instead."""
    answer = sized(bare, words)
    assert answer.code == 2
    assert complaint in answer.text

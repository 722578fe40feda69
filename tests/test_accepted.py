"""What a caller would rather have, as fields with q say it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.accepted import preferences


@pytest.mark.parametrize(
    ("header", "read"),
    [
        ("", []),
        ("text/html", [("text/html", 1)]),
        (" TEXT/HTML ; Level=1 ; Q=0.5 ,a/b", [("a/b", 1), ("text/html", 0.5)]),
        ("de-AT, en;q=0.8, *;q=0", [("de-at", 1), ("en", 0.8), ("*", 0)]),
        ("a;q=0.5, b;q=0.9, c;q=0.9", [("b", 0.9), ("c", 0.9), ("a", 0.5)]),
        ("a;q=1., b;q=0.123", [("a", 1), ("b", 0.123)]),
        ('a;x="b, c;q=0", d', [("a", 1), ("d", 1)]),
        (r'a;x="\", b", c', [("a", 1), ("c", 1)]),
        (",, ;q=1, ;", []),
    ],
)
def test_a_field_lists_names_by_q(header: str, read: list[tuple[str, float]]) -> None:
    """Best first, in the order written where q is the same; parameters and quoted texts name nothing."""
    assert preferences(header) == read


@pytest.mark.parametrize("q", ["2", "-1", "nan", "inf", "1e0", "", "x", "0,5", "9" * 400, "\u0661"])
def test_what_has_no_q_from_0_to_1_is_left_out(q: str) -> None:
    """A weight that is none says nothing, and the others stand."""
    assert ("a", 1) not in preferences(f"a;q={q}, b")
    assert ("b", 1) in preferences(f"a;q={q}, b")


@pytest.mark.parametrize(
    "text",
    ['a/b;c="' + "\\\\" * 30_000, "a" + " " * 60_000 + "b", '"\\' * 30_000, ";=," * 20_000, '"' * 60_000],
)
def test_no_field_takes_long(text: str) -> None:
    """Sixty thousand characters, more than servers take, are read at once however they are arranged."""
    started = time.process_time()
    preferences(text)
    assert time.process_time() - started < 1


@given(st.text(st.sampled_from('ab/;,=q"\\ .01*\t\x00\xff')))
def test_no_field_fails(header: str) -> None:
    """A stranger's field is read as far as it says something, best first."""
    read = preferences(header)
    assert [q for _, q in read] == sorted((q for _, q in read), reverse=True)
    assert all(name and 0 <= q <= 1 for name, q in read)

"""Limit state in header fields: what a client can rely on when it reads them."""

from __future__ import annotations

from typing import Any

import http_sf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.decisions import uncounted
from flask_venuelimit.headers import Shown, limit_state, sf_string, whole_seconds
from flask_venuelimit.policies import FixedWindow, SlidingWindow, TokenBucket
from tests.refusing import decided


def fields(*shown: Shown, kinds: tuple[str, ...] = ("draft", "trio"), **refusal: Any) -> dict[str, str]:
    pairs = limit_state(shown, kinds, **refusal)
    assert len(dict(pairs)) == len(pairs), "a field appears twice"
    return dict(pairs)


def parsed(value: str) -> dict[str, dict[str, Any]]:
    """Read a list of strings with parameters as any RFC 9651 parser does."""
    items: Any = http_sf.parse(value.encode(), tltype="list")
    return {name: dict(parameters) for name, parameters in items}


def test_the_draft_fields_say_what_a_limit_holds_and_what_is_left() -> None:
    """``RateLimit-Policy`` and ``RateLimit`` are spelt as the draft spells them."""
    found = fields(Shown(decided("global", SlidingWindow(1200, per=60), remaining=1199)))
    assert found["RateLimit-Policy"] == '"global";q=1200;w=60'
    assert found["RateLimit"] == '"global";r=1199;t=60'


def test_every_limit_is_in_the_draft_fields() -> None:
    """Several limits make one list, read alike by a structured field parser."""
    bucket = TokenBucket(capacity=20, rate=240, per=60)
    found = fields(
        Shown(decided("global", remaining=140)), Shown(decided("api", bucket, remaining=7, reset=3.2))
    )
    assert parsed(found["RateLimit-Policy"]) == {"global": {"q": 150, "w": 60}, "api": {"q": 20, "w": 5}}
    assert parsed(found["RateLimit"]) == {"global": {"r": 140, "t": 60}, "api": {"r": 7, "t": 4}}


def test_a_window_that_is_no_whole_second_is_left_out() -> None:
    """``w`` is an integer or absent; it is never rounded to something untrue."""
    found = fields(Shown(decided(policy=FixedWindow(10, per=0.5), remaining=9)))
    assert found["RateLimit-Policy"] == '"join";q=10'


def test_concurrency_counts_concurrent_requests() -> None:
    """A limit on requests under way has a unit of its own and no window."""
    found = fields(Shown(decided("exports", remaining=1, reset=1.0)._replace(quota=2, window=None)))
    assert parsed(found["RateLimit-Policy"]) == {"exports": {"q": 2, "qu": "concurrent-requests"}}
    assert found["RateLimit"] == '"exports";r=1;t=1'


def test_the_trio_is_of_the_limit_with_the_least_room() -> None:
    """Three plain fields can tell of one limit only: the one that will refuse first."""
    wide, tight = decided("global", remaining=900), decided("join", remaining=3, reset=12.1)
    found = fields(Shown(wide), Shown(tight), kinds=("trio",))
    assert found == {"RateLimit-Limit": "150", "RateLimit-Remaining": "3", "RateLimit-Reset": "13"}


def test_of_two_with_equal_room_the_trio_is_of_the_slower() -> None:
    """Whoever waits for the longer reset has room in both."""
    quick, slow = decided("a", remaining=3, reset=10), decided("b", remaining=3, reset=900)
    assert fields(Shown(slow), Shown(quick))["RateLimit-Reset"] == "900"
    assert fields(Shown(quick), Shown(slow))["RateLimit-Reset"] == "900"


def test_x_says_the_same_as_the_trio() -> None:
    """The older names carry the same three numbers."""
    shown = Shown(decided(remaining=5))
    plain = fields(shown, kinds=("trio",))
    assert fields(shown, kinds=("x",)) == {f"X-{name}": value for name, value in plain.items()}


def test_no_kinds_no_fields() -> None:
    """An empty VENUELIMIT_HEADERS sends nothing."""
    assert fields(Shown(decided(remaining=5)), kinds=()) == {}


def test_limits_nobody_counted_show_nothing() -> None:
    """Where storage failed or limiting is off there is no state to tell of."""
    assert fields(Shown(uncounted("join", "ip:1a2b3c4d", SlidingWindow(10, per=60)))) == {}


def test_shadow_limits_show_nothing() -> None:
    """A limit that only watches is not announced, though it would refuse."""
    seen = fields(Shown(decided("trial", wait=9.0, shadow=True)), Shown(decided("join", remaining=8)))
    assert parsed(seen["RateLimit"]) == {"join": {"r": 8, "t": 60}}


def test_a_charge_that_will_be_given_back_shows_as_given_back() -> None:
    """A failure limit that is not failing looks untouched."""
    shown = Shown(decided(remaining=145, cost=3), refund=True, cost=3)
    assert fields(shown)["RateLimit-Remaining"] == "148"


def test_a_refund_never_shows_more_than_the_quota() -> None:
    """What a refilling bucket regained meanwhile is not counted twice."""
    shown = Shown(decided(remaining=149, cost=3), refund=True, cost=3)
    assert fields(shown)["RateLimit-Remaining"] == "150"


def test_a_refund_without_a_charge_shows_nothing_extra() -> None:
    """A refused hit took nothing, so nothing comes back."""
    shown = Shown(decided(remaining=2, wait=5.0, cost=3), refund=True, cost=3)
    assert fields(shown)["RateLimit-Remaining"] == "2"


def test_the_refusing_limit_shows_no_room_and_the_time_of_retry_after() -> None:
    """Whatever was left for cheaper requests, the numbers in one response agree."""
    refused = decided("export", remaining=4, wait=2.3, reset=60, cost=5)
    found = fields(Shown(refused, cost=5), refused=refused, retry_after=4)
    assert found["RateLimit"] == '"export";r=0;t=4'
    assert (found["RateLimit-Remaining"], found["RateLimit-Reset"]) == ("0", "4")


def test_on_a_refusal_the_trio_is_of_the_refusing_limit() -> None:
    """Another limit that is just used up does not make Reset differ from Retry-After."""
    used_up, refused = decided("global", remaining=0, reset=900), decided("join", wait=3.0)
    found = fields(Shown(used_up), Shown(refused), refused=refused, retry_after=3)
    assert found["RateLimit-Reset"] == "3"
    assert parsed(found["RateLimit"]) == {"global": {"r": 0, "t": 900}, "join": {"r": 0, "t": 3}}


def test_a_second_refusing_limit_shows_its_own_wait() -> None:
    """Several limits may refuse; Retry-After belongs to the longest wait."""
    quick, refused = decided("a", wait=2.0), decided("b", wait=30.0)
    found = fields(Shown(quick), Shown(refused), refused=refused, retry_after=31)
    assert parsed(found["RateLimit"]) == {"a": {"r": 0, "t": 2}, "b": {"r": 0, "t": 31}}


def test_where_no_wait_helps_no_time_is_shown() -> None:
    """No Retry-After, no ``t``, no Reset."""
    refused = decided("closed", SlidingWindow(0, per=60), wait=None)
    found = fields(Shown(refused), refused=refused, retry_after=None)
    assert found["RateLimit"] == '"closed";r=0'
    assert "RateLimit-Reset" not in found


def test_a_limit_asked_twice_appears_once() -> None:
    """The last word of a limit counts, and the refusing one before any other."""
    first, last = decided(remaining=9), decided(remaining=8)
    assert parsed(fields(Shown(first), Shown(last))["RateLimit"]) == {"join": {"r": 8, "t": 60}}
    refused = decided(wait=2.0)
    found = fields(Shown(refused), Shown(last), refused=refused, retry_after=2)
    assert found["RateLimit"] == '"join";r=0;t=2'


def test_quotes_and_backslashes_in_names_are_escaped() -> None:
    """A name arrives as it was declared."""
    name = 'the "big" one \\ only'
    found = fields(Shown(decided(name, remaining=1)))
    assert list(parsed(found["RateLimit"])) == list(parsed(found["RateLimit-Policy"])) == [name]


@given(st.text())
def test_no_name_breaks_a_field(name: str) -> None:
    """Whatever a name holds, the field parses, and printable ASCII arrives unchanged."""
    (read,) = parsed(sf_string(name))
    assert read == name or not (name.isascii() and name.isprintable())


@pytest.mark.parametrize(
    ("seconds", "whole"),
    [(0.0, 0), (0.2, 1), (1.0, 1), (1.0000000001, 1), (1.9, 2), (58.001, 59), (58.0, 58)],
)
def test_seconds_are_rounded_up(seconds: float, whole: int) -> None:
    """A client told to wait never comes back too early, nor a second late for a float's last bit."""
    assert whole_seconds(seconds) == whole


def test_a_reset_is_rounded_up() -> None:
    """Reset and ``t`` are whole seconds, the fuller ones."""
    decision = decided(remaining=1)._replace(reset_after=0.000001)
    assert fields(Shown(decision))["RateLimit-Reset"] == "1"

"""Policies are values; what cannot be kept is told at declaration."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
    as_policies,
)

WINDOWS = (FixedWindow, SlidingWindow, SlidingLog)
NO_WHOLE = [-1, 1.0, 1.5, "5", True, None, float("nan"), 10**15]
NO_TIME = [0, -1, True, "60", None, float("nan"), float("inf"), 1e-7, 10**400, timedelta(0), timedelta(-1)]
NO_RATE = [0, -1, True, "5", None, float("nan"), float("inf"), 10**15]


def _fault(call: Any, *arguments: object, **named: object) -> str:
    with pytest.raises(ValueError) as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.mark.parametrize(
    ("policy", "spelling"),
    [
        (SlidingWindow(10, 60), "10/minute"),
        (SlidingWindow(10, 900), "10 per 15 minutes"),
        (SlidingWindow(3, 0.5), "3 per 0.5 seconds"),
        (FixedWindow(10, 86400), "fixed window of 10/day"),
        (FixedWindow(10, 5400), "fixed window of 10 per 90 minutes"),
        (TokenBucket(20, 240, 60), "token bucket of 20, 240 per minute"),
        (TokenBucket(5, 0.5), "token bucket of 5, 0.5 per second"),
        (SlidingLog(10, 60), "sliding log of 10/minute"),
        (LeakyBucket(5), "leaky bucket of 5 per second, no delay"),
        (LeakyBucket(0.5, 60, 2.5), "leaky bucket of 0.5 per minute, delay up to 2.5 s"),
        (Concurrency(10), "10 at once, lease 60 s"),
        (Concurrency(1, lease=timedelta(milliseconds=500)), "1 at once, lease 0.5 s"),
    ],
)
def test_a_policy_says_what_it_is(policy: Policy, spelling: str) -> None:
    """In lists and messages a policy is put into words."""
    assert policy.spelling == spelling


@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_are_values(kind: Any) -> None:
    """Equal where their numbers are, however these are written; hashable; never changed."""
    policy = kind(10, per=60)
    assert policy == kind(10, 60.0) == kind(10, timedelta(minutes=1))
    assert len({policy, kind(10, 60.0), kind(10, timedelta(minutes=1))}) == 1
    assert policy != kind(11, 60) != kind(10, 61)
    with pytest.raises(FrozenInstanceError):
        policy.limit = 11


def test_policies_of_two_kinds_differ() -> None:
    """The same numbers under another policy are another value."""
    alike = [FixedWindow(10, 60), SlidingWindow(10, 60), SlidingLog(10, 60), TokenBucket(10, 60)]
    assert len({*alike, LeakyBucket(10, 60), Concurrency(10, 60)}) == 6
    assert LeakyBucket(5) == LeakyBucket(rate=5.0, per=timedelta(seconds=1), max_delay=timedelta(0))
    assert Concurrency(5) == Concurrency(limit=5, lease=60.0) != Concurrency(5, lease=61)
    assert TokenBucket(5, 1) == TokenBucket(capacity=5, rate=1, per=1) == TokenBucket(5, 1.0, timedelta(0, 1))


@pytest.mark.parametrize("kind", [*WINDOWS, Concurrency])
@pytest.mark.parametrize("limit", NO_WHOLE, ids=repr)
def test_a_limit_is_a_whole_number(kind: Any, limit: object) -> None:
    """Anything else is refused where the limit is declared."""
    assert _fault(kind, limit, 60) == (
        f"{kind.__name__}(limit={limit!r}): limit has to be a whole number from 0 to 999999999999999."
    )


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("per", NO_TIME, ids=repr)
def test_a_window_takes_time(kind: Any, per: object) -> None:
    """Nothing, less, or what is no number of seconds, is refused where the limit is declared."""
    assert _fault(kind, 5, per) == (
        f"{kind.__name__}(per={per!r}): per has to be over 0: seconds or a timedelta, from a microsecond to "
        "fifty years."
    )


@pytest.mark.parametrize("capacity", [0, *NO_WHOLE], ids=repr)
def test_a_bucket_holds_at_least_one_token(capacity: Any) -> None:
    """A capacity that is no whole number of at least 1 is refused where the limit is declared."""
    assert _fault(TokenBucket, capacity, 1) == (
        f"TokenBucket(capacity={capacity!r}): capacity has to be a whole number from 1 to 999999999999999."
    )


@pytest.mark.parametrize("kind", [lambda rate: TokenBucket(5, rate), LeakyBucket], ids=["token", "leaky"])
@pytest.mark.parametrize("rate", NO_RATE, ids=repr)
def test_a_rate_is_over_0(kind: Any, rate: object) -> None:
    """Anything else is refused where the limit is declared."""
    assert _fault(kind, rate).partition("(")[2] == (
        f"rate={rate!r}): rate has to be a number over 0, at most 999999999999999."
    )


@pytest.mark.parametrize(
    ("kind", "named", "least"),
    [
        (LeakyBucket, {"rate": 5, "max_delay": -1}, "0 or over"),
        (LeakyBucket, {"rate": 5, "max_delay": float("nan")}, "0 or over"),
        (LeakyBucket, {"rate": 5, "max_delay": True}, "0 or over"),
        (LeakyBucket, {"rate": 5, "max_delay": 1e-7}, "0 or over"),
        (LeakyBucket, {"rate": 5, "per": 0}, "over 0"),
        (Concurrency, {"limit": 5, "lease": 0}, "over 0"),
        (TokenBucket, {"capacity": 5, "rate": 5, "per": 0}, "over 0"),
    ],
)
def test_every_time_is_checked(kind: Any, named: dict[str, Any], least: str) -> None:
    """Delays may be 0, leases and periods may not."""
    name, value = list(named.items())[-1]
    assert _fault(kind, **named) == (
        f"{kind.__name__}({name}={value!r}): {name} has to be {least}: seconds or a timedelta, from a "
        "microsecond to fifty years."
    )


@pytest.mark.parametrize(
    ("bucket", "takes"), [((10**15 - 1, 1, 86400), "86400"), ((1, 1e14), "1e-14"), ((1, 1e-11), "1e+11")]
)
def test_a_bucket_out_of_range_is_refused(bucket: tuple[Any, ...], takes: str) -> None:
    """One that takes longer to fill than is counted, or fills faster, is refused where it is declared."""
    assert _fault(TokenBucket, *bucket).partition("): ")[2] == (
        f"a token takes {takes} s, out of range. Use a rate of at most a token a picosecond, and a bucket "
        "that fills within fifty years."
    )


@pytest.mark.parametrize(
    ("queue", "takes"),
    [((1e14,), "1e-14"), ((1, 86_400, 18_262 * 86_400), "86400"), ((1e9, 1, 10**6), "1e-09")],
)
def test_a_queue_out_of_range_is_refused(queue: tuple[Any, ...], takes: str) -> None:
    """One that takes longer to drain than is counted, or is longer, is refused where it is declared."""
    assert _fault(LeakyBucket, *queue).partition("): ")[2] == (
        f"a turn takes {takes} s, out of range. Use a rate of at most a turn a picosecond, and a queue of "
        "under 10^15 turns that drains within fifty years."
    )


@pytest.mark.parametrize(
    ("queue", "quota", "window"),
    [
        (LeakyBucket(5), 1, 0.2),
        (LeakyBucket(5, max_delay=0.199999), 1, 0.2),
        (LeakyBucket(5, max_delay=0.2), 2, 0.4),
        (LeakyBucket(0.5, 60, 240), 3, 360),
        (LeakyBucket(7, 11, max_delay=timedelta(seconds=11)), 8, 88 / 7),
    ],
    ids=str,
)
def test_a_queue_is_as_long_as_its_delay(queue: LeakyBucket, quota: int, window: float) -> None:
    """Its quota is what an idle bucket takes at once, its window the time to drain that."""
    assert (queue.quota, queue.window) == (quota, window)
    assert queue.numbers[0] == quota
    assert queue.span == -(-quota * queue.numbers[1] // queue.numbers[2])


@pytest.mark.parametrize(
    ("bucket", "numbers"),
    [
        (TokenBucket(20, 240, 60), (20, 250_000, 1)),
        (TokenBucket(5, 50, 60), (5, 1_200_000, 1)),
        (TokenBucket(5, 7, 60), (5, 60_000_000, 7)),
        (TokenBucket(5, 0.1), (5, 10_000_000, 1)),
        (TokenBucket(5, 3, timedelta(seconds=0.1)), (5, 100_000, 3)),
        (TokenBucket(5, 10**9), (5, 1, 1_000)),
    ],
    ids=str,
)
def test_a_rate_is_kept_as_it_is_written(bucket: TokenBucket, numbers: tuple[int, ...]) -> None:
    """Parts a token and parts a microsecond are the rate exactly, a tenth being a tenth."""
    assert bucket.numbers == numbers


@given(
    capacity=st.integers(1, 10**9),
    rate=st.integers(1, 10**9) | st.floats(1e-3, 1e9),
    per=st.integers(1, 86_400) | st.floats(1e-3, 86_400),
)
def test_a_rate_is_close_and_countable(capacity: int, rate: float, per: float) -> None:
    """A rate that cannot be kept exactly is off by less than a millionth, and counted exactly."""
    try:
        _, unit, refill = TokenBucket(capacity, rate, per).numbers
    except ValueError:
        assert capacity * per / rate > 18_262 * 86_400
        return
    wanted = Fraction(str(per)) * 1_000_000 / Fraction(str(rate))
    assert capacity * unit < 2**51
    assert abs(Fraction(unit, refill) / wanted - 1) < Fraction(1, 1_000_000) or wanted < 1


def test_quota_and_window_are_what_headers_show() -> None:
    """A bucket's are its capacity and the time to fill it."""
    assert [(p.quota, p.window) for p in (FixedWindow(10, 60), SlidingWindow(3, 0.5))] == [(10, 60), (3, 0.5)]
    assert (SlidingLog(7, 60).quota, SlidingLog(7, 60).window) == (7, 60)
    assert [(p.quota, p.window) for p in (TokenBucket(20, 240, 60), TokenBucket(1, 3))] == [
        (20, 5),
        (1, 1 / 3),
    ]


def test_what_is_under_way_has_no_window() -> None:
    """A Concurrency limit holds slots, for a lease, and has no window."""
    policy = Concurrency(10, lease=0.5)
    assert (policy.quota, policy.window, policy.span, policy.numbers) == (10, None, 500_000, (10, 500_000))
    assert [p.held for p in (policy, SlidingLog(10, 60), LeakyBucket(10))] == [True, False, False]


def test_identity_leaves_the_number_out() -> None:
    """Changing a number keeps a key's usage; changing kind or window starts anew."""
    assert SlidingWindow(10, 60).identity == SlidingWindow(99, timedelta(minutes=1)).identity
    assert TokenBucket(5, 1).identity == TokenBucket(9, 7, 60).identity
    assert LeakyBucket(5).identity == LeakyBucket(7, per=60, max_delay=9).identity
    assert Concurrency(5).identity == Concurrency(9, lease=60).identity
    others = [SlidingWindow(10, 60), SlidingWindow(10, 61), FixedWindow(10, 60), TokenBucket(10, 60)]
    more = [SlidingLog(10, 60), LeakyBucket(10, 60), Concurrency(10, 60), Concurrency(10, 61)]
    assert len({policy.identity for policy in (*others, *more)}) == 8


def test_a_policy_knows_what_it_can_ever_hold() -> None:
    """A cost over the quota, and any cost at limit 0, is never worth waiting for."""
    assert [SlidingWindow(5, 60).holds(cost) for cost in (1, 5, 6)] == [True, True, False]
    assert not FixedWindow(0, 60).holds(1)
    assert [TokenBucket(5, 1).holds(cost) for cost in (5, 6)] == [True, False]


def test_policies_come_in_many_forms() -> None:
    """One, a string, or a list or tuple of either."""
    minute, bucket = SlidingWindow(10, 60), TokenBucket(5, 1)
    assert as_policies(bucket) == (bucket,)
    assert as_policies("10/minute") == (minute,)
    assert as_policies([bucket, "10/minute; 5/s"]) == (bucket, minute, SlidingWindow(5, 1))
    assert as_policies((minute,)) == (minute,)


@pytest.mark.parametrize(
    "value", [None, 10, [], (), [10], ["10/minute", None], {"10/minute"}, [["5/s"]]], ids=repr
)
def test_what_is_no_policy_is_refused(value: object) -> None:
    """The error quotes what was given."""
    assert _fault(as_policies, value) == (
        f"{value!r} is no policy. Use a policy such as SlidingWindow(10, per=60), a string such as "
        '"10/minute", or a list of these that is not empty.'
    )

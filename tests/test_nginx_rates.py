"""What nginx is told of a policy is never tighter than the policy, and not much wider."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    MemoryStorage,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.nginx.rates import Rate, rate_of
from flask_venuelimit.policies import Policy, parse
from flask_venuelimit.testing import ManualClock


def told(policy: Policy | str) -> dict[str, object]:
    """A policy as a manifest tells it."""
    (it,) = parse(policy) if isinstance(policy, str) else (policy,)
    return {"policy": it.spelling, "kind": it.kind, "quota": it.quota, "window": it.window}


class LimitReq:
    """nginx's own arithmetic, in thousandths and milliseconds (ngx_http_limit_req_module.c)."""

    def __init__(self, rate: Rate) -> None:
        number, _, unit = rate.text.partition("r/")
        self.rate = int(number) * 1000 // {"s": 1, "m": 60}[unit]
        self.burst = rate.burst * 1000
        self.excess, self.last = 0, 0

    def passes(self, now: int) -> bool:
        """Whether a request passes at so many milliseconds, which counts it."""
        first = self.last == 0
        excess = 0 if first else max(0, self.excess - self.rate * (now - self.last) // 1000 + 1000)
        if excess > self.burst:
            return False
        self.excess, self.last = excess, now
        return True


@pytest.mark.parametrize(
    ("policy", "text", "burst", "rounded"),
    [
        ("1200/minute", "20r/s", 2399, False),
        ("150/minute", "150r/m", 299, False),
        ("20/minute", "20r/m", 39, False),
        ("5/second", "5r/s", 9, False),
        ("3/2s", "90r/m", 5, False),
        ("90/hour", "2r/m", 179, True),
        ("7/minute", "8r/m", 13, True),
        ("1/minute", "2r/m", 1, True),
        ("1000/hour", "17r/m", 1999, True),
        (TokenBucket(20, rate=240, per=60), "4r/s", 39, False),
        (TokenBucket(10, rate=7, per=3), "140r/m", 19, False),
        (LeakyBucket(rate=5, per=1, max_delay=2), "5r/s", 21, False),
        (FixedWindow(10, per=0.5), "20r/s", 19, False),
    ],
)
def test_a_rate_is_whole_and_the_burst_is_twice_the_quota(
    policy: Policy | str, text: str, burst: int, rounded: bool
) -> None:
    """A second or a minute, whichever is exact; rounded up, which is said."""
    rate = rate_of(told(policy))
    assert isinstance(rate, Rate)
    assert (rate.text, rate.burst, rate.rounded) == (text, burst, rounded)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("59/hour", "under 1 a minute, which is the slowest rate nginx knows"),
        ("10 per 15 minutes", "under 1 a minute, which is the slowest rate nginx knows"),
        (TokenBucket(100, rate=1, per=61), "under 1 a minute, which is the slowest rate nginx knows"),
        ("0/second", "it refuses everything, for which nginx needs no count"),
        (FixedWindow(1_000_001, per=1), "faster than nginx can reckon"),
    ],
)
def test_what_nginx_cannot_keep_has_a_reason(policy: Policy | str, why: str) -> None:
    """In words, for the comment that stands in its place."""
    assert rate_of(told(policy)) == why


def test_slots_are_not_connections() -> None:
    """A slot is free when the answer is made, a connection when it is read; the reason says so."""
    assert "limit_conn would refuse whom the app admits" in str(rate_of(told(Concurrency(5))))


@given(limit=st.integers(1, 10**6), per=st.integers(1, 10**5))
def test_a_rate_is_close_to_the_policy_s(limit: int, per: int) -> None:
    """Not tighter by more than the burst makes up for in a thousand windows, nor wider than is needed."""
    rate = rate_of(told(SlidingWindow(limit, per)))
    if isinstance(rate, str):
        assert limit * 60 < per or limit > 10**6 * per
        return
    wanted, kept = Fraction(limit, per), Fraction(LimitReq(rate).rate, 1000)
    assert wanted * Fraction(999, 1000) <= kept < wanted + Fraction(2, 60)


POLICIES = st.one_of(
    st.builds(FixedWindow, st.integers(1, 9), st.integers(1, 9)),
    st.builds(SlidingWindow, st.integers(1, 9), st.integers(1, 9)),
    st.builds(SlidingLog, st.integers(1, 9), st.integers(1, 9)),
    st.builds(TokenBucket, st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
    st.builds(LeakyBucket, st.integers(1, 9), st.integers(1, 9), st.integers(0, 3)),
)


@given(policy=POLICIES, gaps=st.lists(st.integers(0, 3000), min_size=20, max_size=120))
def test_whom_a_policy_admits_nginx_lets_pass(policy: Policy, gaps: list[int]) -> None:
    """However the requests come that it admits, each passes nginx's own arithmetic."""
    clock = ManualClock()
    storage = MemoryStorage(clock=clock)
    rate = rate_of(told(policy))
    assert isinstance(rate, Rate)
    nginx, now = LimitReq(rate), 1
    for gap in gaps:
        now += gap
        clock.advance(gap / 1000)
        (receipt,) = storage.decide([Charge((Cell("{k}:i", policy),))])
        assert not receipt.allowed or nginx.passes(now)

"""What nginx can keep of a policy: a whole rate and a burst that are never tighter, or why there is none.

``limit_req`` is a leaky bucket that is told a whole number of requests a second or a minute, and reckons in
thousandths of a request a second, of which it drops the rest (ngx_http_limit_req_module). It admits 1 + burst
requests at once and the rate from then on. Every window or bucket of ours admits at most twice its quota at
once and its rate from then on, so with a burst of twice the quota less one nginx stands in nobody's way whom
the policy admits; and from the quota to there it is the app that refuses, with a wait and a page.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

#: Requests a second beyond which the module's arithmetic may overflow.
_FASTEST = 10**6
#: By how much less than a policy's the rate may be: the burst makes up for it for a thousand windows on end.
_SLACK = Fraction(1, 1000)


class Rate(NamedTuple):
    """A policy as nginx keeps it.

    :param text: as ``rate=`` takes it: ``20r/s``.
    :param burst: how many are let pass beyond the rate.
    :param policy: the policy in words.
    :param rounded: whether the rate is wider than the policy's, for want of a closer one.
    """

    text: str
    burst: int
    policy: str
    rounded: bool

    @property
    def wait(self) -> int:
        """Whole seconds until nginx has room for another request."""
        number, _, unit = self.text.partition("r/")
        return ceil(Fraction({"s": 1, "m": 60}[unit], int(number)))


def rate_of(policy: dict[str, Any]) -> Rate | str:
    """Find the rate for a policy.

    :param policy: as a manifest tells it.
    :returns: the rate; or why nginx can keep none, in words.
    """
    quota, window = policy["quota"], policy["window"]
    if policy["kind"] == "concurrency":
        return (
            "nginx counts a request until the client has read all of its answer, the app until the answer is "
            "made: limit_conn would refuse whom the app admits"
        )
    if not quota:
        return "it refuses everything, for which nginx needs no count"
    # a bucket's window is the time to fill it; as a float it may be off by the last bit
    per_second = (quota / Fraction(window)).limit_denominator(10**9)
    if per_second * 60 < 1:
        return "under 1 a minute, which is the slowest rate nginx knows"
    if per_second > _FASTEST:
        return "faster than nginx can reckon"
    text, kept = _whole(per_second)
    return Rate(text, 2 * quota - 1, policy["policy"], kept > per_second)


def _whole(per_second: Fraction) -> tuple[str, Fraction]:
    """The slowest whole rate that is not tighter, as text and as a number."""
    if per_second.denominator == 1:
        return f"{per_second}r/s", per_second
    number = ceil(per_second * 60)
    while floor(Fraction(number * 1000, 60)) < per_second * 1000 * (1 - _SLACK):
        number += 1
    whole = number % 60 == 0
    return f"{number // 60}r/s" if whole else f"{number}r/m", Fraction(number, 60)

"""What each policy answers over time: a row a policy and story, a step a hit.

A step is ``(at, cost, admitted, remaining, wait)``, times in seconds from the first. Adding a policy is
adding its timeline.
"""

from __future__ import annotations

from typing import NamedTuple

from flask_venuelimit.policies import FixedWindow, Policy, SlidingWindow, TokenBucket

Step = tuple[float, int, bool, int, "float | None"]


class Timeline(NamedTuple):
    """One story on one key."""

    name: str
    policy: Policy
    steps: tuple[Step, ...]


# fmt: off
TIMELINES = (
    Timeline("a fixed window opens at the first hit and ends with it", FixedWindow(3, per=60), (
        (0, 1, True, 2, 0), (10, 2, True, 0, 0), (45, 1, False, 0, 15), (45, 4, False, 0, None),
        (59.999999, 1, False, 0, 0.000001), (60, 1, True, 2, 0), (119, 3, False, 2, 1),
        (119, 2, True, 0, 0), (300, 3, True, 0, 0),
    )),
    Timeline("the wait is to the end of the window, not its length", FixedWindow(1, per=60), (
        (0, 1, True, 0, 0), (45, 1, False, 0, 15),
    )),
    Timeline("a limit of 0 refuses for ever", FixedWindow(0, per=60), (
        (0, 1, False, 0, None), (1_000, 1, False, 0, None),
    )),
    Timeline("a sliding window fades the last one", SlidingWindow(60, per=60), (
        (0, 60, True, 0, 0), (60, 1, False, 0, 1), (61, 1, True, 0, 0), (61, 1, False, 0, 1),
        (72, 11, True, 0, 0), (72, 1, False, 0, 1), (73, 1, True, 0, 0),
    )),
    Timeline("its estimate is not rounded", SlidingWindow(2, per=60), (
        (0, 1, True, 1, 0), (0, 1, True, 0, 0), (61, 1, False, 0, 29), (89.999999, 1, False, 0, 0.000001),
        (90, 1, True, 0, 0),
    )),
    Timeline("what this window has spent is waited for past its end", SlidingWindow(4, per=60), (
        (0, 4, True, 0, 0), (30, 1, False, 0, 45), (30, 4, False, 0, 90), (30, 5, False, 0, None),
        (119.999999, 4, False, 3, 0.000001), (120, 4, True, 0, 0),
    )),
    Timeline("two windows after the last that holds a hit, it starts anew", SlidingWindow(4, per=60), (
        (0, 1, True, 3, 0), (119, 3, True, 0, 0), (180, 1, True, 3, 0), (299.9, 3, True, 0, 0),
        (360, 4, True, 0, 0), (421, 4, False, 0, 59),
        (480, 4, True, 0, 0),
    )),
    Timeline("a limit of 0 refuses for ever", SlidingWindow(0, per=60), ((0, 1, False, 0, None),)),
    Timeline("a bucket of 5 refills one a second", TokenBucket(5, rate=1), (
        *((0, 1, True, left, 0) for left in (4, 3, 2, 1, 0)), (0, 1, False, 0, 1),
        (3.0, 1, True, 2, 0), (3.1, 1, True, 1, 0), (4.0, 1, True, 1, 0), (8.0, 1, True, 4, 0),
        (9.5, 1, True, 4, 0), (9.5, 2, True, 2, 0), (9.5, 5, False, 2, 3.0), (9.5, 6, False, 2, None),
    )),
    Timeline("parts of a token count", TokenBucket(2, rate=3, per=7), (
        (0, 2, True, 0, 0), (2.333333, 1, False, 0, 0.000001), (2.333334, 1, True, 0, 0),
        (4.666666, 1, False, 0, 0.000001), (4.666667, 1, True, 0, 0), (6.999999, 1, False, 0, 0.000001),
        (7, 1, True, 0, 0),
    )),
)
# fmt: on

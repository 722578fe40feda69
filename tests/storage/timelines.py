"""What each policy answers over time: a row a policy and story, a step a hit.

A step is ``(at, cost, admitted, remaining, wait)``, times in seconds from the first. Adding a policy is
adding its timeline.
"""

from __future__ import annotations

from typing import NamedTuple

from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)

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
    Timeline("a log counts exactly the hits of the last minute", SlidingLog(10, per=60), (
        (10, 1, True, 9, 0), *((20, 1, True, left, 0) for left in (8, 7)),
        *((30, 1, True, left, 0) for left in (6, 5, 4, 3)), *((50, 1, True, left, 0) for left in (2, 1, 0)),
        (71, 1, True, 0, 0), (72, 1, False, 0, 8), (80, 1, True, 1, 0),
    )),
    Timeline("a cost counts as so many hits, which leave together", SlidingLog(5, per=10), (
        (0, 3, True, 2, 0), (4, 2, True, 0, 0), (5, 1, False, 0, 5), (5, 3, False, 0, 5),
        (5, 4, False, 0, 9), (5, 6, False, 0, None), (9.999999, 1, False, 0, 0.000001), (10, 3, True, 0, 0),
        (14, 2, True, 0, 0), (19.999999, 4, False, 0, 4.000001), (30, 5, True, 0, 0),
    )),
    Timeline("a limit of 0 refuses for ever", SlidingLog(0, per=60), ((0, 1, False, 0, None),)),
    Timeline("turns lie apart, and one that comes in time is waited for", LeakyBucket(2, max_delay=1), (
        *((0, 1, True, left, 0) for left in (2, 1, 0)), (0, 1, False, 0, 0.5), (0.2, 1, False, 0, 0.3),
        (0.5, 1, True, 0, 0), (0.5, 3, False, 0, 1.5), (0.5, 4, False, 0, None), (2, 3, True, 0, 0),
        (3.5, 2, True, 1, 0), (3.5, 1, True, 0, 0),
    )),
    Timeline("without a delay only the next turn will do", LeakyBucket(1, per=3), (
        (0, 1, True, 0, 0), (1, 1, False, 0, 2), (2.999999, 1, False, 0, 0.000001), (3, 1, True, 0, 0),
        (100, 2, False, 1, None),
    )),
    Timeline("parts of a turn count", LeakyBucket(3, per=7, max_delay=2.5), (
        (0, 2, True, 0, 0), (0, 1, False, 0, 2.166667), (2.166666, 1, False, 0, 0.000001),
        (2.166667, 1, True, 0, 0),
    )),
    Timeline("a slot nobody gives back lapses with its lease", Concurrency(2, lease=60), (
        (0, 1, True, 1, 0), (30, 1, True, 0, 0), (59.999999, 1, False, 0, 1), (60, 1, True, 0, 0),
        (60, 1, False, 0, 1), (60, 3, False, 0, None), (90, 2, False, 1, 1), (120, 2, True, 0, 0),
    )),
    Timeline("a limit of 0 refuses for ever", Concurrency(0), ((0, 1, False, 0, None),)),
)
# fmt: on

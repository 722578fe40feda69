"""How much: the six policies, and the string grammar that spells the default one.

Policies are frozen values. They do not count; each names the rule that does and the whole numbers that
rule is given, in microseconds wherever time is meant, so that memory and Redis reckon alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from .policy import BucketPolicy, Window
from .policy import Policy as Policy  # the base is taken from here, like the six
from .quantities import (
    MOST,
    SECOND,
    Seconds,
    as_parts,
    check_whole,
    exact,
    microseconds,
    plain,
    read_rate,
    seconds,
    split_rates,
)


class FixedWindow(Window):
    """A count per window; a window opens at a key's first hit and lasts ``per``.

    :param limit: whole hits a window holds; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "fixed-window"
    noun = "fixed window of "


class SlidingWindow(Window):
    """Two counters, this window's and the last one's, which fades as the new one passes. The default.

    Admits while ``previous * (1 - elapsed/per) + current + cost <= limit``, not rounded.

    :param limit: whole hits; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "sliding-window"


class SlidingLog(Window):
    """Exact: each admitted hit's time is kept; one exactly ``per`` old is outside.

    :param limit: whole hits, and the most entries a key holds; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "sliding-log"
    noun = "sliding log of "


@dataclass(frozen=True)
class TokenBucket(BucketPolicy):
    """Starts full, refills ``rate`` tokens per ``per`` seconds continuously, up to ``capacity``.

    :param capacity: whole tokens the bucket holds, at least 1.
    :param rate: tokens that come back in ``per``; may be a fraction.
    :param per: seconds, or a timedelta.
    :raises ValueError: a value is out of range, or the bucket takes too long to fill to be counted
        exactly; the text quotes it.
    """

    capacity: int
    rate: float
    per: Seconds = 1

    kind: ClassVar[str] = "token-bucket"

    def __post_init__(self) -> None:
        check_whole(self, "capacity", self.capacity, 1)
        self.check_flow()
        self.numbers  # noqa: B018 - a bucket that cannot be counted fails where it is declared

    @property
    def quota(self) -> int:
        """The capacity."""
        return self.capacity

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Capacity; parts a token is made of; parts that come back each microsecond."""
        parts = as_parts(self.interval, self.capacity)
        if parts is None:
            raise ValueError(
                f"{self!r}: a token takes {float(self.interval / SECOND):g} s, out of range. Use a rate of "
                "at most a token a picosecond, and a bucket that fills within fifty years."
            )
        return (self.capacity, *parts)

    @cached_property
    def spelling(self) -> str:
        """``token bucket of 20, 240 per minute``."""
        return f"token bucket of {self.capacity}, {self.flow}"


@dataclass(frozen=True)
class LeakyBucket(BucketPolicy):
    """A queue: turns lie ``per/rate`` seconds apart; one that comes within ``max_delay`` is waited for.

    A cost of n takes n turns, and the last of them decides. Storage never sleeps: it tells the delay.

    :param rate: turns in ``per``; may be a fraction.
    :param per: seconds, or a timedelta.
    :param max_delay: seconds a request may be asked to wait for its turn; 0 for none.
    :raises ValueError: a value is out of range, or the queue takes too long to drain to be counted
        exactly; the text quotes it.
    """

    rate: float
    per: Seconds = 1
    max_delay: Seconds = 0

    kind: ClassVar[str] = "leaky-bucket"

    def __post_init__(self) -> None:
        self.check_flow()
        object.__setattr__(self, "max_delay", seconds(self, "max_delay", self.max_delay, or_zero=True))
        self.numbers  # noqa: B018 - a queue that cannot be counted fails where it is declared

    @property
    def quota(self) -> int:
        """How many turns an idle bucket gives at once: one now, and those that come within the delay."""
        return self.numbers[0]

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Quota; parts a turn is made of; parts that drain each microsecond; the longest delay."""
        delay = microseconds(self.max_delay)
        parts = as_parts(self.interval, delay // self.interval + 1)
        quota = delay * parts[1] // parts[0] + 1 if parts else MOST + 1
        if parts is None or quota > MOST:
            raise ValueError(
                f"{self!r}: a turn takes {float(self.interval / SECOND):g} s, out of range. Use a rate of at "
                "most a turn a picosecond, and a queue of under 10^15 turns that drains within fifty years."
            )
        return (quota, *parts, delay)

    @cached_property
    def spelling(self) -> str:
        """``leaky bucket of 5 per second, delay up to 2 s``."""
        delay = plain(exact(self.max_delay))
        return f"leaky bucket of {self.flow}, {f'delay up to {delay} s' if delay else 'no delay'}"


@dataclass(frozen=True)
class Concurrency(Policy):
    """At most ``limit`` at once; a slot nobody gives back lapses after ``lease``.

    :param limit: whole slots; 0 refuses everything.
    :param lease: seconds after which a slot that was not renewed lapses, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    limit: int
    lease: Seconds = 60

    kind: ClassVar[str] = "concurrency"
    held: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_whole(self, "limit", self.limit, 0)
        object.__setattr__(self, "lease", seconds(self, "lease", self.lease))

    @property
    def quota(self) -> int:
        """The limit."""
        return self.limit

    @property
    def window(self) -> float | None:
        """None: what is under way has no window."""
        return None

    @cached_property
    def span(self) -> int:
        """The lease in microseconds."""
        return microseconds(self.lease)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The limit; the lease in microseconds."""
        return (self.limit, self.span)

    @cached_property
    def spelling(self) -> str:
        """``10 at once, lease 60 s``."""
        return f"{self.limit} at once, lease {plain(exact(self.lease))} s"


def parse(text: str) -> tuple[Policy, ...]:
    """Read ``"10/minute"``, ``"10 per 15 minutes"``, ``"5/10s"``, or several joined by ``;``.

    :returns: a :class:`SlidingWindow` a part; all of them must agree.
    :raises ValueError: a part cannot be read; the text quotes it and lists what can.
    """
    return tuple(SlidingWindow(limit, per) for limit, per in map(read_rate, split_rates(text)))


def as_policies(value: object) -> tuple[Policy, ...]:
    """Take a policy, a string, or a list or tuple of these, as a tuple of policies.

    :raises ValueError: it is none of them, or empty; the text quotes it.
    """
    items = value if isinstance(value, (list, tuple)) else (value,)
    if items and all(isinstance(item, (Policy, str)) for item in items):
        return tuple(p for item in items for p in (parse(item) if isinstance(item, str) else (item,)))
    raise ValueError(
        f"{value!r} is no policy. Use a policy such as SlidingWindow(10, per=60), a string such as "
        '"10/minute", or a list of these that is not empty.'
    )

"""How much: the six policies, and the string grammar that spells the default one.

Policies are frozen values. They do not count; each names the rule that does and the whole numbers that
rule is given, in microseconds wherever time is meant, so that memory and Redis reckon alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from .quantities import (
    SECOND,
    Seconds,
    as_parts,
    check_rate,
    check_whole,
    exact,
    microseconds,
    plain,
    read_rate,
    seconds,
    spell_period,
    spell_rate,
    split_rates,
)

#: What may become of a limit's requests while storage fails.
ON_ERROR = ("allow", "local", "deny")


class Policy:
    """What every policy tells storage, headers and lists.

    ``kind`` names the rule that counts. ``span`` is the longest a key has to be kept once nobody uses
    it, in whole microseconds: the window, the time to fill or to drain, the lease.
    """

    kind: ClassVar[str]
    #: Whether a charge is a slot that is given back once the work is done.
    held: ClassVar[bool] = False

    @property
    def quota(self) -> int:
        """How many hits of cost 1 fit at most."""
        raise NotImplementedError

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the rule is given, in the order it takes them; times in whole microseconds."""
        raise NotImplementedError

    @property
    def spelling(self) -> str:
        """The policy in words, for lists and messages."""
        raise NotImplementedError

    @property
    def span(self) -> int:
        """The window, the time to fill or drain, or the lease, in whole microseconds."""
        raise NotImplementedError

    @property
    def window(self) -> float | None:
        """The window in seconds, or None where the policy has none."""
        return plain(Fraction(self.span, SECOND))

    @cached_property
    def identity(self) -> str:
        """Kind and window without the number: what has to stay for the usage counted so far to stay."""
        return f"{self.kind}:{self.span}"

    def holds(self, cost: int) -> bool:
        """Whether any wait can ever help for ``cost``."""
        return cost <= self.quota and self.quota > 0


@dataclass(frozen=True)
class _Window(Policy):
    limit: int
    per: Seconds

    _noun: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_whole(self, "limit", self.limit, 0)
        object.__setattr__(self, "per", seconds(self, "per", self.per))

    @property
    def quota(self) -> int:
        return self.limit

    @cached_property
    def span(self) -> int:
        return microseconds(self.per)

    @cached_property
    def window(self) -> float | None:
        return plain(Fraction(self.span, SECOND))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        return (self.limit, self.span)

    @cached_property
    def spelling(self) -> str:
        return f"{self._noun}{spell_rate(self.limit, self.span)}"


class FixedWindow(_Window):
    """A count per window; a window opens at a key's first hit and lasts ``per``.

    :param limit: whole hits a window holds; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "fixed-window"
    _noun = "fixed window of "


class SlidingWindow(_Window):
    """Two counters, this window's and the last one's, which fades as the new one passes. The default.

    Admits while ``previous * (1 - elapsed/per) + current + cost <= limit``, not rounded.

    :param limit: whole hits; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "sliding-window"


class SlidingLog(_Window):
    """Exact: each admitted hit's time is kept; one exactly ``per`` old is outside.

    :param limit: whole hits, and the most entries a key holds; 0 refuses everything.
    :param per: the window's length in seconds, or a timedelta.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    kind = "sliding-log"
    _noun = "sliding log of "

    def __post_init__(self) -> None:
        super().__post_init__()
        _not_yet(self)


@dataclass(frozen=True)
class TokenBucket(Policy):
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
        check_rate(self, self.rate)
        object.__setattr__(self, "per", seconds(self, "per", self.per))
        self.numbers  # noqa: B018 - a bucket that cannot be counted fails where it is declared

    @property
    def quota(self) -> int:
        """The capacity."""
        return self.capacity

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Capacity; parts a token is made of; parts that come back each microsecond."""
        parts = as_parts(self._interval, self.capacity)
        if parts is None:
            raise ValueError(
                f"{self!r}: a token takes {float(self._interval / SECOND):g} s, out of range. Use a rate of "
                "at most a token a picosecond, and a bucket that fills within fifty years."
            )
        return (self.capacity, *parts)

    @cached_property
    def _interval(self) -> Fraction:
        """Microseconds a token takes."""
        return exact(self.per) * SECOND / exact(self.rate)

    @cached_property
    def span(self) -> int:
        """Microseconds until an empty bucket is full."""
        capacity, unit, refill = self.numbers
        return -(-capacity * unit // refill)

    @cached_property
    def window(self) -> float | None:
        """Seconds until an empty bucket is full."""
        return plain(self.capacity * self._interval / SECOND)

    @cached_property
    def identity(self) -> str:
        """The kind alone: capacity and rate are the bucket's number."""
        return self.kind

    @cached_property
    def spelling(self) -> str:
        """``token bucket of 20, 240 per minute``."""
        return (
            f"token bucket of {self.capacity}, {plain(exact(self.rate))} per "
            f"{spell_period(microseconds(self.per))}"
        )


@dataclass(frozen=True)
class LeakyBucket(Policy):
    """A queue: turns lie ``per/rate`` seconds apart; one that comes within ``max_delay`` is waited for.

    :param rate: turns in ``per``; may be a fraction.
    :param per: seconds, or a timedelta.
    :param max_delay: seconds a request may be asked to wait for its turn; 0 for none.
    :raises ValueError: a value is out of range; the text quotes it.
    """

    rate: float
    per: Seconds = 1
    max_delay: Seconds = 0

    kind: ClassVar[str] = "leaky-bucket"

    def __post_init__(self) -> None:
        check_rate(self, self.rate)
        object.__setattr__(self, "per", seconds(self, "per", self.per))
        object.__setattr__(self, "max_delay", seconds(self, "max_delay", self.max_delay, or_none=True))
        _not_yet(self)


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
        _not_yet(self)


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


def _not_yet(policy: Policy) -> None:
    raise NotImplementedError(f"{policy!r}: {type(policy).__name__} is not built yet.")

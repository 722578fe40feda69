"""What every policy has in common, whatever it counts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from .quantities import (
    SECOND,
    Seconds,
    check_rate,
    check_whole,
    exact,
    microseconds,
    plain,
    seconds,
    spell_period,
    spell_rate,
)


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
        raise NotImplementedError

    @cached_property
    def identity(self) -> str:
        """Kind and window without the number: what has to stay for the usage counted so far to stay."""
        return f"{self.kind}:{self.span}"

    def holds(self, cost: int) -> bool:
        """Whether any wait can ever help for ``cost``."""
        return cost <= self.quota and self.quota > 0


@dataclass(frozen=True)
class Window(Policy):
    """A limit in so much time."""

    limit: int
    per: Seconds

    #: What ``spelling`` begins with.
    noun: ClassVar[str] = ""

    def __post_init__(self) -> None:
        check_whole(self, "limit", self.limit, 0)
        object.__setattr__(self, "per", seconds(self, "per", self.per))

    @cached_property
    def quota(self) -> int:
        """The limit."""
        return self.limit

    @cached_property
    def span(self) -> int:
        """The window in microseconds."""
        return microseconds(self.per)

    @cached_property
    def window(self) -> float | None:
        """The window in seconds."""
        return plain(Fraction(self.span, SECOND))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The limit; the window in microseconds."""
        return (self.limit, self.span)

    @cached_property
    def spelling(self) -> str:
        """``10/minute``, or ``fixed window of 10 per 15 minutes``."""
        return f"{self.noun}{spell_rate(self.limit, self.span)}"


class BucketPolicy(Policy):
    """What fills or drains at a rate, continuously, reckoned in whole parts so that nothing is rounded."""

    rate: float
    per: Seconds

    def check_flow(self) -> None:
        """Check the rate and the time, and keep the time as seconds.

        :raises ValueError: a value is out of range; the text quotes it.
        """
        check_rate(self, self.rate)
        object.__setattr__(self, "per", seconds(self, "per", self.per))

    @cached_property
    def interval(self) -> Fraction:
        """Microseconds a token or a turn takes."""
        return exact(self.per) * SECOND / exact(self.rate)

    @cached_property
    def flow(self) -> str:
        """``240 per minute``."""
        return f"{plain(exact(self.rate))} per {spell_period(microseconds(self.per))}"

    @cached_property
    def span(self) -> int:
        """Microseconds until an empty bucket is full, or a full queue empty."""
        quota, unit, refill = self.numbers[:3]
        return -(-quota * unit // refill)

    @cached_property
    def window(self) -> float | None:
        """Seconds until an empty bucket is full, or a full queue empty."""
        return plain(self.quota * self.interval / SECOND)

    @cached_property
    def identity(self) -> str:
        """The kind alone: all the numbers of a bucket are its number."""
        return self.kind

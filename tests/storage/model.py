"""What the policies mean, in exact fractions and in the plainest way: the measure for every store.

Nothing here is fast, and no wait is reckoned: a model only knows whether a hit would fit at some time. It
remembers every charge, and finds what counts by looking at all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor

from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)

SECOND = 1_000_000


class Model(ABC):
    """One key under one kind of policy. Times are whole microseconds."""

    @abstractmethod
    def room(self, now: int, policy: Policy) -> Fraction:
        """How much fits at ``now``; below 0 where more is used than the policy holds."""

    @abstractmethod
    def lapsed(self, now: int, policy: Policy) -> bool:
        """Whether the key is as good as unused."""

    @abstractmethod
    def charge(self, now: int, policy: Policy, cost: int) -> object:
        """Add ``cost``; the answer is what :meth:`give_back` takes."""

    @abstractmethod
    def give_back(self, now: int, policy: Policy, charged: object) -> None:
        """Undo one charge where it still counts."""

    @abstractmethod
    def reset(self, now: int, policy: Policy) -> int:
        """Microseconds to the end of the window, or until nothing is used; 0 for an unused key."""

    def delay(self, now: int, policy: Policy, cost: int) -> int:
        """Microseconds that a hit of ``cost`` is asked to be held back."""
        return 0

    @abstractmethod
    def redate(self, now: int, policy: Policy) -> None:
        """Bring a key that lies more than a window ahead of ``now`` to it."""

    def fits(self, now: int, policy: Policy, cost: int) -> bool:
        """Whether a hit of ``cost`` would be admitted."""
        return cost <= self.room(now, policy)

    def remaining(self, now: int, policy: Policy) -> int:
        """Whole hits of cost 1 that fit."""
        return max(0, floor(self.room(now, policy)))


@dataclass(eq=False)
class Charged:
    """One charge, and in which life and window of its key it was made."""

    cost: int
    life: int
    turn: int = 0
    undone: bool = False


@dataclass
class WindowModel(Model):
    """A key of a FixedWindow (one window a life) or a SlidingWindow (two that count)."""

    counted: int
    life: int = 0
    start: int | None = None
    charges: list[Charged] = field(default_factory=list)

    def room(self, now: int, policy: Policy) -> Fraction:
        assert isinstance(policy, (FixedWindow, SlidingWindow))
        turn = self._turn(now, policy)
        if turn is None:
            return Fraction(policy.limit)
        elapsed = Fraction(max(0, now - self._start(now, policy, turn)), policy.span)
        return policy.limit - self._sum(turn) - self._sum(turn - 1) * (1 - elapsed)

    def lapsed(self, now: int, policy: Policy) -> bool:
        return self._turn(now, policy) is None

    def charge(self, now: int, policy: Policy, cost: int) -> Charged:
        turn = self._turn(now, policy)
        if turn is None:
            self.life, self.start, self.charges, turn = self.life + 1, now, [], 0
        self.charges.append(Charged(cost, self.life, turn))
        return self.charges[-1]

    def give_back(self, now: int, policy: Policy, charged: object) -> None:
        assert isinstance(charged, Charged)
        turn = self._turn(now, policy)
        if turn is not None and charged.life == self.life and turn - charged.turn < self.counted:
            charged.undone = True
            self.redate(now, policy)

    def reset(self, now: int, policy: Policy) -> int:
        turn = self._turn(now, policy)
        return 0 if turn is None else self._start(now, policy, turn) + policy.span - now

    def redate(self, now: int, policy: Policy) -> None:
        if self.start is None or not self.charges:
            return
        turn = max(charge.turn for charge in self.charges)
        ahead = self.start + turn * policy.span - now
        if ahead > policy.span:
            self.start -= ahead

    def _sum(self, turn: int) -> int:
        # a fixed window has no window before it that counts
        charges = self.charges if self.counted == 2 else [c for c in self.charges if c.turn == 0]
        return sum(charge.cost for charge in charges if charge.turn == turn and not charge.undone)

    def _turn(self, now: int, policy: Policy) -> int | None:
        """Which window of this life ``now`` lies in; None where the life is over."""
        if self.start is None:
            return None
        # time that was set back is in the window that was reached before
        last = max((charge.turn for charge in self.charges), default=0)
        turn = max(last, (now - self.start) // policy.span)
        if turn > last and (turn - last >= self.counted or not self._sum(last)):
            return None
        return turn

    def _start(self, now: int, policy: Policy, turn: int) -> int:
        assert self.start is not None
        start = self.start + turn * policy.span
        return min(start, now) if start - now > policy.span else start


@dataclass
class BucketModel(Model):
    """A key of a TokenBucket: how many tokens were missing, and when."""

    missing: Fraction = Fraction(0)
    at: int = 0
    life: int = 0

    def room(self, now: int, policy: Policy) -> Fraction:
        return policy.quota - self._missing(now, policy)

    def lapsed(self, now: int, policy: Policy) -> bool:
        return not self._missing(now, policy)

    def charge(self, now: int, policy: Policy, cost: int) -> Charged:
        missing = self._missing(now, policy)
        if not missing:
            self.life, self.at = self.life + 1, now
        self.missing, self.at = missing + cost, max(self.at, now)
        return Charged(cost, self.life)

    def give_back(self, now: int, policy: Policy, charged: object) -> None:
        assert isinstance(charged, Charged)
        missing = self._missing(now, policy)
        if missing and charged.life == self.life:
            self.redate(now, policy)
            self.missing, self.at = max(Fraction(0), missing - charged.cost), max(self.at, now)

    def reset(self, now: int, policy: Policy) -> int:
        missing = self._missing(now, policy)
        return self._ahead(now, policy) + ceil(missing * interval(policy)) if missing else 0

    def redate(self, now: int, policy: Policy) -> None:
        if self._missing(now, policy) and self.at - now > policy.span:
            self.at = now

    def _missing(self, now: int, policy: Policy) -> Fraction:
        return max(Fraction(0), self.missing - max(0, now - self.at) / interval(policy))

    def _ahead(self, now: int, policy: Policy) -> int:
        """Microseconds until the bucket, which a clock that was set back left ahead, begins to fill."""
        ahead = max(0, self.at - now)
        return ahead if ahead <= policy.span and self._missing(now, policy) else 0


class QueueModel(BucketModel):
    """A key of a LeakyBucket: how many turns were queued, and when."""

    def room(self, now: int, policy: Policy) -> Fraction:
        assert isinstance(policy, LeakyBucket)
        longest = Fraction(str(policy.max_delay)) * SECOND
        # the last turn may begin as late as that
        return 1 + (longest - self._ahead(now, policy)) / interval(policy) - self._missing(now, policy)

    def delay(self, now: int, policy: Policy, cost: int) -> int:
        before = self._missing(now, policy) + cost - 1
        return self._ahead(now, policy) + ceil(before * interval(policy))


def interval(policy: Policy) -> Fraction:
    """Microseconds a token or a turn takes."""
    assert isinstance(policy, (TokenBucket, LeakyBucket))
    return Fraction(str(policy.per)) * SECOND / Fraction(str(policy.rate))


@dataclass(eq=False)
class Entry:
    """One hit or slot, and the time it is dated."""

    cost: int
    time: int


@dataclass
class LogModel(Model):
    """A key of a SlidingLog or of Concurrency: every hit or slot, in the order of their times."""

    entries: list[Entry] = field(default_factory=list)

    def room(self, now: int, policy: Policy) -> Fraction:
        return Fraction(policy.quota - sum(entry.cost for entry in self._live(now, policy)))

    def lapsed(self, now: int, policy: Policy) -> bool:
        return not self._live(now, policy)

    def charge(self, now: int, policy: Policy, cost: int) -> Entry:
        # who has left does not come back when a later hit is given back and time is set back as well
        self.entries = [*self._live(now, policy), Entry(cost, self._latest(now))]
        return self.entries[-1]

    def give_back(self, now: int, policy: Policy, charged: object) -> None:
        assert isinstance(charged, Entry)
        if charged in self._live(now, policy):
            self.redate(now, policy)
            self.entries.remove(charged)

    def renew(self, now: int, policy: Policy, charged: object) -> None:
        assert isinstance(charged, Entry)
        if policy.held and charged in self._live(now, policy):
            self.redate(now, policy)
            charged.time = self._latest(now)
            self.entries.sort(key=lambda entry: entry.time)

    def reset(self, now: int, policy: Policy) -> int:
        if policy.held:
            return SECOND
        last = max((entry.time for entry in self._live(now, policy)), default=None)
        return 0 if last is None else last - self._back(now, policy) + policy.span - now

    def redate(self, now: int, policy: Policy) -> None:
        back = self._back(now, policy)
        for entry in self.entries:
            entry.time -= back

    def _live(self, now: int, policy: Policy) -> list[Entry]:
        edge = self._latest(now) - policy.span
        return [entry for entry in self.entries if entry.time > edge]

    def _latest(self, now: int) -> int:
        return max([now, *(entry.time for entry in self.entries)])

    def _back(self, now: int, policy: Policy) -> int:
        """How far all times have to move for the last one to be now, where a clock was set far back."""
        ahead = self._latest(now) - now
        return ahead if ahead > policy.span else 0


def model_of(policy: Policy) -> Model:
    """Make the model of an unused key."""
    if isinstance(policy, FixedWindow):
        return WindowModel(1)
    if isinstance(policy, SlidingWindow):
        return WindowModel(2)
    if isinstance(policy, (SlidingLog, Concurrency)):
        return LogModel()
    return QueueModel() if isinstance(policy, LeakyBucket) else BucketModel()

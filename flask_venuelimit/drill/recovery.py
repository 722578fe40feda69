"""The second thing a drill shows: callers who honour the hint get in, and do not all come at once."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from ..policies import Policy
from ..policy import BucketPolicy
from ..quantities import SECOND
from .callers import Callers
from .findings import Broken, Undriven

#: How many are refused at once, and how often one of them may come back.
CROWD = 50
_PATIENCE = 4 * CROWD
#: Numbers of callers: who comes alone, and the first of a crowd. At one address all have one number.
_ALONE, _FIRST = 10, 20
#: Hints from here on leave room to spread: a tenth of it is a second.
_SPREADABLE = 10


def recover(callers: Callers) -> str:
    """Let one caller, and then a crowd, be refused and come back when they are told to.

    :returns: what was seen.
    :raises Broken: one is not admitted, or all of them come back in one second.
    :raises Undriven: nobody is refused, or no wait helps.
    """
    lane = callers.lane
    if lane.terms.shadow:
        raise Undriven("a shadow limit refuses nobody")
    if lane.closed:
        raise Undriven("no wait helps, so there is no hint to honour")
    _one(callers)
    crowd = _Crowd(callers)
    crowd.gather()
    crowd.disperse()
    return crowd.told()


def _one(callers: Callers) -> None:
    """Alone on a key, who waits as long as they are told is admitted; who waits half as long is not."""
    callers.use_up(_ALONE)
    admitted, hint = callers.come(_ALONE)
    if admitted or hint is None:
        raise Broken("a refused caller was sent no hint to honour")
    wait = callers.look(_ALONE).retry_after or 0.0
    if not callers.lane.held:
        callers.clock.advance(wait / 2)
        if callers.look(_ALONE).allowed:
            raise Broken(
                f"told to wait {hint} s, a caller is admitted after half of that: the hint is too long"
            )
        callers.clock.advance(max(0.0, hint - wait / 2))
    else:
        callers.give_back()
        callers.clock.advance(hint)
    if not callers.come(_ALONE)[0]:
        raise Broken(f"a caller who waited the {hint} s of the hint, alone, is refused again")


class _Return(NamedTuple):
    """When somebody means to come back; the heap's order."""

    at: float
    who: int
    times: int


class _Crowd:
    """Callers who are refused in the same moment, and what becomes of them; times are seconds from then."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers
        self._begun = 0.0
        self._due: list[_Return] = []
        self._first: list[int] = []
        self._admitted: list[int] = []
        self._again = 0

    def gather(self) -> None:
        """Use up what the crowd has, behind one address one bucket, and refuse each of them once."""
        callers = self._callers
        numbers = [_FIRST] * CROWD if callers.lane.shared else list(range(_FIRST, _FIRST + CROWD))
        for who in dict.fromkeys(numbers):
            callers.use_up(who)
        self._begun = callers.clock()
        for who in numbers:
            admitted, hint = callers.come(who)
            if admitted or hint is None:
                raise Broken("one of a crowd that is over its limit was not refused, or was sent no hint")
            self._first.append(hint)
            heapq.heappush(self._due, _Return(hint, who, 1))
        callers.give_back()

    def disperse(self) -> None:
        """Let each come back when they are told to, until all are in."""
        callers = self._callers
        while self._due:
            at, who, times = heapq.heappop(self._due)
            callers.clock.advance(self._begun + at - callers.clock())
            admitted, hint = callers.come(who)
            if admitted:
                self._admitted.append(int(at))
            elif hint is None or times == _PATIENCE:
                raise Broken(f"of {CROWD} callers who honour the hints one was refused {times} times over")
            else:
                self._again += 1
                heapq.heappush(self._due, _Return(at + hint, who, times + 1))

    def told(self) -> str:
        """Say how they came back.

        :raises Broken: all at once, though there was time to spread, or more got in than the limit admits.
        """
        lane, admitted = self._callers.lane, _peak(self._admitted)
        most = _most_a_second(lane.policies) // lane.cost
        if lane.shared and admitted > most:
            raise Broken(f"{admitted} got in within a second, and the limit admits {most:g}")
        where = "at one address" if lane.shared else "with a bucket each"
        entry = "all get in the first time"
        if self._again:
            entry = f"at most {admitted} a second get in, all within {max(self._admitted)} s"
        return f"{CROWD} {where} come back {self._spread()}; {entry}"

    def _spread(self) -> str:
        soonest, latest, peak = min(self._first), max(self._first), _peak(self._first)
        when = f"after {soonest} s" if soonest == latest else f"after {soonest} to {latest} s"
        if soonest < _SPREADABLE:
            return f"{when}, too short a wait to spread"
        jitter = self._callers.settings.retry_jitter
        if peak < CROWD:
            return f"{when}, at most {peak} a second"
        if jitter == 0:
            # somebody chose so, and doctor says what it means
            return f"{when}, all in one second, as VENUELIMIT_RETRY_JITTER=0 has it"
        raise Broken(
            f"{CROWD} callers who were refused together come back in one second, {soonest} s later: raise "
            f"VENUELIMIT_RETRY_JITTER, which is {jitter:g}"
        )


def _peak(seconds: Iterable[int]) -> int:
    return max(Counter(seconds).values())


def _most_a_second(policies: Iterable[Policy]) -> float:
    """How many hits of cost 1 these policies can admit within a second, at the very most."""
    return min(_one_s_most(policy) for policy in policies)


def _one_s_most(policy: Policy) -> float:
    if policy.held:
        return float("inf")
    if isinstance(policy, BucketPolicy):
        return policy.quota + SECOND // policy.interval
    # the end of one window and the beginning of the next may lie within that second
    return policy.quota * (SECOND // policy.span + 2)

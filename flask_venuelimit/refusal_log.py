"""Refusals in the log: the first of a key and window is told, the others are counted and summed up.

A flood of refused requests must not become a flood of lines, and must not wait for the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from heapq import heappop, heappush

from .decisions import Decision, pause_of
from .headers import whole_seconds
from .storage.forks import mend_in_children

logger = logging.getLogger("flask_venuelimit")

#: Of how many keys refusals are counted at once.
KEPT = 4096
#: How many of those whose window is over one refusal clears away, so that none has to wait for all of them.
_AT_ONCE = 8
#: Seconds that stand for the window of what has none, and the shortest window a line is worth.
_WINDOWLESS, _SHORTEST = 60.0, 1.0


class _Run:
    """The refusals of one limit and subject in one window: the one that was told, and the further ones."""

    __slots__ = ("begun", "ends", "further", "key", "shadow")

    def __init__(self, key: tuple[str, str], decision: Decision, now: float) -> None:
        window = _WINDOWLESS if decision.window is None else decision.window
        self.key = key
        self.shadow = decision.shadow
        self.begun = now
        self.ends = now + max(window, _SHORTEST)
        self.further = 0

    def __lt__(self, other: _Run) -> bool:
        return self.ends < other.ends

    def runs(self, now: float) -> bool:
        """Whether its window is not over; a clock that was set back has ended it too."""
        return self.begun <= now < self.ends


class RefusalLog:
    """Logs what limits refuse, at INFO; where that is off, it does nothing.

    There is no timer: what a window held besides its first refusal is told at the next refusal of anybody
    once it is over. Only so many keys are known at once; the one whose window ends first makes room.

    :param clock: reads seconds.
    :param most: how many keys are known at once.
    """

    def __init__(self, clock: Callable[[], float], most: int = KEPT) -> None:
        self._clock = clock
        self._most = most
        self.after_fork()
        mend_in_children(self)

    def after_fork(self) -> None:
        """Begin anew: what the parent counted, it tells itself."""
        self._lock = threading.Lock()
        self._runs: dict[tuple[str, str], _Run] = {}
        #: All of ``_runs``, and what has been replaced there; a heap by when they end.
        self._queue: list[_Run] = []

    def refused(self, decision: Decision) -> None:
        """Log a decision that refused, or would have, or only count it."""
        if not logger.isEnabledFor(logging.INFO):
            return
        now = self._clock()
        with self._lock:
            over, first = self._counted(decision, now)
        # with nothing locked: a handler may be slow, or have something refused itself
        for run in over:
            _sum_up(run, now)
        if first:
            _tell(decision)

    def _counted(self, decision: Decision, now: float) -> tuple[list[_Run], bool]:
        """Count a refusal; gives the runs to be summed up, and whether it is the first of its own."""
        key = decision.limit, decision.subject
        over, run = self._cleared(now), self._runs.get(key)
        if run is None or not run.runs(now):
            return over + self._begun(_Run(key, decision, now)), True
        run.further += 1
        return over, False

    def _cleared(self, now: float) -> list[_Run]:
        """Take out some of those that are over."""
        over: list[_Run] = []
        for _ in range(_AT_ONCE):
            if not self._queue or now < self._queue[0].ends:
                break
            over += self._taken_out()
        return over

    def _begun(self, run: _Run) -> list[_Run]:
        """Begin to count; gives those that are not counted any longer."""
        over = self._taken_out() if len(self._queue) >= self._most else []
        replaced = self._runs.get(run.key)
        self._runs[run.key] = run
        heappush(self._queue, run)
        return over if replaced is None else [*over, replaced]

    def _taken_out(self) -> list[_Run]:
        """Take out the one that ends first; none, if another has replaced it."""
        run = heappop(self._queue)
        if self._runs.get(run.key) is not run:
            return []
        del self._runs[run.key]
        return [run]


def _tell(decision: Decision) -> None:
    logger.info(
        "limit %r %s %s: %s, %s",
        decision.limit,
        _verb(decision.shadow),
        decision.subject,
        _state(decision),
        _advice(decision.retry_after),
    )


def _sum_up(run: _Run, now: float) -> None:
    if run.further:
        name, subject = run.key
        times = "1 more time" if run.further == 1 else f"{run.further} more times"
        # a clock that was set back says nothing of how long it has been
        seconds = min(run.ends, now) - run.begun if now >= run.begun else run.ends - run.begun
        logger.info("limit %r %s %s %s in %s s", name, _verb(run.shadow), subject, times, _spell(seconds))


def _verb(shadow: bool) -> str:
    return "would have refused" if shadow else "refused"


def _state(decision: Decision) -> str:
    if pause_of(decision) is not None:
        return "nobody can count"
    per = "at once" if decision.window is None else f"per {_spell(decision.window)} s"
    return f"{decision.remaining} of {decision.quota} {per} left"


def _advice(wait: float | None) -> str:
    return "no wait helps" if wait is None else f"retry after {max(1, whole_seconds(wait))} s"


def _spell(seconds: float) -> str:
    # fixed point: an exponent is nothing to read
    return f"{seconds:.3f}".rstrip("0").rstrip(".") if seconds >= 0.001 else f"{seconds:.6f}"

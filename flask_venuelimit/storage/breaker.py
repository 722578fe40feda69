"""When a failing store is asked again: after a pause that grows, and by one request alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .forks import mend_in_children

#: The first pause and the longest, in seconds; each is twice the one before.
FIRST, LONGEST = 1.0, 30.0


class Breaker:
    """Keeps requests from waiting for a store that does not answer.

    One a store and process. Closed, everybody asks. A failure opens it: nobody asks until its pause is
    over, then one request probes; if that fails too, the pause doubles. Only the probe says what has become
    of the store: whatever else comes in meanwhile was asked before it failed.

    :param clock: reads seconds. A pause is over by this clock or by the process's own, whichever comes
        first: a clock that a test has stopped must not keep a store out for good.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clocks = (clock, time.monotonic)
        #: Guards what is told of the store as well. Entered again where the collector gives something back
        #: in the middle of it.
        self.lock = threading.RLock()
        self._pause = 0.0
        self._opened = (0.0, 0.0)
        self._probing = False
        self._era = 0
        #: What the store failed with last, while it fails.
        self.error: Exception | None = None
        mend_in_children(self)

    @property
    def open(self) -> bool:
        """Whether the store counts as failing; a property without a lock, since every request reads it."""
        return self._pause > 0

    def admit(self) -> int | None:
        """Ask whether this request may ask the store: it is closed, or this is the one that probes.

        :returns: a ticket, to be handed in with what became of it, or None.
        """
        if not self.open:
            return self._era
        with self.lock:
            if not self.open:
                return self._era
            if self._probing or self.remaining() > 0:
                return None
            self._probing = True
            return self._next_era()

    def remaining(self) -> float:
        """Seconds until a request may probe; 0.0 where one may now."""
        passed = max(clock() - then for clock, then in zip(self._clocks, self._opened, strict=True))
        return max(0.0, self._pause - passed)

    def failed(self, ticket: int, error: Exception) -> None:
        """Note that the request with this ticket met a failure."""
        with self.lock:
            if ticket == self._era:
                self._pause = min(2 * self._pause, LONGEST) if self.open else FIRST
                self._opened = self._clocks[0](), self._clocks[1]()
                self._probing = False
                self.error = error
                self._next_era()

    def answered(self, ticket: int) -> None:
        """Note that the request with this ticket was answered."""
        with self.lock:
            if self.open and ticket == self._era:
                self._pause, self._probing, self.error = 0.0, False, None

    def abandoned(self, ticket: int) -> None:
        """Note that a request ended without telling anything of the store: another one may probe."""
        with self.lock:
            if ticket == self._era:
                self._probing = False

    def _next_era(self) -> int:
        self._era += 1
        return self._era

    def after_fork(self) -> None:
        """Free the lock, which a thread that the child does not have may hold, and let another one probe."""
        self.lock = threading.RLock()
        self._probing = False

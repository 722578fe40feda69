"""What users of the extension need in their own tests."""

from __future__ import annotations

import threading

from .quantities import SECOND


class ManualClock:
    """A clock that stands still until it is told to move.

    Pass it as ``clock=`` to :class:`~flask_venuelimit.MemoryStorage` or
    :class:`~flask_venuelimit.RedisStorage`. It counts whole microseconds, so that a hundred steps of
    0.1 s are exactly ten seconds.

    :param start: what the clock reads first, in seconds.
    """

    def __init__(self, start: float = 0.0) -> None:
        self._now = round(start * SECOND)
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Read the clock, in seconds."""
        return self._now / SECOND

    def advance(self, seconds: float) -> None:
        """Move the clock by ``seconds``; a negative number steps it back."""
        with self._lock:
            self._now += round(seconds * SECOND)

"""A lock that knows who holds it: what a collector runs in the middle of a call must not wait for it."""

from __future__ import annotations

import threading


class Turn:
    """Lets one thread at a time, as a context manager.

    The collector runs in whichever thread allocates, in the middle of whatever that does, and may close a
    generator that gives something back. A lock would be waited for by its own holder, for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *exc_info: object) -> None:
        self._holder = None
        self._lock.release()

    def mine(self) -> bool:
        """Whether it is this thread's turn already."""
        return self._holder == threading.get_ident()

    def locked(self) -> bool:
        """Whether it is anybody's turn."""
        return self._lock.locked()

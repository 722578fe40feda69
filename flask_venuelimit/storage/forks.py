"""What a forked child puts right: it has a copy of everything, but only the thread that forked."""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something whose copy in a child may be half-done, locked for good, or no longer unique."""

    def after_fork(self) -> None:
        """Put the copy right; called in the child, before anything else runs there."""
        ...


_living: WeakSet[Forked] = WeakSet()


def mend_in_children(thing: Forked) -> None:
    """Call ``thing.after_fork()`` in every process that is forked while it lives."""
    _living.add(thing)


def _after_fork() -> None:
    for thing in _living:
        thing.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Bodies that nobody closes: the garbage collector finds them in the middle of whatever runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

from flask import Flask

from flask_venuelimit import Concurrency, FixedWindow, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import C, caller


class Collecting:
    """A clock at which the collector runs while a store is in the middle of a call."""

    store: MemoryStorage

    def __call__(self) -> float:
        if self.store._turn.locked():
            gc.collect()
        return 0.0


def in_a_ring(pieces: Iterator[Any]) -> None:
    """Take one piece, and lose the rest in a ring of references."""

    class Ring:
        itself: Any
        pieces: Iterator[Any]

    ring = Ring()
    ring.itself = ring
    ring.pieces = pieces
    next(ring.pieces)


def test_a_body_that_is_collected_in_the_middle_of_a_call_blocks_nobody(app: Flask) -> None:
    """Its slot is free for the next request, and the store's own lock is not waited for in vain."""
    clock = Collecting()
    clock.store = MemoryStorage(clock=clock)
    limiter = VenueLimit(app, storage=clock.store)
    slots = limiter.limit(Concurrency(1), name="slots", key=by_ip)
    other = limiter.limit(FixedWindow(9, per=60), name="other", key=by_ip)
    app.add_url_rule("/stream", "stream", slots(lambda: iter([b"one", b"two"])))
    gc.disable()
    try:
        in_a_ring(iter(caller(app).get("/stream", buffered=False).iter_encoded()))
        other.hit(subject=C)
    finally:
        gc.enable()
    assert slots.hit(subject=C).allowed


def test_a_guard_that_is_collected_in_the_middle_of_a_call_blocks_nobody(app: Flask) -> None:
    """A generator that holds a slot for its block, and that nobody closes, gives it back all the same."""
    clock = Collecting()
    clock.store = MemoryStorage(clock=clock)
    limiter = VenueLimit(app, storage=clock.store)
    slots = limiter.limit(Concurrency(1), name="slots", key=by_ip)
    other = limiter.limit(FixedWindow(9, per=60), name="other", key=by_ip)

    def guarded() -> Iterator[None]:
        with slots.guard(subject=C):
            yield

    gc.disable()
    try:
        in_a_ring(guarded())
        other.hit(subject=C)
    finally:
        gc.enable()
    assert slots.hit(subject=C).allowed

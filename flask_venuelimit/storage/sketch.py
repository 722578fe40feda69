"""Counts in a fixed number of bytes, however many keys arrive: a count-min sketch with conservative update.

A sketch may count too much, never too little. G. Cormode and S. Muthukrishnan, "An improved data stream
summary: the count-min sketch and its applications", 2005; for the conservative update, C. Estan and G.
Varghese, "New directions in traffic measurement and accounting", 2002.
"""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Callable
from hashlib import blake2b
from secrets import token_bytes

from ..decisions import Cell, Charge, Record
from ..policies import FixedWindow, Policy, SlidingWindow
from .counters import Counters
from .memory import MemoryStorage
from .rules import RULES, Outcome

#: Mebibytes; of less, rows would have a few counters only.
LEAST = 0.001
_MEBIBYTE = 2**20
#: The share of the bytes that the tables have; the rest is for keys that are counted exactly.
_TABLES = 7 / 8
#: What such a key takes, at most, a log's entries aside.
_KEY = 1_280
#: A hit is counted once in each row, and the least of them is nearest the truth.
DEPTH = 4
#: Windows of different lengths that are told apart, at most; a power of 2.
_PLANES = 16
_LARGEST = 2**32 - 1
_ZEROS = array("I", [0]) * 4_096


class SketchStorage(MemoryStorage):
    """Counts in this process, in so many mebibytes, whatever arrives.

    Fixed and sliding windows are counted in a sketch: of N hits counted in a window, over all keys, a key is
    charged with at most ``2.718 * N / width`` of others', save for one key in fifty, and with none too few.
    Windows lie end to end on the clock, for all keys alike. What is counted there is neither given back nor
    reset. Other policies, limits that give charges back, limits over 4,294,967,295 and more than 16 lengths
    of window are counted exactly beside it, in ``max_keys`` keys.

    :param mebibytes: how much memory to use, an eighth of it for the exact counters.
    :param max_keys: how many keys are counted exactly at most; by default, one for each 1,280 bytes of that
        eighth.
    :param clock: reads seconds; tests pass a :class:`~flask_venuelimit.testing.ManualClock`.
    :param seed: what keys are scattered by, at most 64 bytes; unknown to those who choose them by default.
    :raises ValueError: ``max_keys`` is no whole number of at least 1.
    """

    def __init__(
        self,
        mebibytes: float,
        max_keys: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        seed: bytes | None = None,
    ) -> None:
        self.mebibytes = mebibytes
        self._seed = token_bytes(16) if seed is None else seed
        room = mebibytes * _MEBIBYTE * (1 - _TABLES)
        super().__init__(max(1, int(room / _KEY)) if max_keys is None else max_keys, clock)

    def __repr__(self) -> str:
        return f"SketchStorage({self.mebibytes}, max_keys={self.max_keys})"

    @property
    def width(self) -> int:
        """Counters in each row of a table, as many windows as there are by now sharing the memory."""
        return self._sketched.sketch.width

    def _begin(self) -> None:
        super()._begin()
        sketch = Sketch(int(self.mebibytes * _MEBIBYTE * _TABLES), self._seed)
        self._sketched = SketchCounters(sketch, self._counters)

    def _place(self, charge: Charge) -> Counters:
        return self._counters if charge.stays else self._sketched


class SketchCounters(Counters):
    """Counters of windows, in a sketch; of everything else, exactly."""

    def __init__(self, sketch: Sketch, exact: Counters) -> None:
        self.shelf = exact.shelf
        self.sketch = sketch

    def look(self, cell: Cell, now: int, cost: int = 0, birth: str = "") -> Outcome:
        """What a cell would become, reckoned from counts that are at least the true ones."""
        key, policy = cell
        plane = self._plane(policy, now)
        if plane is None:
            return super().look(cell, now, cost, birth)
        previous, current = self.sketch.counts(plane, key)
        counts = (current,) if isinstance(policy, FixedWindow) else (previous, current, plane.turn)
        state = (plane.turn * plane.span, *counts, birth)
        return RULES[policy.kind].take(state, now, cost, birth, *policy.numbers)

    def keep(self, cell: Cell, outcome: Outcome, now: int) -> bool:
        """Write a charged cell; in a sketch there is always room."""
        key, policy = cell
        plane = self._plane(policy, now)
        if plane is None or outcome.state is None:
            return super().keep(cell, outcome, now)
        plane.redate(now)
        self.sketch.raise_to(plane, key, outcome.state[1 if isinstance(policy, FixedWindow) else 2])
        return True

    def pass_by(self, cell: Cell, outcome: Outcome, now: int) -> Record:
        """Note nothing in a sketch, but that a clock far back has to be met.

        :returns: the verdict on the cost, and the room there is now.
        """
        plane = self._plane(cell.policy, now)
        if plane is None:
            return super().pass_by(cell, outcome, now)
        plane.redate(now)
        room = self.look(cell, now) if outcome.allowed else outcome
        return Record(outcome.allowed, room.remaining, outcome.wait, room.reset)

    def give_back(self, cell: Cell, cost: int, token: str, now: int) -> None:
        """Give nothing back in a sketch: to lower a counter would take from whoever else it counts."""
        if self._plane(cell.policy, now) is None:
            super().give_back(cell, cost, token, now)

    def _plane(self, policy: Policy, now: int) -> Plane | None:
        """Where a policy is counted; None where it is counted exactly."""
        if isinstance(policy, (FixedWindow, SlidingWindow)) and policy.limit <= _LARGEST:
            return self.sketch.plane(policy.span, now)
        return None


class Plane:
    """The windows of one length: the number of the last one that began, counted from when the clock read 0.

    :param number: which of the sketch's planes it is.
    :param span: microseconds.
    :ivar table: which of its two tables counts that window; the other counts the one before.
    """

    def __init__(self, number: int, span: int, now: int) -> None:
        self.number = number
        self.span = span
        self.turn = now // span
        self.table = 0

    def redate(self, now: int) -> None:
        """Take the last window for the one at ``now``, where a clock was set back by more than a window."""
        if self.turn * self.span - now > self.span:
            self.turn = now // self.span


class Sketch:
    """Counters of 4 bytes, in tables of ``DEPTH`` rows: two tables a plane, for a window and the one before.

    :param size: bytes.
    :param seed: what keys are scattered by.
    :ivar width: counters in a row.
    """

    def __init__(self, size: int, seed: bytes) -> None:
        self._counters = array("I", [0]) * (size // array("I").itemsize)
        self.width = len(self._counters) // (2 * DEPTH) // _PLANES * _PLANES
        self._seed = seed
        self._planes: dict[int, Plane] = {}

    def plane(self, span: int, now: int) -> Plane | None:
        """The plane of windows of a length, brought to ``now``; None where no more can be told apart."""
        plane = self._planes.get(span)
        if plane is None:
            if len(self._planes) == _PLANES:
                return None
            plane = self._add(span, now)
        if now >= (plane.turn + 1) * span:
            self._turn(plane, now // span)
        return plane

    def counts(self, plane: Plane, key: str) -> tuple[int, int]:
        """What was counted of a key in the last window and in this one, or more."""
        counters, places = self._counters, self._places(key)
        this, last = self._start(plane, plane.table), self._start(plane, 1 - plane.table)
        return min([counters[last + at] for at in places]), min([counters[this + at] for at in places])

    def raise_to(self, plane: Plane, key: str, count: int) -> None:
        """Let each counter of a key in this window be at least ``count``, and none be more than need be."""
        start = self._start(plane, plane.table)
        for at in self._places(key):
            if self._counters[start + at] < count:
                self._counters[start + at] = count

    def _places(self, key: str) -> list[int]:
        """Where a key is counted in each row."""
        digest = blake2b(key.encode(), digest_size=4 * DEPTH, key=self._seed).digest()
        width, numbers = self.width, struct.unpack(f"<{DEPTH}I", digest)
        return [row * width + number % width for row, number in enumerate(numbers)]

    def _start(self, plane: Plane, table: int) -> int:
        return (2 * plane.number + table) * DEPTH * self.width

    def _add(self, span: int, now: int) -> Plane:
        while (len(self._planes) + 1) * 2 * DEPTH * self.width > len(self._counters):
            self._fold()
        plane = self._planes[span] = Plane(len(self._planes), span, now)
        for table in range(2):
            self._clear(plane, table)
        return plane

    def _turn(self, plane: Plane, turn: int) -> None:
        """Begin a window: this one becomes the last, or both are over."""
        if turn > plane.turn + 1:
            self._clear(plane, plane.table)
        plane.table = 1 - plane.table
        self._clear(plane, plane.table)
        plane.turn = turn

    def _clear(self, plane: Plane, table: int) -> None:
        start = self._start(plane, table)
        for at in range(start, start + DEPTH * self.width, len(_ZEROS)):
            part = min(len(_ZEROS), start + DEPTH * self.width - at)
            self._counters[at : at + part] = _ZEROS[:part]

    def _fold(self) -> None:
        """Halve each row: of two counters that become one, the larger counts enough for the keys of both."""
        width, half, counters = self.width, self.width // 2, self._counters
        for row in range(2 * DEPTH * len(self._planes)):
            left = counters[row * width : row * width + half]
            right = counters[row * width + half : (row + 1) * width]
            counters[row * half : (row + 1) * half] = array("I", map(max, left, right))
        self.width = half

"""A bounded place for states: what has expired goes first, then what is missed least.

Every step is O(log n) of the keys held; none looks at all of them.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from math import inf
from typing import Any, Final

#: How sorely a key would be missed. Dropping one that refuses would let its owner in again.
CALM: Final = 0
SPENT: Final = 1
REFUSING: Final = 2

_SLACK: Final = 64


class Entry:
    """One key's state.

    ``expires``: when the state is as good as none. ``rank``: CALM, SPENT or REFUSING, the latter two
    until ``until``. ``used``: grows with each use. ``due``: when the sweep looks at it. Times are whole
    microseconds.
    """

    __slots__ = ("due", "expires", "key", "kind", "rank", "state", "until", "used")

    def __init__(self, key: str, kind: str, state: tuple[Any, ...], expires: int) -> None:
        self.key = key
        self.kind = kind
        self.state = state
        self.expires = expires
        self.due: int | None = expires
        self.rank = CALM
        self.until: float = -inf
        self.used = 0


class Shelf:
    """At most ``size`` entries.

    :ivar dropped: whether a live key has had to go since the shelf was last below 90 % of its size.
    """

    def __init__(self, size: int) -> None:
        self.dropped = False
        self._size = size
        self._entries: dict[str, Entry] = {}
        # each in the order of use, so that the first is the one used longest ago
        self._ranks: tuple[OrderedDict[str, Entry], ...] = (OrderedDict(), OrderedDict(), OrderedDict())
        self._heap: list[tuple[int, int, Entry]] = []
        self._ticks = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> Entry | None:
        """Find an entry; it may have expired."""
        return self._entries.get(key)

    def put(self, key: str, kind: str, state: tuple[Any, ...], expires: int, now: int) -> Entry:
        """Keep a state, making room if need be."""
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._size:
                self._make_room(now)
            entry = Entry(key, kind, state, expires)
            self._entries[key] = self._ranks[CALM][key] = entry
            self._schedule(entry)
            return entry
        entry.kind = kind
        entry.state = state
        entry.expires = expires
        if entry.due is not None and expires < entry.due:
            self._schedule(entry)
        return entry

    def use(self, entry: Entry, rank: int, until: float = -inf) -> None:
        """Note that a key was used now, and what it is until then; CALM has no end."""
        ranks = self._ranks
        if rank == entry.rank:
            ranks[rank].move_to_end(entry.key)
        else:
            del ranks[entry.rank][entry.key]
            ranks[rank][entry.key] = entry
            entry.rank = rank
        entry.until = until
        entry.used = next(self._ticks)

    def drop(self, key: str) -> None:
        """Forget a key, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        del self._ranks[entry.rank][key]
        # what is left of it in the heap is no longer due
        entry.due = None
        if self.dropped and len(self._entries) < 0.9 * self._size:
            self.dropped = False

    def sweep(self, now: int, most: int) -> bool:
        """Look at up to ``most`` keys that are due, and drop those that have expired.

        :returns: whether one was dropped.
        """
        heap = self._heap
        swept = False
        while most and heap and heap[0][0] <= now:
            most -= 1
            due, _, entry = heapq.heappop(heap)
            if entry.due != due:
                continue
            if entry.expires <= now:
                self.drop(entry.key)
                swept = True
            else:
                self._schedule(entry)
        return swept

    def _make_room(self, now: int) -> None:
        # keys that were used again since they were first due are put off here; past the bound the one
        # used longest ago will do, which is the likeliest to have expired
        if self.sweep(now, _SLACK):
            return
        oldest = [next(iter(rank.values())) for rank in self._ranks if rank]
        with_room = [entry for entry in oldest if entry.until <= now]
        # where all refuse, the lowest rank comes first
        victim = min(with_room, key=lambda entry: entry.used) if with_room else oldest[0]
        self.drop(victim.key)
        self.dropped = True

    def _schedule(self, entry: Entry) -> None:
        entry.due = entry.expires
        heapq.heappush(self._heap, (entry.expires, next(self._ticks), entry))
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            # more than half of it is left over from keys that went or moved
            self._heap = [(kept.expires, next(self._ticks), kept) for kept in self._entries.values()]
            for kept in self._entries.values():
                kept.due = kept.expires
            heapq.heapify(self._heap)

"""A bounded place for states: what has expired goes first, then what is missed least.

Steps cost O(log n) of the keys held, taken together; none looks at all of them.
"""

from __future__ import annotations

import heapq
import itertools
from collections import OrderedDict
from typing import Any, Final

#: How sorely a key would be missed. An empty one holds nothing; dropping one that refuses would let its
#: owner in again; one that is over has refused, until its wait was over; slots that are held never go.
EMPTY: Final = 0
CALM: Final = 1
OVER: Final = 2
REFUSING: Final = 3
HELD: Final = 4

_NEVER: Final = -(2**63)
_SLACK: Final = 64
#: Keys looked at, at most, to find one that has expired: more would keep everybody waiting for longer than
#: the choice is worth.
_LOOKS: Final = 4_096


class Entry:
    """One key's state.

    ``expires``: when the state is as good as none. ``rank``: see above; REFUSING ends at ``until``. ``used``:
    grows with each use. ``due``: when the sweep looks at it. Times are whole microseconds.
    """

    __slots__ = ("due", "expires", "key", "kind", "rank", "state", "until", "used")

    def __init__(self, key: str, kind: str, state: tuple[Any, ...], expires: int, rank: int) -> None:
        self.key = key
        self.kind = kind
        self.state = state
        self.expires = expires
        self.rank = rank
        self.due = self.until = expires
        self.used = 0


class Shelf:
    """At most ``size`` entries.

    :ivar entries: by their keys; some of them may have expired.
    :ivar dropped: whether a live key has had to go, or a newcomer, since the shelf was last below 90 % of
        its size.
    """

    def __init__(self, size: int) -> None:
        self.entries: dict[str, Entry] = {}
        self.dropped = False
        self._size = size
        # each in the order of use, so that the first is the one used longest ago
        self._ranks: tuple[OrderedDict[str, Entry], ...] = tuple(OrderedDict() for _ in range(5))
        #: What is due, earliest first, and what is over, used longest ago first; some of it no longer is.
        self._due: list[tuple[int, int, Entry]] = []
        self._over: list[tuple[int, Entry]] = []
        self._ticks = itertools.count()

    def put(self, key: str, kind: str, state: tuple[Any, ...], expires: int, rank: int, now: int) -> bool:
        """Keep the state of a key that is used now, making room if need be; any rank but REFUSING.

        :returns: whether there was room, or room could be made.
        """
        entry = self.entries.get(key)
        if entry is None:
            if len(self.entries) >= self._size and not self._make_room(now):
                return False
            entry = self.entries[key] = Entry(key, kind, state, expires, rank)
            self._ranks[rank][key] = entry
            self._schedule(entry, expires)
        else:
            entry.kind, entry.state, entry.expires = kind, state, expires
            if rank == entry.rank:
                self._ranks[rank].move_to_end(key)
            else:
                self._rank(entry, rank)
            # a key that was put off is looked at when it was due first
            if expires < entry.due:
                self._schedule(entry, expires)
        entry.used = next(self._ticks)
        return True

    def refuse(self, key: str, until: int) -> None:
        """Note that a key, if it is there, is used now and refuses until then."""
        entry = self.entries.get(key)
        if entry is None:
            return
        self._rank(entry, REFUSING)
        entry.used, entry.until = next(self._ticks), until
        if until < entry.due:
            self._schedule(entry, until)

    def drop(self, key: str) -> None:
        """Forget a key, if it is there."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return
        del self._ranks[entry.rank][key]
        # what is left of it in the heaps is no longer meant, and holds nothing large
        entry.due, entry.rank, entry.state = _NEVER, EMPTY, ()
        if self.dropped and len(self.entries) < 0.9 * self._size:
            self.dropped = False

    def sweep(self, now: int, looks: int, most: int) -> int:
        """Look at keys that are due, and drop those that have expired.

        :param looks: how many to look at.
        :param most: how many to drop.
        :returns: how many were dropped.
        """
        swept = 0
        while looks and swept < most and self._due and self._due[0][0] <= now:
            looks -= 1
            due, _, entry = heapq.heappop(self._due)
            if entry.due == due:
                swept += self._review(entry, now)
        return swept

    def _review(self, entry: Entry, now: int) -> bool:
        """Drop an entry if it has expired, and note if it refuses no longer."""
        if entry.expires <= now:
            self.drop(entry.key)
            return True
        if entry.rank == REFUSING and entry.until <= now:
            self._rank(entry, OVER)
            self._remember_over(entry)
        refuses = entry.rank == REFUSING
        self._schedule(entry, min(entry.expires, entry.until) if refuses else entry.expires)
        return False

    def _make_room(self, now: int) -> bool:
        if self.sweep(now, _LOOKS, 1):
            return True
        victim = self._victim()
        missed = victim is None or victim.rank != EMPTY
        if victim is not None:
            self.drop(victim.key)
        # said last, since a small shelf is below 90 % as soon as one has gone
        self.dropped = self.dropped or missed
        return victim is not None

    def _victim(self) -> Entry | None:
        """The entry that is missed least; None where all hold slots."""
        empty, calm, over, refusing, _ = self._ranks
        if empty:
            return next(iter(empty.values()))
        with_room = [next(iter(calm.values()))] if calm else []
        if over:
            while self._over[0][1].rank != OVER or self._over[0][1].used != self._over[0][0]:
                heapq.heappop(self._over)
            with_room.append(self._over[0][1])
        if with_room:
            return min(with_room, key=lambda entry: entry.used)
        return next(iter(refusing.values()), None)

    def _rank(self, entry: Entry, rank: int) -> None:
        ranks = self._ranks
        if rank == entry.rank:
            ranks[rank].move_to_end(entry.key)
        else:
            del ranks[entry.rank][entry.key]
            ranks[rank][entry.key] = entry
            entry.rank = rank

    def _remember_over(self, entry: Entry) -> None:
        heapq.heappush(self._over, (entry.used, entry))
        over = self._ranks[OVER]
        if len(self._over) > 1.5 * len(over) + _SLACK:
            self._over = [(kept.used, kept) for kept in over.values()]
            heapq.heapify(self._over)

    def _schedule(self, entry: Entry, due: int) -> None:
        entry.due = due
        heapq.heappush(self._due, (due, next(self._ticks), entry))
        if len(self._due) > 1.5 * len(self.entries) + _SLACK:
            # a third of it is left over from keys that went or moved
            self._due = [(kept.due, next(self._ticks), kept) for kept in self.entries.values()]
            heapq.heapify(self._due)

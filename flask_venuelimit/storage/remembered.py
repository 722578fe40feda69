"""Refusals that this process remembers, so that a flood of refused requests does not reach the store."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from weakref import ref

from ..decisions import Charge, Receipt, Record
from ..quantities import SECOND
from .forks import mend_in_children

#: How long a refusal is remembered at most, in microseconds, and how many are.
LONGEST = SECOND
MOST = 10_000


class _Refusal(NamedTuple):
    receipt: Receipt
    at: int
    until: int


class Remembered:
    """The refusals of the last second, each for its wait.

    A refused hit changes nothing, so until its wait is over the same hit, or a dearer one, is refused
    again. Not for slots, which anybody may give back, nor for limits that refund, nor for shadow limits.

    :param clock: reads seconds: the store's own where it was given one.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._refusals: OrderedDict[str, _Refusal] = OrderedDict()
        #: How often something has been forgotten: what was asked before may say what is no longer so.
        self.forgot = 0
        # entered again where the collector gives something back in the middle of it
        self._lock = threading.RLock()
        mend_in_children(self)
        _join(self)

    def __len__(self) -> int:
        """How many are remembered, those that are over included."""
        return len(self._refusals)

    def refusing(self, charges: Iterable[Charge]) -> list[Receipt]:
        """The charges among these that are known to be refused, as receipts; none costs a call."""
        if not self._refusals:
            return []
        now = self._now()
        found = (self._find(charge, now) for charge in charges if _lasting(charge))
        return [receipt for receipt in found if receipt is not None]

    def note(self, receipts: Iterable[Receipt | None], since: int | None = None) -> None:
        """Remember those of these that the store refuses.

        :param since: what ``forgot`` read before the store was asked; if something was forgotten since, they
            are not remembered.
        """
        for receipt in receipts:
            if receipt is not None and not receipt.allowed and _from_store(receipt):
                self._remember(receipt, since)

    def forget(self, keys: Iterable[str]) -> None:
        """Forget what is remembered of these counters: something was given back, or reset."""
        with self._lock:
            self.forgot += 1
            for key in keys:
                self._refusals.pop(key, None)

    def after_fork(self) -> None:
        """Free the lock, which a thread that the child does not have may hold."""
        self._lock = threading.RLock()

    def _now(self) -> int:
        return round(self._clock() * SECOND)

    def _remember(self, receipt: Receipt, since: int | None) -> None:
        index = receipt.tightest()
        wait, now = receipt.records[index].wait, self._now()
        until = now + (LONGEST if wait is None else min(wait, LONGEST))
        key = receipt.charge.cells[index].key
        with self._lock:
            if since is not None and since != self.forgot:
                return
            # put in anew, so that the oldest stand first
            self._refusals.pop(key, None)
            self._refusals[key] = _Refusal(receipt, now, until)
            while len(self._refusals) > MOST:
                self._refusals.popitem(last=False)

    def _find(self, charge: Charge, now: int) -> Receipt | None:
        for cell in charge.cells:
            known = self._refusals.get(cell.key)
            if known is not None and known.at <= now < known.until:
                before = known.receipt.charge
                # other policies under the same key, as after a change of plan, may well admit
                if before.cells == charge.cells and charge.cost >= before.cost:
                    return Receipt(charge, _later(charge, known.receipt.records, now - known.at), False)
        return None


#: All there are in this process; replaced as a whole, so that nobody meets it half changed.
_memories: tuple[ref[Remembered], ...] = ()


def _join(memory: Remembered) -> None:
    global _memories
    _memories = (*(each for each in _memories if each() is not None), ref(memory))


def forget_everywhere(keys: Sequence[str]) -> None:
    """Forget these counters whichever app of this process remembers them: apps may share a store."""
    for each in _memories:
        memory = each()
        if memory is not None:
            memory.forget(keys)


def _from_store(receipt: Receipt) -> bool:
    """Whether a refusal is the store's, and lasts: what this process counts in its place costs no call."""
    return bool(receipt.records) and not receipt.local and _lasting(receipt.charge)


def _lasting(charge: Charge) -> bool:
    """Whether a refusal of this charge lasts for its wait, and refuses the request."""
    return charge.binding and not charge.stays and not any(cell.policy.held for cell in charge.cells)


def _later(charge: Charge, records: Iterable[Record], passed: int) -> tuple[Record, ...]:
    """What these records say some time later, and of a charge that may cost more."""
    later = []
    for cell, record in zip(charge.cells, records, strict=True):
        wait = None if record.wait is None else max(0, record.wait - passed)
        if not record.allowed and not cell.policy.holds(charge.cost):
            wait = None
        later.append(record._replace(wait=wait, reset=max(0, record.reset - passed)))
    return tuple(later)

"""Counts in this process: bounded, for one process, and for tests that move its clock."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from itertools import starmap
from weakref import WeakSet

from ..decisions import Cell, Charge, Receipt, Record
from .rules import RULES, Outcome, new_birth
from .shelf import CALM, REFUSING, SPENT, Shelf

_SECOND = 1_000_000
#: Expired keys a call clears away: more than a call can add, so that the store shrinks.
_SWEPT = 8

_stores: WeakSet[MemoryStorage] = WeakSet()


class MemoryStorage:
    """Counts in this process, in at most ``max_keys`` keys.

    When it is full, expired and fully refilled keys go first, then the least recently used that have
    room, then those that are used up, and last those that are refusing. Each call clears away a few of
    the expired, so that the store shrinks again; there is no thread. A call costs O(log keys).

    :param max_keys: how many keys are held at most, at least 1.
    :param clock: reads seconds; tests pass a :class:`~flask_venuelimit.testing.ManualClock`.
    :raises ValueError: ``max_keys`` is no whole number of at least 1.
    """

    counts = True
    failures: tuple[type[Exception], ...] = ()

    def __init__(self, max_keys: int = 100_000, clock: Callable[[], float] = time.monotonic) -> None:
        given: object = max_keys
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise ValueError(
                f"MemoryStorage(max_keys={max_keys!r}): max_keys has to be a whole number of at least 1."
            )
        self.max_keys = max_keys
        self.clock = clock
        #: Called, outside the lock, when the store begins to drop live keys; again only after it has
        #: shrunk below 90 % of ``max_keys``.
        self.capacity_listeners: list[Callable[[], None]] = []
        self._shelf = Shelf(max_keys)
        self._lock = threading.Lock()
        _stores.add(self)

    def __len__(self) -> int:
        """How many keys are held, expired ones that were not cleared away yet included."""
        return len(self._shelf)

    def __repr__(self) -> str:
        return f"MemoryStorage(max_keys={self.max_keys})"

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit.

        See :meth:`Storage.decide`. The cells of one call have to have keys of their own.
        """
        with self._lock:
            dropped = self._shelf.dropped
            receipts = self._decide(charges, self._now())
            reached = self._shelf.dropped and not dropped
        if reached:
            for listener in tuple(self.capacity_listeners):
                listener()
        return receipts

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Answer what :meth:`decide` would, each charge for itself, and write nothing."""
        with self._lock:
            now = self._now()
            receipts = []
            for charge in charges:
                looks = ((self._look(cell, now, charge.cost), self._look(cell, now)) for cell in charge.cells)
                receipts.append(Receipt(charge, tuple(starmap(_uncharged, looks)), False))
        return receipts

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, once, where the counters still hold it."""
        with self._lock:
            now = self._now()
            for receipt in receipts:
                charge = receipt.charge
                if receipt.redeem():
                    for cell, record in zip(charge.cells, receipt.records, strict=True):
                        self._give_back(cell, charge.cost, record.token, now)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let the slots that these receipts hold lapse a lease from now. No policy holds slots yet."""

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        with self._lock:
            for key in keys:
                self._shelf.drop(key)

    def _after_fork(self) -> None:
        if self._lock.locked():
            # a thread that the child does not have was writing: its half-made step cannot be finished
            self._shelf = Shelf(self.max_keys)
        self._lock = threading.Lock()

    def _now(self) -> int:
        return round(self.clock() * _SECOND)

    def _decide(self, charges: Sequence[Charge], now: int) -> list[Receipt]:
        birth = new_birth()
        weighed = [self._weigh(charge, now, birth) for charge in charges]
        passes = all(fits or not charge.binding for charge, fits, _ in weighed)
        receipts = [
            self._settle(charge, outcomes, fits and (passes or charge.stays), now)
            for charge, fits, outcomes in weighed
        ]
        self._shelf.sweep(now, _SWEPT)
        return receipts

    def _weigh(self, charge: Charge, now: int, birth: str) -> tuple[Charge, bool, list[Outcome]]:
        """A charge, whether it fits, and what each of its cells would become."""
        outcomes = [self._look(cell, now, charge.cost, birth) for cell in charge.cells]
        return charge, all(outcome.allowed for outcome in outcomes), outcomes

    def _settle(self, charge: Charge, outcomes: list[Outcome], charged: bool, now: int) -> Receipt:
        """Write what was weighed, if it is charged, and answer."""
        records = []
        for cell, outcome in zip(charge.cells, outcomes, strict=True):
            if charged:
                self._keep(cell, outcome, now)
                allowed, _, remaining, wait, reset, delay, token, _ = outcome
                records.append(Record(allowed, remaining, wait, reset, delay, token))
            else:
                look = outcome if not outcome.allowed else self._look(cell, now)
                self._pass_by(cell, outcome, look, now)
                records.append(_uncharged(outcome, look))
        return Receipt(charge, tuple(records), charged)

    def _look(self, cell: Cell, now: int, cost: int = 0, birth: str = "") -> Outcome:
        """What a cell would become; nothing is written."""
        key, policy = cell
        entry = self._shelf.get(key)
        state = entry.state if entry is not None and entry.kind == policy.kind else None
        return RULES[policy.kind].take(state, now, cost, birth, *policy.numbers)

    def _keep(self, cell: Cell, outcome: Outcome, now: int) -> None:
        """Write a charged cell, and note whether it is used up."""
        if outcome.state is None:
            return
        entry = self._shelf.put(cell.key, cell.policy.kind, outcome.state, outcome.expires, now)
        if outcome.remaining:
            self._shelf.use(entry, CALM)
        else:
            self._shelf.use(entry, SPENT, now + (self._look(cell, now, 1).wait or 0))

    def _pass_by(self, cell: Cell, outcome: Outcome, look: Outcome, now: int) -> None:
        """Write what a cell that was not charged has to keep all the same, and note whether it refuses."""
        if look.state is not None:
            self._shelf.put(cell.key, cell.policy.kind, look.state, look.expires, now)
        entry = self._shelf.get(cell.key)
        if entry is not None and not outcome.allowed:
            until = outcome.expires if outcome.wait is None else now + outcome.wait
            self._shelf.use(entry, REFUSING, until)

    def _give_back(self, cell: Cell, cost: int, token: str, now: int) -> None:
        entry = self._shelf.get(cell.key)
        policy = cell.policy
        if entry is None or entry.kind != policy.kind:
            return
        rule = RULES[policy.kind]
        state = rule.give_back(entry.state, now, cost, token, *policy.numbers)
        if state is not None:
            expires = rule.take(state, now, 0, "", *policy.numbers).expires
            self._shelf.put(cell.key, policy.kind, state, expires, now)
            self._shelf.use(entry, CALM)


def _uncharged(outcome: Outcome, look: Outcome) -> Record:
    """The answer of a cell that was not charged: the verdict on the cost, and the room there is now."""
    return Record(outcome.allowed, look.remaining, outcome.wait, look.reset, outcome.delay)


def _after_fork() -> None:
    for store in _stores:
        store._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

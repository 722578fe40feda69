"""Counts in this process: bounded, for one process, and for tests that move its clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from ..decisions import Charge, Receipt, Record
from .counters import Counters
from .forks import mend_in_children
from .rules import Outcome, new_birth
from .turns import Turn

_SECOND = 1_000_000
#: Keys that are due and looked at in each call: more than a call can add, so that the store shrinks.
_SWEPT = 8


class MemoryStorage:
    """Counts in this process, in at most ``max_keys`` keys.

    When it is full, expired and fully refilled keys go first, then the least recently used that are not
    refusing, then those that are. Slots in use never go: where nothing else is left, newcomers are admitted
    uncounted. Each call clears away a few of the expired, so that the store shrinks again; there is no
    thread. A call costs O(log keys), many calls taken together.

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
        #: Called, outside the lock, when the store begins to drop live keys, or to turn newcomers away; again
        #: only after it has shrunk below 90 % of ``max_keys``.
        self.capacity_listeners: list[Callable[[], None]] = []
        self._begin()
        self._turn = Turn()
        #: What is to be given back.
        self._late: deque[Receipt] = deque()
        mend_in_children(self)

    def __len__(self) -> int:
        """How many keys are held, expired ones that were not cleared away yet included."""
        return len(self._counters.shelf.entries)

    def __repr__(self) -> str:
        return f"MemoryStorage(max_keys={self.max_keys})"

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit.

        See :meth:`Storage.decide`. The cells of one call have to have keys of their own.
        """
        with self._turn:
            shelf = self._counters.shelf
            dropped = shelf.dropped
            now = round(self.clock() * _SECOND)
            if self._late:
                self._settle_late(now)
            if len(charges) == 1 and len(charges[0].cells) == 1:
                receipts = [self._decide_one(charges[0], now)]
            else:
                receipts = self._decide(charges, now)
            shelf.sweep(now, _SWEPT, _SWEPT)
            reached = shelf.dropped and not dropped
        if reached:
            for listener in tuple(self.capacity_listeners):
                listener()
        return receipts

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Answer what :meth:`decide` would, each charge for itself, and write nothing."""
        with self._turn:
            now = self._now()
            self._settle_late(now)
            return [self._peek(charge, now) for charge in charges]

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, once, where the counters still hold it.

        What is given back in the middle of a call, by the collector, is so with the next call.
        """
        self._late.extend(receipts)
        if not self._turn.mine():
            with self._turn:
                self._settle_late(self._now())

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let the slots that these receipts hold lapse a lease from now."""
        with self._turn:
            now = self._now()
            for receipt in receipts:
                for cell, record in zip(receipt.charge.cells, receipt.records, strict=True):
                    self._counters.renew(cell, record.token, now)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        with self._turn:
            for key in keys:
                self._counters.shelf.drop(key)

    def _begin(self) -> None:
        self._counters = Counters(self.max_keys)

    def _place(self, charge: Charge) -> Counters:
        """Where a charge is counted."""
        return self._counters

    def after_fork(self) -> None:
        """Go on from the parent's counts, unless a thread of the parent was about to change them."""
        if self._turn.locked():
            # a thread that the child does not have was writing: its half-made step cannot be finished
            self._begin()
        self._turn = Turn()

    def _now(self) -> int:
        return round(self.clock() * _SECOND)

    def _settle_late(self, now: int) -> None:
        while self._late:
            receipt = self._late.popleft()
            if receipt.redeem():
                self._give_back(receipt.charge, receipt.records, now)

    def _decide(self, charges: Sequence[Charge], now: int) -> list[Receipt]:
        birth = new_birth()
        weighed = [self._weigh(charge, now, birth) for charge in charges]
        passes = _passes(weighed)
        return [
            self._settle(charge, outcomes, fits and (passes or charge.stays), now)
            for charge, fits, outcomes in weighed
        ]

    def _decide_one(self, charge: Charge, now: int) -> Receipt:
        """What :meth:`_decide` does for the most usual question: nothing is weighed against another."""
        counters = self._place(charge)
        cell = charge.cells[0]
        outcome = counters.look(cell, now, charge.cost, new_birth())
        allowed, _, remaining, _, reset, delay, token, _ = outcome
        if not allowed:
            return Receipt(charge, (counters.pass_by(cell, outcome, now),), False)
        if not counters.keep(cell, outcome, now):
            return _uncounted(charge)
        return Receipt(charge, (Record(True, remaining, 0, reset, delay, token),), True)

    def _weigh(self, charge: Charge, now: int, birth: str) -> tuple[Charge, bool, list[Outcome]]:
        """A charge, whether it fits, and what each of its cells would become."""
        look = self._place(charge).look
        outcomes = [look(cell, now, charge.cost, birth) for cell in charge.cells]
        return charge, all(outcome.allowed for outcome in outcomes), outcomes

    def _settle(self, charge: Charge, outcomes: list[Outcome], charged: bool, now: int) -> Receipt:
        """Write what was weighed, if it is charged; nothing of it where slots leave no room for all."""
        counters, records = self._place(charge), []
        for cell, outcome in zip(charge.cells, outcomes, strict=True):
            if not charged:
                records.append(counters.pass_by(cell, outcome, now))
            elif counters.keep(cell, outcome, now):
                _, _, remaining, _, reset, delay, token, _ = outcome
                records.append(Record(True, remaining, 0, reset, delay, token))
            else:
                self._give_back(charge, records, now)
                return _uncounted(charge)
        return Receipt(charge, tuple(records), charged)

    def _peek(self, charge: Charge, now: int) -> Receipt:
        peek = self._place(charge).peek
        records = [peek(cell, now, charge.cost) for cell in charge.cells]
        return Receipt(charge, tuple(records), False)

    def _give_back(self, charge: Charge, records: Sequence[Record], now: int) -> None:
        """Give back each cell of a charge that has a record, from the first on."""
        give_back = self._place(charge).give_back
        for cell, record in zip(charge.cells, records, strict=False):
            give_back(cell, charge.cost, record.token, now)


def _passes(weighed: list[tuple[Charge, bool, list[Outcome]]]) -> bool:
    """Whether everything that is binding fits."""
    return all(fits or not charge.binding for charge, fits, _ in weighed)


def _uncounted(charge: Charge) -> Receipt:
    """The answer where slots in use leave no room to count in: admitted."""
    return Receipt(charge, tuple([Record(True, cell.policy.quota, 0, 0) for cell in charge.cells]), False)

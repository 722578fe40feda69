"""A cheap first filter in this process, under the ceiling that all processes share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..decisions import Charge, Receipt
from .guarded import Guarded
from .memory import MemoryStorage


class PerProcess:
    """Decides ``per_process`` charges here before the shared store is asked for the others.

    :param shared: the store that all processes share.
    :param here: the store of this process alone.
    """

    def __init__(self, shared: Guarded, here: MemoryStorage) -> None:
        self.shared = shared
        self.here = here
        self.counts = shared.counts

    def decide(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Charge all or none, across both stores; None stands for each charge that nobody counted."""
        near = [charge for charge in charges if charge.per_process]
        if not near:
            return self.shared.decide(charges)
        far = [charge for charge in charges if not charge.per_process]
        decided = self.here.decide(near)
        if any(map(_refuses, decided)):
            # the shared store is spared, save for failure limits: this refusal is a failure
            far = [charge for charge in far if charge.stays]
        shared = self.shared.decide(far) if far else []
        if any(map(_refuses, shared)):
            decided = list(map(self._take_back, decided))
        return _in_order(charges, zip((*near, *far), (*decided, *shared), strict=True))

    def peek(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Look, writing nothing."""
        return self._each(charges, self.here.peek, self.shared.peek)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back each of ``receipts`` in the store that charged it."""
        self._split(receipts, self.here.refund, self.shared.refund)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Renew the slots that ``receipts`` hold in the store that gave them."""
        self._split(receipts, self.here.renew, self.shared.renew)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters in both stores."""
        self.here.reset(keys)
        self.shared.reset(keys)

    def _take_back(self, receipt: Receipt) -> Receipt:
        """Undo a charge of this process because the shared store refused; a failure limit's stays."""
        if receipt.charge.stays or not receipt.charged:
            return receipt
        self.here.refund([receipt])
        return self.here.peek([receipt.charge])[0]

    def _each(
        self,
        charges: Sequence[Charge],
        near: Callable[[list[Charge]], Sequence[Receipt | None]],
        far: Callable[[list[Charge]], Sequence[Receipt | None]],
    ) -> Sequence[Receipt | None]:
        return [(near if charge.per_process else far)([charge])[0] for charge in charges]

    def _split(
        self,
        receipts: Sequence[Receipt],
        near: Callable[[list[Receipt]], None],
        far: Callable[[list[Receipt]], None],
    ) -> None:
        here = [receipt for receipt in receipts if receipt.charge.per_process]
        there = [receipt for receipt in receipts if not receipt.charge.per_process]
        if here:
            near(here)
        if there:
            far(there)


def _refuses(receipt: Receipt | None) -> bool:
    return receipt is not None and receipt.charge.binding and not receipt.allowed


def _in_order(
    charges: Sequence[Charge], answered: Iterable[tuple[Charge, Receipt | None]]
) -> list[Receipt | None]:
    """The answers in the order of the charges; None for one that nobody was asked for."""
    by_charge = {id(charge): receipt for charge, receipt in answered}
    return [by_charge.get(id(charge)) for charge in charges]

"""A cheap first filter in this process, under the ceiling that all processes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..decisions import Charge, Receipt
from .guarded import Guarded
from .memory import MemoryStorage
from .together import Point, refuses


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
        if not far:
            return self.here.decide(near)
        point = Point(self.refund)
        looked = self.here.peek(near)
        if any(map(refuses, looked)):
            point.ask(self.here.decide, near)
            point.ask(self.shared.decide, far)
        else:
            # charged here last: what is given back has opened a window, and a refused hit changes nothing
            point.add(near, looked)
            point.ask(self.shared.decide, far)
            point.ask(self.here.decide, near)
        return point.answers(charges)

    def peek(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Look, writing nothing; each store is asked at most once."""
        near = [charge for charge in charges if charge.per_process]
        far = [charge for charge in charges if not charge.per_process]
        looked = iter(self.here.peek(near) if near else ())
        answers = iter(self.shared.peek(far) if far else ())
        return [next(looked if charge.per_process else answers) for charge in charges]

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

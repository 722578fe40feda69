"""No storage: nobody counts, everything is admitted."""

from __future__ import annotations

from collections.abc import Sequence

from ..decisions import Charge, Receipt, Record


class NoopStorage:
    """What limits are decided by where no storage is configured. A fresh clone runs."""

    counts = False
    failures: tuple[type[Exception], ...] = ()

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Admit every charge and count none."""
        return [
            Receipt(charge, tuple(Record(True, cell.policy.quota, 0, 0) for cell in charge.cells), False)
            for charge in charges
        ]

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Admit every charge."""
        return self.decide(charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back nothing: nothing was charged."""

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Renew nothing: nothing is held."""

    def reset(self, keys: Sequence[str]) -> None:
        """Forget nothing: nothing was counted."""

"""All or none across stores that cannot be asked in one step: the one place where charges are undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..decisions import Charge, Receipt

_Answer = TypeVar("_Answer", bound=Receipt | None)


class Point:
    """The charges of one point while one store after the other answers to them.

    The first refusal refuses the whole point. What was charged before it is given back, and reads as if it
    never had been charged; what comes after it is not charged any more. Failure limits (``stays``) are
    charged before and after: the refusal is a failure.

    :param refund: gives back what any of the stores has charged.
    """

    def __init__(self, refund: Callable[[list[Receipt]], None]) -> None:
        #: Whether an answer has refused the point.
        self.refused = False
        self._refund = refund
        #: What was answered to each charge, by its identity.
        self._answers: dict[int, Receipt | None] = {}

    def ask(
        self, decide: Callable[[Sequence[Charge]], Sequence[Receipt | None]], charges: Sequence[Charge]
    ) -> None:
        """Have a store decide these charges; once the point is refused, the failure limits among them."""
        wanted = [charge for charge in charges if charge.stays] if self.refused else charges
        if wanted:
            self.add(wanted, decide(wanted))

    def add(self, charges: Sequence[Charge], answers: Sequence[Receipt | None]) -> None:
        """Take in what is answered to these charges, in place of what was before."""
        # first of all: giving back may fail, and whoever abandons the point then has to know of these too
        self._answers.update(zip(map(id, charges), answers, strict=True))
        if not self.refused and any(map(refuses, answers)):
            self.refused = True
            self._give_back(failures=False)

    def abandon(self) -> None:
        """Give back everything, failure limits too: nobody will hold a receipt to do so later."""
        self._give_back(failures=True)

    def answers(self, charges: Sequence[Charge]) -> list[Receipt | None]:
        """What was answered to each of these charges; None where nobody counted it, or was asked to."""
        return [self._answers.get(id(charge)) for charge in charges]

    def _give_back(self, *, failures: bool) -> None:
        """Undo what was charged so far, failure limits too if said so, and answer as if it never had been."""
        taken = {
            key: receipt
            for key, receipt in self._answers.items()
            if receipt is not None and receipt.charged and (failures or not receipt.charge.stays)
        }
        if taken:
            self._refund(list(taken.values()))
            self._answers.update((key, _returned(receipt)) for key, receipt in taken.items())


def only_failures(
    decide: Callable[[Sequence[Charge]], Sequence[_Answer]],
    peek: Callable[[Sequence[Charge]], Sequence[_Answer]],
    charges: Sequence[Charge],
) -> list[_Answer]:
    """Charge failure limits, and look at others: the point is refused already, and that is a failure.

    :param decide: a store's own, as is ``peek``.
    """
    return [(decide if each.stays else peek)([each])[0] for each in charges]


def refuses(receipt: Receipt | None) -> bool:
    """Whether a receipt refuses the whole point."""
    return receipt is not None and receipt.charge.binding and not receipt.allowed


def _returned(receipt: Receipt) -> Receipt:
    """A receipt as it reads once its charge is given back: what remained, and its cost, at most the quota."""
    cost = receipt.charge.cost
    pairs = zip(receipt.charge.cells, receipt.records, strict=True)
    records = [
        record._replace(remaining=min(cell.policy.quota, record.remaining + cost), token="")
        for cell, record in pairs
    ]
    return Receipt(receipt.charge, tuple(records), False)

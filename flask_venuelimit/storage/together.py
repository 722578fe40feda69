"""All or none across stores that cannot be asked in one step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..decisions import Charge, Receipt
from .protocols import Counting


class Part(NamedTuple):
    """Charges that one store decides in one step."""

    store: Counting
    charges: list[Charge]


def decide_in_turn(parts: Sequence[Part], charges: Sequence[Charge]) -> list[Receipt | None]:
    """Ask each store in turn, and give back what earlier ones charged once a later one refuses.

    After a refusal only failure limits are still charged: the refusal is a failure.

    :param parts: disjoint parts of ``charges``.
    :returns: the answers in the order of ``charges``; None for one that nobody counted.
    """
    answers: dict[int, Receipt | None] = {}
    refused = False
    for store, asked in parts:
        wanted = [charge for charge in asked if charge.stays or not refused]
        answered = store.decide(wanted) if wanted else ()
        if not refused and any(map(refuses, answered)):
            refused = True
            _give_back(parts, answers)
        answers.update(zip(map(id, wanted), answered, strict=True))
    return [answers.get(id(charge)) for charge in charges]


def refuses(receipt: Receipt | None) -> bool:
    """Whether a receipt refuses the whole point."""
    return receipt is not None and receipt.charge.binding and not receipt.allowed


def _give_back(parts: Sequence[Part], answers: dict[int, Receipt | None]) -> None:
    """Undo what was charged so far, save what stays, and answer as if it never had been."""
    for store, asked in parts:
        decided = [answers.get(id(charge)) for charge in asked]
        taken = list(_taken(decided))
        if taken:
            store.refund(taken)
            answers.update((id(receipt.charge), returned(receipt)) for receipt in taken)


def _taken(receipts: Iterable[Receipt | None]) -> Iterable[Receipt]:
    for receipt in receipts:
        if receipt is not None and receipt.charged and not receipt.charge.stays:
            yield receipt


def returned(receipt: Receipt) -> Receipt:
    """A receipt as it reads once its charge is given back: what remained, and its cost, at most the quota."""
    cost = receipt.charge.cost
    pairs = zip(receipt.charge.cells, receipt.records, strict=True)
    records = [
        record._replace(remaining=min(cell.policy.quota, record.remaining + cost), token="")
        for cell, record in pairs
    ]
    return Receipt(receipt.charge, tuple(records), False)

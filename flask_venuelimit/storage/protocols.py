"""What limits ask of storage, and what a store answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from ..decisions import Charge, Receipt


class Counting(Protocol):
    """What limits ask: a store, or what stands in front of one."""

    #: Whether anybody counts here; False only for the no-op.
    counts: bool

    def decide(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Charge all or none; None stands for each charge that nobody counted."""
        ...

    def peek(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Look, writing nothing; None stands for each charge that nobody could look up."""
        ...

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, where the counters still hold it.

        A receipt is redeemed here (:meth:`Receipt.redeem`), so that it is given back once, whoever asks.
        """
        ...

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let the slots that these receipts hold lapse a lease from now."""
        ...

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        ...


@runtime_checkable
class Storage(Counting, Protocol):
    """What any store must do. Each call is one atomic step on the store's own clock."""

    #: The exceptions that mean "the store failed", as opposed to "the code is wrong".
    failures: tuple[type[Exception], ...]

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit.

        Charges that fitted and ``stay`` are charged all the same. A shadow charge (not binding) is
        charged with the others if it fits itself, and never stands in their way. A charge whose own
        counter cannot be read comes back with ``error`` set and neither refuses nor is charged. The cells
        of one call have to have keys of their own.
        """
        ...

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Answer what :meth:`decide` would, each charge for itself, and write nothing."""
        ...

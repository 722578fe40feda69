"""What happens when storage fails: the one place where that is handled, by a named policy.

The policy is ``allow``: a request is let through uncounted. The failure is told once, when it begins,
and once more when it ends, never per request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from ..decisions import Charge, Receipt
from . import Storage

logger = logging.getLogger("flask_venuelimit")

_A = TypeVar("_A")
_T = TypeVar("_T")


class Guarded:
    """A store whose failures stay here.

    :param storage: the store that counts.
    :param on_failure: told the exception when a failure begins.
    :param on_recovery: told when the store answers again.
    """

    def __init__(
        self, storage: Storage, on_failure: Callable[[Exception], None], on_recovery: Callable[[], None]
    ) -> None:
        self.storage = storage
        self.counts = storage.counts
        self._on_failure = on_failure
        self._on_recovery = on_recovery
        self._failing = False
        self._unreadable: set[str] = set()
        self._lock = threading.Lock()

    def decide(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Charge; None stands for each charge that nobody counted."""
        return self._readable(self._attempt(self.storage.decide, charges), charges)

    def peek(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Look, writing nothing; None stands for each charge that nobody could look up."""
        return self._readable(self._attempt(self.storage.peek, charges), charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back each of ``receipts`` that was charged and not yet given back, in one call.

        One whose outcome is unknown is not tried again: it must never be given twice.
        """
        charged = [receipt for receipt in receipts if receipt.charged]
        if charged:
            self._attempt(self.storage.refund, charged)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        self._attempt(self.storage.reset, keys)

    def _attempt(self, call: Callable[[_A], _T], argument: _A) -> _T | None:
        try:
            answer = call(argument)
        except self.storage.failures as error:
            self._failed(error)
            return None
        if self._failing:
            self._recovered()
        return answer

    def _readable(
        self, receipts: list[Receipt] | None, charges: Sequence[Charge]
    ) -> Sequence[Receipt | None]:
        if receipts is None:
            return [None] * len(charges)
        unreadable = [receipt.error for receipt in receipts if receipt.error is not None]
        if not unreadable:
            return receipts
        for error in unreadable:
            self._unread(error)
        return [receipt if receipt.error is None else None for receipt in receipts]

    def _unread(self, error: str) -> None:
        """Tell once of a counter that something else has overwritten; its limit lets pass."""
        if error not in self._unreadable:
            self._unreadable.add(error)
            logger.warning(
                "a counter in the storage cannot be read (%s); its limit lets requests pass until the key "
                "expires. Something else writes to keys with our prefix: change VENUELIMIT_KEY_PREFIX.",
                error,
            )

    def _failed(self, error: Exception) -> None:
        with self._lock:
            if self._failing:
                return
            self._failing = True
        logger.error(
            "the storage does not answer (%s: %s); limits let requests pass uncounted until it does",
            type(error).__name__,
            error,
        )
        self._on_failure(error)

    def _recovered(self) -> None:
        with self._lock:
            if not self._failing:
                return
            self._failing = False
        logger.warning("the storage answers again; limits count")
        self._on_recovery()

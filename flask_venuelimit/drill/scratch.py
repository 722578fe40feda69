"""Where a drill counts: a store of its own, under the rules of the app's, whose clock it can move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..decisions import Charge, Receipt
from ..storage import Storage
from ..storage.memory import MemoryStorage
from ..storage.redis import RedisStorage
from ..storage.sketch import SketchStorage

#: How many keys a scratch store in memory holds at most, and how many mebibytes where it sketches.
MOST_KEYS = 400
MOST_MEBIBYTES = 1
#: How many keys are removed with one command.
_AT_ONCE = 500


class Noted:
    """A store on a server that notes the keys it may have written, and what it failed with.

    :param inner: the store that counts.
    """

    counts = True

    def __init__(self, inner: RedisStorage) -> None:
        self._inner = inner
        self.failures = inner.failures
        self.clock = inner.clock
        self.keys: dict[str, None] = {}
        self.error: Exception | None = None

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """See :class:`Storage`, also for what follows."""
        self.keys |= dict.fromkeys(cell.key for charge in charges for cell in charge.cells)
        try:
            return self._inner.decide(charges)
        except self.failures as error:
            self.error = error
            raise

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Look, writing nothing."""
        return self._inner.peek(charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged."""
        self._inner.refund(receipts)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let slots lapse a lease from now."""
        self._inner.renew(receipts)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        self._inner.reset(keys)

    def lifetimes(self) -> list[int]:
        """For how many milliseconds each key that is there lives on; -1 for one without expiry.

        :raises Exception: one of ``failures``.
        """
        client: Any = self._inner.client
        # no more than the script itself may ask
        answers = [int(client.execute_command("PTTL", key)) for key in self.keys]
        return [answer for answer in answers if answer != -2]

    def clear(self) -> None:
        """Remove every key that may have been written.

        :raises Exception: one of ``failures``.
        """
        keys = list(self.keys)
        for first in range(0, len(keys), _AT_ONCE):
            self._inner.reset(keys[first : first + _AT_ONCE])


def scratch_storage(real: Storage, per_process: bool, clock: Callable[[], float]) -> MemoryStorage | Noted:
    """Make a store for a drill of one limit.

    On the app's own server where there is one, under keys of its own; else in memory. So it is for what each
    process counts, and for a store that is none of ours, whose clock nobody can move.

    :raises Exception: one of ``real.failures``: a cluster does not answer.
    """
    if isinstance(real, RedisStorage) and not per_process:
        return Noted(RedisStorage(real.client, clock))
    if isinstance(real, SketchStorage):
        return SketchStorage(min(real.mebibytes, MOST_MEBIBYTES), MOST_KEYS, clock)
    return MemoryStorage(MOST_KEYS, clock)

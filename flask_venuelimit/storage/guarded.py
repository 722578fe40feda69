"""What happens when storage fails: the one place where that is handled, by a named policy.

``allow`` lets a request pass uncounted, ``local`` counts it in this process, ``deny`` lets nobody pass. Each
charge says which. A failure is told once, when it begins, and once more when it ends, never per request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar
from weakref import WeakKeyDictionary

from ..decisions import Charge, Receipt
from . import Storage
from .breaker import Breaker
from .memory import MemoryStorage
from .remembered import Remembered, forget_everywhere
from .together import Point, only_failures

logger = logging.getLogger("flask_venuelimit")

#: One breaker for each store of this process.
_breakers: WeakKeyDictionary[Storage, Breaker] = WeakKeyDictionary()

_A = TypeVar("_A")
_T = TypeVar("_T")


class Guarded:
    """A store whose failures stay here.

    :param storage: the store that counts.
    :param local: counts in this process what is to be counted there while ``storage`` fails.
    :param on_failure: told the exception when a failure begins.
    :param on_recovery: told when the store answers again.
    :param clock: reads seconds: the store's own where it was given one.
    """

    def __init__(
        self,
        storage: Storage,
        local: MemoryStorage,
        on_failure: Callable[[Exception], None],
        on_recovery: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.storage = storage
        self.counts = storage.counts
        # one a store and process: apps that share a store share what is known of it
        self.breaker = _breakers.setdefault(storage, Breaker(clock))
        # a store that answers without a call has nothing to be spared
        self._remembered = Remembered(clock) if storage.failures else None
        self._local = local
        self._on_failure = on_failure
        self._on_recovery = on_recovery
        self._failing = False
        #: The counters that could not be read, each of which is told of once.
        self._told: set[str] = set()

    def decide(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Charge; None stands for each charge that nobody counted."""
        if self._remembered is None:
            return self._decide(charges)
        known = self._remembered.refusing(charges)
        if not known:
            since = self._remembered.forgot
            receipts = self._decide(charges)
            self._remembered.note(receipts, since)
            return receipts
        # the point is refused before the store is asked, which is spared for all but failure limits
        point = Point(self.refund)
        point.add([receipt.charge for receipt in known], known)
        point.ask(self._decide, charges)
        return point.answers(charges)

    def peek(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        """Look, writing nothing; None stands for each charge that nobody could look up."""
        receipts = self._attempt(self.storage.peek, charges)
        if receipts is None:
            return self._instead(charges, self._local.peek)
        instead = iter(self._instead(self._unreadable(receipts), self._local.peek))
        return [receipt if receipt.error is None else next(instead) for receipt in receipts]

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back each of ``receipts`` that was charged and not yet given back, in one call.

        One whose outcome is unknown is not tried again: it must never be given twice.
        """
        self._split(receipts, self._local.refund, self.storage.refund)
        # afterwards: until then the store may have refused somebody, who is remembered
        forget_everywhere([cell.key for receipt in receipts for cell in receipt.charge.cells])

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Renew the slots that ``receipts`` hold."""
        self._split(receipts, self._local.renew, self.storage.renew)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        self._local.reset(keys)
        self._attempt(self.storage.reset, keys)
        forget_everywhere(keys)

    def _decide(self, charges: Sequence[Charge]) -> Sequence[Receipt | None]:
        receipts = self._attempt(self.storage.decide, charges)
        if receipts is None:
            return self._instead(charges, self._locally(refused=_deny(charges)))
        for receipt in receipts:
            if receipt.error is not None:
                return self._beside_unreadable(receipts)
        return receipts

    def _split(
        self,
        receipts: Sequence[Receipt],
        local: Callable[[list[Receipt]], None],
        shared: Callable[[list[Receipt]], None],
    ) -> None:
        here = [receipt for receipt in receipts if receipt.charged and receipt.local]
        there = [receipt for receipt in receipts if receipt.charged and not receipt.local]
        if here:
            local(here)
        if there:
            self._attempt(shared, there)

    def _attempt(self, call: Callable[[_A], _T], argument: _A) -> _T | None:
        """Call the store; None where it fails, or is known to."""
        breaker = self.breaker
        ticket = breaker.admit()
        if ticket is None:
            self._failed()
            return None
        try:
            answer = call(argument)
        except self.storage.failures as error:
            breaker.failed(ticket, error)
            self._failed()
            _drop_frames(error)
            return None
        except BaseException:
            breaker.abandoned(ticket)
            raise
        if breaker.open or self._failing:
            breaker.answered(ticket)
            self._answered()
        return answer

    def _instead(
        self, charges: Sequence[Charge], local: Callable[[list[Charge]], list[Receipt]]
    ) -> list[Receipt | None]:
        """Answer for a store that cannot, as each charge's ``on_error`` says."""
        counted = [charge for charge in charges if charge.on_error == "local"]
        receipts = iter(local(counted) if counted else ())
        return [self._answer(charge, receipts) for charge in charges]

    def _locally(self, *, refused: bool) -> Callable[[list[Charge]], list[Receipt]]:
        """How this process decides; where the point is refused already, only what failure limits ask."""
        local = self._local
        return partial(only_failures, local.decide, local.peek) if refused else local.decide

    def _answer(self, charge: Charge, local: Iterator[Receipt]) -> Receipt | None:
        if charge.on_error == "local":
            receipt = next(local)
            receipt.local = True
            return receipt
        if charge.on_error == "deny":
            return Receipt(charge, (), False, pause=self.breaker.remaining())
        return None

    def _beside_unreadable(self, receipts: list[Receipt]) -> list[Receipt | None]:
        """Answer for counters that cannot be read; all or none holds for the others of the point."""
        charges = [receipt.charge for receipt in receipts]
        unreadable = self._unreadable(receipts)
        point = Point(self.refund)
        point.add(charges, receipts)
        local = self._locally(refused=point.refused or _deny(unreadable))
        point.add(unreadable, self._instead(unreadable, local))
        return point.answers(charges)

    def _unreadable(self, receipts: Iterable[Receipt]) -> list[Charge]:
        """The charges whose counter something else has overwritten, which is told once."""
        found = [receipt for receipt in receipts if receipt.error is not None]
        for receipt in found:
            self._tell_unreadable(receipt.error or "")
        return [receipt.charge for receipt in found]

    def _tell_unreadable(self, error: str) -> None:
        if error not in self._told:
            self._told.add(error)
            logger.warning(
                "a counter in the storage cannot be read (%s); until the key expires its limit does what "
                "on_error says. Something else writes to keys with our prefix: change VENUELIMIT_KEY_PREFIX.",
                error,
            )

    def _failed(self) -> None:
        """Tell, once, that the store fails."""
        error = None if self._failing else self._begin_failing()
        if error is not None:
            logger.error(
                "the storage does not answer (%s: %s); limits do what on_error says until it does",
                type(error).__name__,
                error,
            )
            _tell(self._on_failure, error)

    def _begin_failing(self) -> Exception | None:
        """Note that the store fails, if nobody has; gives what it failed with."""
        with self.breaker.lock:
            error = None if self._failing else self.breaker.error
            self._failing = self._failing or error is not None
            return error

    def _answered(self) -> None:
        """Tell, once, that the store answers again."""
        with self.breaker.lock:
            if self.breaker.open or not self._failing:
                return
            self._failing = False
        logger.warning("the storage answers again; limits count")
        _tell(self._on_recovery)


def _tell(listener: Callable[..., None], *said: object) -> None:
    """Tell the app; a receiver of its own that raises must not fail the request that happened to notice."""
    try:
        listener(*said)
    except Exception:
        logger.exception("a receiver of storage_failed or storage_recovered raised")


def _drop_frames(error: BaseException) -> None:
    """Let go of the frames, and so of the request, that an error would keep alive as long as it is kept."""
    chain: BaseException | None = error
    while chain is not None and chain.__traceback__ is not None:
        chain.__traceback__ = None
        chain = chain.__cause__ or chain.__context__


def _deny(charges: Iterable[Charge]) -> bool:
    """Whether one of these refuses its point where nobody can count."""
    return any(charge.binding and charge.on_error == "deny" for charge in charges)

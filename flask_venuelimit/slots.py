"""Slots of a Concurrency limit, held for as long as a body is streamed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from .decisions import Receipt
from .quantities import SECOND
from .storage import Counting

#: How many times a lease is renewed, at most, before it would lapse.
_RENEWALS = 10


class Held:
    """A response's body that gives its slots back with its last byte, or once it is closed or dropped.

    It is asked for ``close`` by every WSGI server (PEP 3333); a response that is passed through as it is,
    such as a file's, never runs ``call_on_close``. While it yields it renews the lease, at most ten times
    a lease.

    :param body: the body itself.
    :param receipts: the slots.
    :param clock: reads seconds.
    :param since: when the slots were taken, by that clock: a view may have used up most of a lease.
    :param length: the bytes of the body, or None where nobody knows.
    :param dropped: takes the slots of a body that nobody closed; the app's next request gives them back.
    """

    def __init__(
        self,
        body: Iterable[Any],
        storage: Counting,
        receipts: list[Receipt],
        clock: Callable[[], float],
        since: float,
        length: int | None,
        dropped: deque[Receipt],
    ) -> None:
        self._body = body
        self._chunks: Iterator[Any] | None = None
        self._storage = storage
        self._receipts = receipts
        self._clock = clock
        self._every = min(_lease(receipt) for receipt in receipts) / _RENEWALS
        self._renewed = since
        self._rest = length
        self._dropped = dropped

    def __iter__(self) -> Held:
        return self

    def __next__(self) -> Any:
        if self._chunks is None:
            self._chunks = iter(self._body)
        try:
            chunk = next(self._chunks)
        except BaseException:
            self._release()
            raise
        if self._ends_with(chunk):
            self._release()
        elif self._receipts and self._clock() - self._renewed >= self._every:
            self._renewed = self._clock()
            self._storage.renew(self._receipts)
        return chunk

    def _ends_with(self, chunk: Any) -> bool:
        """Whether this is the last chunk, told by Content-Length: nobody has to ask for one more."""
        if self._rest is None or not isinstance(chunk, bytes):
            self._rest = None
            return False
        self._rest -= len(chunk)
        return self._rest <= 0

    def close(self) -> None:
        """Close the body and give the slots back."""
        try:
            close = getattr(self._body, "close", None)
            if close is not None:
                close()
        finally:
            self._release()

    def __del__(self) -> None:
        # a server that hangs up without closing the body must not keep the slot until the lease ends; but a
        # collector may run in the middle of a call to the storage, which cannot be called again there
        self._dropped.extend(self._receipts)

    def _release(self) -> None:
        receipts, self._receipts = self._receipts, []
        if receipts:
            self._storage.refund(receipts)


def give_back(dropped: deque[Receipt], storage: Counting) -> None:
    """Give back, in one call, the slots of bodies that nobody closed."""
    if dropped:
        receipts = []
        # another thread may take some of them
        with suppress(IndexError):
            while True:
                receipts.append(dropped.popleft())
        storage.refund(receipts)


def _lease(receipt: Receipt) -> float:
    return min(cell.policy.span for cell in receipt.charge.cells) / SECOND

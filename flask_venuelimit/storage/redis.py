"""Counts in Redis or Valkey: one server, what Sentinel watches over, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..decisions import Charge, Receipt
from .by_subject import BySubject
from .clients import FAILURES, Client, Line
from .scripted import Scripted


class RedisStorage:
    """Counts in Redis 6.2 or later, or in Valkey.

    Each call is one command, whatever the number of charges; in a cluster one a subject. The client keeps its
    own time-outs and retries, and is asked for nothing but EVALSHA, EVAL and DEL.

    :param client: a redis-py client: ``redis.Redis``, what ``Sentinel.master_for`` gives, or a
        ``RedisCluster``.
    :param clock: reads seconds, in place of the server's clock; tests pass a
        :class:`~flask_venuelimit.testing.ManualClock`. Redis's own expiry may then only come later.
    :raises ConfigurationError: ``client`` is no such client.
    """

    counts = True
    failures = FAILURES

    def __init__(self, client: Client, clock: Callable[[], float] | None = None) -> None:
        self._settle(Line(client), clock)

    @classmethod
    def over(cls, line: Line, clock: Callable[[], float] | None = None) -> RedisStorage:
        """Make a store whose commands are sent over ``line``."""
        store = cls.__new__(cls)
        store._settle(line, clock)
        return store

    def _settle(self, line: Line, clock: Callable[[], float] | None) -> None:
        self._line = line
        self.clock = clock
        one = Scripted(line, clock)
        self._asked: Scripted | BySubject = BySubject(one) if line.sharded else one

    @property
    def client(self) -> Client:
        """The redis-py client."""
        return self._line.client

    def __repr__(self) -> str:
        """Say where, and never by which password."""
        return f"RedisStorage({self._line.place()})"

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit.

        See :meth:`Storage.decide`. The cells of one call have to have keys of their own, and in a cluster
        those of a charge one hash tag.
        """
        return self._asked.decide(charges)

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Answer what :meth:`decide` would, each charge for itself, and write nothing."""
        return self._asked.peek(charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, once, where the counters still hold it."""
        self._asked.refund(receipts)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let the slots that these receipts hold lapse a lease from now."""
        self._asked.renew(receipts)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        self._asked.reset(keys)

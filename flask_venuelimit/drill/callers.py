"""Callers of one limit in a scratch namespace: they ask the stand-in as a client does, and never wait."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..decisions import Decision
from ..refusals import retry_seconds
from ..state import AppState
from ..testing import ManualClock
from .answers import PROGRAM, Answer
from .findings import Broken
from .lanes import WHO, Lane
from .scratch import Noted, scratch_storage
from .stand_in import PATH, stand_in

#: Callers whose key names an address come from here on (RFC 1918); the others all come from there.
_ADDRESSES = ipaddress.IPv4Address("10.0.0.0")


class Callers:
    """Those who call on one limit, told apart by a number.

    :param real: what the app keeps for its limiter; it is only read.
    :param lane: the limit, and for whom.
    :raises Exception: one of the failures of the app's store: a cluster does not answer.
    """

    def __init__(self, real: AppState, lane: Lane) -> None:
        self.lane = lane
        self.settings = real.settings
        self.clock = ManualClock()
        self.store = scratch_storage(real.raw_storage, lane.terms.per_process, self.clock)
        self._app, self._limit = stand_in(real, lane, self.store)
        self._client = self._app.test_client(use_cookies=False)
        self._held: list[Decision] = []

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Take the stand-in for the app at hand, for many steps by hand."""
        with self._app.app_context():
            yield

    def ask(self, who: int, headers: Mapping[str, str] = PROGRAM, path: str = PATH) -> Answer:
        """Send a request, and give the answer.

        :raises Broken: code of the app's own raised while it rendered the answer, or the store failed.
        """
        address = str(_ADDRESSES + who) if self.lane.shared else str(_ADDRESSES)
        sent = dict(headers) if self.lane.shared else {**headers, WHO: str(who)}
        try:
            response = self._client.get(path, headers=sent, environ_base={"REMOTE_ADDR": address})
        except Exception as error:
            # an error handler or a template of the app's own, of which anything may come
            raise Broken(
                f"the app's own answer raised {type(error).__name__} ({error}). If it needs what hooks "
                "prepare, or the app itself, drill that with --url"
            ) from error
        self._check_store()
        return Answer(response.status_code, tuple(response.headers.items()), response.data)

    def look(self, who: int) -> Decision:
        """What a request would be told; nothing is written."""
        with self.at_hand():
            return self._limit.peek(self.lane.cost, subject=self._subject(who))

    def charge(self, who: int, cost: int) -> Decision:
        """Charge by hand, as no request does; what is held is kept until :meth:`give_back`."""
        with self.at_hand():
            decision = self._limit.hit(cost, subject=self._subject(who))
        self._check_store()
        if decision.allowed and self.lane.held:
            self._held.append(decision)
        return decision

    def use_up(self, who: int) -> None:
        """Use up what somebody has: one request, which has to be admitted, and the rest by hand.

        :raises Broken: the first request is refused, or something is left.
        """
        if self.lane.closed:
            return
        answer = self.ask(who)
        if answer.status != self.lane.status:
            raise Broken(f"a first request is answered {answer.status}; nothing was used yet")
        left = self.look(who).remaining
        if left:
            self.charge(who, left)
        if self.look(who).allowed:
            raise Broken("the limit still admits once all of it is used; does the storage count?")

    def give_back(self) -> None:
        """Give back the slots that are held by hand."""
        with self.at_hand():
            while self._held:
                self._limit.refund(self._held.pop())

    def come(self, who: int) -> tuple[bool, int | None]:
        """Let somebody come, and tell whether they are admitted, and else the seconds they are told to wait.

        Who would be held back for a turn is charged by hand, since a request really waits.
        """
        looked = self.look(who)
        if looked.delay:
            decision = self.charge(who, self.lane.cost)
            return decision.allowed, retry_seconds(decision.retry_after, self.settings.retry_jitter)
        answer = self.ask(who)
        return answer.status == self.lane.status, answer.hint

    def close(self) -> None:
        """Remove what was written to a server.

        :raises Exception: one of the store's failures.
        """
        if isinstance(self.store, Noted):
            self.store.clear()

    def _subject(self, who: int) -> str:
        return str(_ADDRESSES + who) if self.lane.shared else str(who)

    def _check_store(self) -> None:
        error = self.store.error if isinstance(self.store, Noted) else None
        if error is not None:
            raise Broken(f"the storage did not answer ({type(error).__name__}: {error})")

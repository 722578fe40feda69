"""All that one app keeps for its limiter: one object in ``app.extensions["venuelimit"]``.

Nothing that was read from an app's config ever stands on the VenueLimit: a second app would then run
with the first one's settings.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flask import Flask, Request
from flask import request as flask_request
from werkzeug.wrappers import Response as BaseResponse

from . import signals
from .addresses import lies_in
from .asking import NO_REQUEST
from .checks import switch
from .coverage import Coverage
from .covering import Covering
from .decisions import Decision, Receipt
from .declarations import Declarations, check_plans
from .keys import Subject
from .limits import Limit
from .lookout import Lookout
from .page import views as page_views
from .refusal_log import RefusalLog
from .refusals import LimiterUnavailable, RateLimited
from .settings import ENABLED, Settings
from .storage import Counting, Storage
from .storage.guarded import Guarded
from .storage.memory import MemoryStorage
from .storage.process import PerProcess
from .visits import Visit

#: Where an app keeps this, in ``app.extensions``.
EXTENSION = "venuelimit"
#: The attribute of a request object that holds its visit: contexts may be shared, requests are not.
_VISIT = "_venuelimit_visit"


class AppState:
    """One app under one limiter.

    :param owner: the limiter.
    :param apps: all apps the limiter serves.
    :param declared: what the limiter was told.
    """

    def __init__(
        self,
        app: Flask,
        owner: object,
        apps: Iterable[Flask],
        declared: Declarations,
        settings: Settings,
        storage: Storage,
    ) -> None:
        self.app = app
        self.owner = owner
        self.declared = declared
        self.settings = settings
        self.raw_storage = storage
        self.lookout = Lookout(app, apps, declared, settings, storage)
        #: Reads seconds, as storage does where it was given a clock.
        self.clock: Callable[[], float] = getattr(storage, "clock", None) or time.monotonic
        self._guarded: Guarded | None = None
        self.storage = self._in_front_of(storage)
        self.refusal_log = RefusalLog(self.clock)
        #: Told what has been decided, in requests and by hand, where somebody wants to know.
        self.on_decided: Callable[[Sequence[Decision]], None] | None = None
        #: Slots of bodies that nobody closed, for the next request to give back.
        self.dropped: deque[Receipt] = deque()
        self._coverage = Covering(app, declared, owner, settings.limits)
        self._plans_checked = not settings.limits

    @property
    def counting(self) -> bool:
        """Whether limits count now: there is storage, and ``VENUELIMIT_ENABLED`` says so."""
        enabled = self.app.config.get(ENABLED)
        return self.storage.counts and (enabled is None or switch(ENABLED, enabled))

    def refusal(
        self, decision: Decision, message: str | None = None, violated: Sequence[str] = ()
    ) -> RateLimited | LimiterUnavailable:
        """Make the exception of a refusing decision, and tell the signal's receivers.

        :param violated: the names of all limits of the point that refused.
        """
        self.tell_refused(decision)
        jitter = self.settings.retry_jitter
        if decision.receipt is not None and decision.receipt.pause is not None:
            return LimiterUnavailable(decision.receipt.pause, decision, jitter)
        return RateLimited(decision, jitter, message, violated)

    def tell_refused(self, decision: Decision) -> None:
        """Tell the log and the signal's receivers that a limit refused, or would have."""
        self.refusal_log.refused(decision)
        signals.limit_refused.send(self.app, decision=decision)

    def check_plans(self) -> None:
        """Hold ``VENUELIMIT_LIMITS`` against the limits declared by now, until it has been found right.

        :raises ConfigurationError: it names no limit, or one whose numbers are fixed.
        """
        if not self._plans_checked:
            check_plans(self.settings.limits, self.declared)
            self._plans_checked = True

    # -- visits ---------------------------------------------------------------------------------

    def visit(self, request: Request) -> Visit:
        """The visit of a request, begun where it has none yet."""
        visit = self.known_visit(request)
        if visit is None:
            visit = Visit(self, request, self._coverage.of(request))
            setattr(request, _VISIT, visit)
            if not self.settings.proxies.any:
                self.lookout.overlooked_proxy(request)
            if not visit.coverage.exempt and (self._comes_from_exempt(request) or self._is_exempt(visit)):
                visit.coverage = self._coverage.nothing(request)
        return visit

    def show_page(self, request: Request) -> BaseResponse | None:
        """Answer somebody at the limit page; no limit touches the request."""
        visit = Visit(self, request, self._coverage.nothing(request))
        setattr(request, _VISIT, visit)
        answer = page_views.respond(request, self.settings)
        visit.shows_page = answer is not None and answer.mimetype == "text/html"
        return answer

    def known_visit(self, request: Request) -> Visit | None:
        """The visit of a request, if it has one."""
        return getattr(request, _VISIT, None)

    def detached_visit(self) -> Visit:
        """A visit outside a request."""
        return Visit(self, None, Coverage(NO_REQUEST.kind, plans=self.settings.limits))

    def methods(self) -> frozenset[str]:
        """The request methods there can be in this app."""
        return self._coverage.methods()

    def _comes_from_exempt(self, request: Request) -> bool:
        """Whether the client's network is exempt; a header that nobody vouches for must not make it so."""
        networks = self.settings.exempt_networks
        if not networks:
            return False
        client = self.settings.proxies.certain(request.environ, request.remote_addr)
        return client is not None and lies_in(client, networks)

    def _is_exempt(self, visit: Visit) -> bool:
        """Whether one of the app's own predicates exempts the request."""
        return any(
            visit.who.holds(f"exempt_if {predicate!r}", predicate)
            for predicate in self.declared.exempt_predicates
        )

    # -- by hand --------------------------------------------------------------------------------

    def subject_by_hand(self, limit: Limit, visit: Visit, given: object) -> Subject:
        """Whose bucket a call by hand is about.

        :raises ValueError: ``given`` is of no usable type.
        """
        if given is None:
            return visit.who.subject(limit.terms.key)
        try:
            subject = limit.terms.key.subject_given(given)
        except TypeError as error:
            raise ValueError(f"subject= is {type(given).__name__}: {error}") from None
        return visit.who.in_its_bucket(subject) if subject else visit.who.subject(limit.terms.key)

    # -- storage --------------------------------------------------------------------------------

    def _in_front_of(self, storage: Storage) -> Counting:
        """What limits ask in place of the store itself."""
        if isinstance(storage, MemoryStorage):
            # it cannot fail, and is this process's own: nothing has to stand in front of it
            return storage
        here = MemoryStorage(clock=self.clock)
        self._guarded = Guarded(storage, here, self._storage_failed, self._storage_recovered, self.clock)
        return PerProcess(self._guarded, here)

    @property
    def storage_fails(self) -> bool:
        """Whether the store is not asked at present, because it failed."""
        return self._guarded is not None and self._guarded.breaker.open

    def watch_storage(self, watching: Callable[[Storage], Storage]) -> None:
        """Put something between whoever asks the store and the store itself, to watch its calls."""
        if self._guarded is None:
            self.storage = watching(self.raw_storage)
        else:
            self._guarded.storage = watching(self._guarded.storage)

    def _storage_failed(self, error: Exception) -> None:
        signals.storage_failed.send(self.app, error=error)

    def _storage_recovered(self) -> None:
        signals.storage_recovered.send(self.app)

    def capacity_reached(self) -> None:
        """Tell that a bounded store is full."""
        signals.capacity_reached.send(self.app, storage=self.raw_storage)


def current_request() -> Request:
    """The request at hand itself: each look through Flask's proxy costs as much as a hash."""
    return flask_request._get_current_object()  # type: ignore[attr-defined, no-any-return]


def state_of(app: Any) -> AppState | None:
    """What an app keeps for its limiter, or None where it has none."""
    state = app.extensions.get(EXTENSION)
    return state if isinstance(state, AppState) else None

"""All that one app keeps for its limiter: one object in ``app.extensions["venuelimit"]``.

Nothing that was read from an app's config ever stands on the VenueLimit: a second app would then run
with the first one's settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, Request
from flask import request as flask_request
from flask.globals import request_ctx
from werkzeug.wrappers import Response as BaseResponse

from . import signals
from .addresses import lies_in
from .asking import NO_REQUEST, Asker
from .charging import Till
from .coverage import Coverage
from .covering import Covering
from .declarations import Declarations, check_plans
from .errors import ConfigurationError
from .lookout import Lookout
from .page import views as page_views
from .settings import Settings
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
        # as storage does where it was given a clock
        clock: Callable[[], float] = getattr(storage, "clock", None) or time.monotonic
        self._guarded: Guarded | None = None
        self.till = Till(app, settings, self._in_front_of(storage, clock), clock)
        self._coverage = Covering(app, declared, owner, settings.limits)
        self._plans_checked = not settings.limits

    @property
    def storage(self) -> Counting:
        """What limits ask: the store, or what stands in front of it."""
        return self.till.storage

    @property
    def counting(self) -> bool:
        """Whether limits count now: there is storage, and ``VENUELIMIT_ENABLED`` says so."""
        return self.till.counting

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
        visit: Visit | None = getattr(request, _VISIT, None)
        if visit is None:
            visit = self._visit(request, self._coverage.of(request))
            visit.context = current_context()
            setattr(request, _VISIT, visit)
            if not self.settings.proxies.any:
                self.lookout.overlooked_proxy(request)
            if not visit.coverage.exempt and self._is_exempt(request, visit):
                visit.coverage = self._coverage.nothing(request)
        return visit

    def show_page(self, request: Request) -> BaseResponse | None:
        """Answer somebody at the limit page; no limit touches the request."""
        visit = self._visit(request, self._coverage.nothing(request))
        setattr(request, _VISIT, visit)
        answer = page_views.respond(request, self.settings)
        visit.shows_page = answer is not None and answer.mimetype == "text/html"
        return answer

    def detached_visit(self) -> Visit:
        """A visit outside a request."""
        return self._visit(None, Coverage(NO_REQUEST.kind, plans=self.settings.limits))

    def methods(self) -> frozenset[str]:
        """The request methods there can be in this app."""
        return self._coverage.methods()

    def _visit(self, request: Request | None, coverage: Coverage) -> Visit:
        who = Asker(self.app, self.declared, self.settings, self.lookout, request)
        return Visit(self.till, who, self.lookout, coverage, None if request is None else request.method)

    def _is_exempt(self, request: Request, visit: Visit) -> bool:
        """Whether the client's network is exempt, or one of the app's own predicates exempts the request."""
        networks = self.settings.exempt_networks
        if networks:
            # a header that nobody vouches for must not make anybody exempt
            client = self.settings.proxies.certain(request.environ, request.remote_addr)
            if client is not None and lies_in(client, networks):
                return True
        for predicate in self.declared.exempt_predicates:
            if visit.who.holds(f"exempt_if {predicate!r}", predicate):
                return True
        return False

    # -- storage --------------------------------------------------------------------------------

    def _in_front_of(self, storage: Storage, clock: Callable[[], float]) -> Counting:
        """What limits ask in place of the store itself."""
        if isinstance(storage, MemoryStorage):
            # it cannot fail, and is this process's own: nothing has to stand in front of it
            return storage
        here = MemoryStorage(clock=clock)
        self._guarded = Guarded(storage, here, self._storage_failed, self._storage_recovered, clock)
        return PerProcess(self._guarded, here)

    @property
    def storage_fails(self) -> bool:
        """Whether the store is not asked at present, because it failed."""
        return self._guarded is not None and self._guarded.breaker.open

    def watch_storage(self, watching: Callable[[Storage], Storage]) -> None:
        """Put something between whoever asks the store and the store itself, to watch its calls."""
        if self._guarded is None:
            self.till.storage = watching(self.raw_storage)
        else:
            self._guarded.storage = watching(self._guarded.storage)

    def _storage_failed(self, error: Exception) -> None:
        signals.storage_failed.send(self.app, error=error)

    def _storage_recovered(self) -> None:
        signals.storage_recovered.send(self.app)

    def capacity_reached(self) -> None:
        """Tell that a bounded store is full."""
        signals.tell(signals.capacity_reached, self.app, storage=self.raw_storage)


def current_request() -> Request:
    """The request at hand itself: each look through Flask's proxy costs as much as a hash."""
    return flask_request._get_current_object()  # type: ignore[attr-defined, no-any-return]


def current_context() -> int:
    """What tells the request's own context from copies of it, which Flask makes for other threads."""
    # an identity is enough while the context lives, and a reference would be a cycle
    return id(request_ctx._get_current_object())  # type: ignore[attr-defined]


def known_visit() -> Visit | None:
    """The visit of the request at hand, if it has one."""
    return getattr(flask_request._get_current_object(), _VISIT, None)  # type: ignore[attr-defined]


def state_of(app: Any) -> AppState | None:
    """What an app keeps for its limiter, or None where it has none."""
    state = app.extensions.get(EXTENSION)
    return state if isinstance(state, AppState) else None


def require_state(app: Any) -> AppState:
    """What an app keeps for its limiter.

    :raises ConfigurationError: it has none.
    """
    state = state_of(app)
    if state is None:
        raise ConfigurationError(f"the app {app.name!r} has no VenueLimit. Call init_app on it.")
    return state

"""Metrics for Prometheus: what limits decide, how storage does, and whether limits count at all.

Needs the extra: ``pip install 'flask-venuelimit[prometheus]'``. All of it is counted in this process as it
happens; nothing is asked of storage for it, and no label holds a key, a path or anything a client sends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from flask import Flask, request_started

from .callbacks import logger
from .decisions import Charge, Decision, Receipt, pause_of
from .errors import ConfigurationError
from .signals import storage_failed, storage_recovered
from .state import AppState, state_of
from .storage import Storage

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram, values
except ImportError as error:
    raise ImportError(
        "flask_venuelimit.prometheus needs prometheus-client, which is not installed. Install the extra: "
        "pip install 'flask-venuelimit[prometheus]'",
        name="prometheus_client",
    ) from error

if TYPE_CHECKING:
    from .extension import VenueLimit

#: What storage is asked, as the label ``call`` says it.
CALLS = ("decide", "peek", "refund", "renew", "reset")
#: What may become of a decision, as the label ``outcome`` says it.
OUTCOMES = ("admitted", "refused", "shadow_refused", "uncounted", "denied")
#: Seconds, from what a call in this process takes to what the time-outs allow.
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

_A = TypeVar("_A")
_T = TypeVar("_T")


class Metrics:
    """Counts what a limiter does, for Prometheus.

    ``Metrics(limiter, app)`` does it all; for apps that a factory makes, ``metrics = Metrics(limiter)`` and
    ``metrics.init_app(app)`` once the limiter serves the app. Limiters and apps that share a registry are
    counted together. How the registry is scraped is not decided here.

    :param app: observed at once where given.
    :param registry: where the metrics are registered, by default prometheus_client's own.
    :raises ConfigurationError: see :meth:`init_app`.
    """

    def __init__(
        self, limiter: VenueLimit, app: Flask | None = None, *, registry: CollectorRegistry = REGISTRY
    ) -> None:
        self._limiter = limiter
        self._families = _families_of(registry)
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Count from now on what the limiter does in an app.

        :raises ConfigurationError: the limiter does not serve the app, or it is observed already.
        """
        state = state_of(app)
        if state is None or state.owner is not self._limiter:
            raise ConfigurationError(
                f"the app {app.name!r} is not served by the VenueLimit that Metrics was given. Call "
                "limiter.init_app(app) first."
            )
        if state.till.on_decided is not None:
            raise ConfigurationError(
                f"the app {app.name!r} has Metrics already, and would be counted twice. Call init_app once."
            )
        self._families.observe(state)


class _Families:
    """The metrics of one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decisions = Counter(
            "venuelimit_decisions", "Decisions of limits.", ("limit", "outcome"), registry=registry
        )
        seconds = Histogram(
            "venuelimit_storage_seconds",
            "Seconds that calls of the storage took, failed ones included.",
            ("call",),
            registry=registry,
            buckets=_BUCKETS,
        )
        self._failures = Counter(
            "venuelimit_storage_failures",
            "Calls of the storage that failed, by the class of the error.",
            ("error",),
            registry=registry,
        )
        self._failing = Gauge(
            "venuelimit_storage_failing",
            "Whether the storage is not asked at present, because it failed.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._counting = Gauge(
            "venuelimit_counting",
            "Whether limits count: there is storage, and limiting is on.",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self._seconds = {call: seconds.labels(call) for call in CALLS}
        # looked up here: labels() makes texts of its arguments and takes a lock each time
        self._children: dict[tuple[str, str], Counter] = {}
        self._states: WeakSet[AppState] = WeakSet()
        self._complained = False
        #: Whether a scrape reads files that each process writes, and so asks nobody here.
        self._written = values.ValueClass is not values.MutexValue
        if not self._written:
            self._failing.set_function(self._fails)
            self._counting.set_function(self._counts)

    def observe(self, state: AppState) -> None:
        """Count what is decided in an app, and how its storage does."""
        self._states.add(state)
        state.till.on_decided = self.decided
        state.watch_storage(lambda storage: _Watched(storage, self))
        if self._written:
            self.refresh()
            # before anything is decided: a forked process begins with zeros
            for signal in (request_started, storage_failed, storage_recovered):
                signal.connect(self.refresh, sender=state.app)

    def decided(self, decisions: Sequence[Decision]) -> None:
        """Count decisions."""
        self._quietly(self._count, decisions)

    def took(self, call: str, seconds: float) -> None:
        """Note how long a call of the storage took."""
        self._quietly(self._seconds[call].observe, seconds)

    def failed(self, error: Exception) -> None:
        """Count a call of the storage that failed. There are as many classes as the client has errors."""
        self._quietly(lambda: self._failures.labels(type(error).__name__).inc())

    def refresh(self, *_sender: object, **_told: object) -> None:
        """Write down what a scrape cannot ask for."""
        self._quietly(lambda: self._failing.set(self._fails()))
        self._quietly(lambda: self._counting.set(self._counts()))

    def _count(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            labels = decision.limit, _outcome(decision)
            child = self._children.get(labels)
            if child is None:
                child = self._children[labels] = self._decisions.labels(*labels)
            child.inc()

    def _fails(self) -> bool:
        return any(state.storage_fails for state in self._states)

    def _counts(self) -> bool:
        return bool(self._states) and all(state.counting for state in self._states)

    def _quietly(self, observe: Callable[..., object], *about: Any) -> None:
        """Observe; where that fails, as on a full disk, say so once: it must not fail a request."""
        try:
            observe(*about)
        except Exception:  # noqa: BLE001 - logged, but once: it may be so with every request
            if not self._complained:
                self._complained = True
                logger.exception("metrics could not be counted; this is told once")


class _Watched:
    """A store whose calls are timed, and whose failures are counted."""

    def __init__(self, storage: Storage, families: _Families) -> None:
        self._storage = storage
        self._families = families
        self.counts = storage.counts
        self.failures = storage.failures

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge."""
        return self._watched("decide", self._storage.decide, charges)

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Look."""
        return self._watched("peek", self._storage.peek, charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back."""
        self._watched("refund", self._storage.refund, receipts)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Renew slots."""
        self._watched("renew", self._storage.renew, receipts)

    def reset(self, keys: Sequence[str]) -> None:
        """Forget counters."""
        self._watched("reset", self._storage.reset, keys)

    def _watched(self, name: str, call: Callable[[_A], _T], argument: _A) -> _T:
        began = time.perf_counter()
        try:
            return call(argument)
        except self.failures as error:
            self._families.failed(error)
            raise
        finally:
            self._families.took(name, time.perf_counter() - began)


#: The metrics of each registry, which does not take the same name twice.
_known: WeakKeyDictionary[CollectorRegistry, _Families] = WeakKeyDictionary()


def _families_of(registry: CollectorRegistry) -> _Families:
    families = _known.get(registry)
    if families is None:
        families = _known[registry] = _Families(registry)
    return families


def _outcome(decision: Decision) -> str:
    if not decision.allowed:
        if decision.shadow:
            return "shadow_refused"
        return "refused" if pause_of(decision) is None else "denied"
    return "uncounted" if decision.receipt is None else "admitted"

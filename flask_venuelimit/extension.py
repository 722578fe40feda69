"""VenueLimit: what Flask sees. Limits are declared here, and an app is given them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar, overload

from flask import Flask, Response, has_request_context

from .callbacks import accept, logger
from .commands import venuelimit
from .decisions import Decision
from .declarations import Declarations, Loader
from .diagnosis import Finding, diagnose
from .errors import ConfigurationError
from .hooks import Hooks
from .keys import Key, Stage, as_key, by_identity, by_ip
from .limits import Limit, Target
from .manifest import manifest
from .overview import Standing, forget, standings
from .page import views as page_views
from .policies import Policy
from .runtime import Runtime
from .settings import Settings, read_settings, unknown_settings
from .state import EXTENSION, AppState, current_request
from .storage import Storage, as_storage, open_storage
from .storage.memory import MemoryStorage
from .subjects import Subject
from .terms import Cost, Terms, as_methods, as_plan
from .visits import succeeded

Loads = TypeVar("Loads", bound=Callable[[], Any])
PolicyLike = str | Policy | Sequence[str | Policy] | Callable[[], Any]
KeyLike = Key | Callable[[], Any]


class VenueLimit:
    """Rate limits for a Flask app whose users share addresses.

    :param app: initialised at once where given; else call :meth:`init_app`.
    :param storage: a :class:`MemoryStorage`, a :class:`RedisStorage` or a redis-py client; outranks
        ``VENUELIMIT_STORAGE_URI``.
    """

    def __init__(self, app: Flask | None = None, *, storage: Any = None) -> None:
        self._declared = Declarations()
        self._runtime = Runtime(self, self._declared)
        self.storage = storage
        if app is not None:
            self.init_app(app)

    @property
    def storage(self) -> Storage | None:
        """What counts in place of ``VENUELIMIT_STORAGE_URI``, or None.

        Set it before :meth:`init_app`: a test gives a limiter that a module declares a store whose clock it
        moves. A redis-py client is taken as a :class:`RedisStorage`.

        :raises ConfigurationError: it is neither a store nor a client.
        """
        return self._storage

    @storage.setter
    def storage(self, given: Any) -> None:
        """Take a store or a redis-py client."""
        self._storage = None if given is None else as_storage(given)

    def init_app(self, app: Flask) -> None:
        """Put this limiter on an app.

        :raises ConfigurationError: the app has a limiter already, or a setting cannot be kept.
        """
        if EXTENSION in app.extensions:
            raise ConfigurationError(
                f"the app {app.name!r} has a VenueLimit already. An app has one limiter: call init_app once, "
                "and declare every limit on that one."
            )

        settings = read_settings(app.config, storage_given=self._storage is not None)
        for message in unknown_settings(app.config):
            logger.warning(message)

        storage = self._storage
        if storage is None:
            storage = open_storage(settings.storage_uri, settings.storage_options)
        state = AppState(app, self, self._runtime.apps, self._declared, settings, storage)
        if isinstance(storage, MemoryStorage):
            storage.capacity_listeners.append(state.capacity_reached)
        if not storage.counts:
            state.lookout.no_storage()

        Hooks(state).install()
        app.cli.add_command(venuelimit)
        app.extensions[EXTENSION] = state
        self._runtime.apps.add(app)

    # -- declaring ------------------------------------------------------------------------------

    def limit(
        self,
        policy: PolicyLike,
        *,
        name: str | None = None,
        key: KeyLike = by_identity,
        per_address: PolicyLike | None = None,
        cost: Cost = 1,
        methods: Iterable[str] | None = None,
        per_method: bool = False,
        unless: Callable[[], Any] | None = None,
        on_error: str | None = None,
        shadow: bool = False,
        per_process: bool = False,
        budget: bool = False,
        refund_if: Callable[[Response], Any] | None = None,
        message: str | None = None,
    ) -> Limit:
        """Declare a limit; it covers nothing until it is put somewhere.

        :param policy: a policy, a string such as ``"10/minute"``, a list of these that must all agree, or a
            function that returns any of them at each request (None: not limited).
        :param name: everything that a named limit covers shares one bucket; without, each endpoint has
            its own. Printable ASCII.
        :param key: whose bucket it is; a plain callable is a key decided right before the view.
        :param per_address: the policy where the key knows nobody and the address stands in, sized for a
            building instead of a person. Without it, the same policy.
        :param cost: what a request costs: a whole number, or a function asked at each request.
        :param methods: the methods it covers; GET includes HEAD.
        :param per_method: gives each method a bucket of its own.
        :param unless: skips the limit where it answers true.
        :param on_error: what becomes of requests while storage fails: ``"allow"``, ``"local"`` (counted in
            this process) or ``"deny"``; by default what ``VENUELIMIT_ON_ERROR`` says.
        :param shadow: decides, counts and signals, but never refuses.
        :param per_process: counts in this process, before the shared storage is asked.
        :param budget: guards spending: ``on_error`` is ``"deny"`` unless it is given, and
            ``VENUELIMIT_LIMITS`` may not change its numbers.
        :param refund_if: asked with the final response; true gives the charge back.
        :param message: what a refused caller is told; a text, or one that is translated lazily.
        :raises ValueError: a policy is malformed.
        :raises ConfigurationError: anything else cannot be kept.
        """
        terms = Terms(
            name=name,
            plan=as_plan(policy),
            key=as_key(key),
            per_address=() if per_address is None else as_plan(per_address),
            cost=cost,
            methods=None if methods is None else as_methods(methods),
            per_method=per_method,
            unless=unless,
            on_error=on_error,
            shadow=shadow,
            per_process=per_process,
            budget=budget,
            refund_if=refund_if,
            message=message,
        )
        self._runtime.look_at(terms)
        return self._declared.declare(terms, self._runtime)

    def failures(self, policy: PolicyLike, *, name: str, key: KeyLike = by_ip, **terms: Any) -> Limit:
        """Declare a limit that counts failures only: whatever is answered under 400 gets its charge back.

        The charge comes before the view and the refund after it, so that parallel guesses cannot slip
        through. Takes what :meth:`limit` takes, save ``refund_if``.
        """
        if "refund_if" in terms:
            raise ConfigurationError("failures() sets refund_if itself. Use limit() for a rule of your own.")
        return self.limit(policy, name=name, key=key, refund_if=succeeded, **terms)

    @overload
    def identify_participant(self, load: Loads) -> Loads:
        """Decorate the function itself."""

    @overload
    def identify_participant(self, *, stage: Stage = ...) -> Callable[[Loads], Loads]:
        """Decorate with a stage."""

    def identify_participant(self, load: Any = None, *, stage: Stage = Stage.VIEW) -> Any:
        """Tell who the participant is, instead of ``session["participant_id"]``; a decorator.

        :param stage: when it can be asked.
        """
        return self._identify("participant", load, stage)

    @overload
    def identify_user(self, load: Loads) -> Loads:
        """Decorate the function itself."""

    @overload
    def identify_user(self, *, stage: Stage = ...) -> Callable[[Loads], Loads]:
        """Decorate with a stage."""

    def identify_user(self, load: Any = None, *, stage: Stage = Stage.VIEW) -> Any:
        """Tell who the user is, instead of Flask-Login's session or ``session["user_id"]``; a decorator.

        :param stage: when it can be asked.
        """
        return self._identify("user", load, stage)

    def _identify(self, role: str, load: Any, stage: Stage) -> Any:
        if load is None:
            return lambda load: self._identify(role, load, stage)
        accept(f"the callback that identifies the {role}", load)
        self._declared.identify(Loader(role, load, Stage(stage)))
        return load

    def exempt(self, target: Target) -> Target:
        """Opt a view, a view class or a blueprint out of every limit; works as a decorator."""
        self._declared.exempt(target, self)
        return target

    def exempt_if(self, predicate: Loads) -> Loads:
        """Opt out every request for which ``predicate`` answers true; a decorator. Asked once a request."""
        self._declared.exempt_if(accept("exempt_if", predicate))
        return predicate

    # -- seen from outside ----------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """Describe what the current app limits, as plain data; see :func:`.manifest.manifest`.

        :raises ConfigurationError: ``VENUELIMIT_LIMITS`` does not match the limits, or no app is at hand.
        """
        return manifest(self._runtime.state_at_hand())

    def doctor(self) -> list[Finding]:
        """Find what is wrong with the current app's set-up, what matters most first; nothing is written."""
        return diagnose(self._runtime.state_at_hand(), self._runtime.apps)

    def status(self, subject: Subject, *, limits: Collection[str] = ()) -> list[Standing]:
        """Look how somebody stands with each limit of the current app; nothing is written.

        :param subject: such as ``Subject("user", "42")``; one of kind ``ip`` stands with every limit.
        :param limits: the names of these limits only.
        :raises ValueError: no limit has such a name, or its key never names such a subject.
        """
        return standings(self._runtime.state_at_hand(), subject, limits)

    def reset(self, subject: Subject, *, limits: Collection[str] = ()) -> None:
        """Forget what somebody has used of each limit of the current app; takes what :meth:`status` takes."""
        forget(self._runtime.state_at_hand(), subject, limits)

    # -- in a request ---------------------------------------------------------------------------

    @property
    def decisions(self) -> list[Decision]:
        """What has been decided in the current request, in order; empty outside one."""
        visit = self._runtime.visit()
        return [] if visit is None else [entry.decision for entry in visit.entries]

    def mark_failure(self) -> None:
        """Say that this request failed, whatever its status: failure limits keep their charge."""
        self._mark(False)

    def mark_success(self) -> None:
        """Say that this request succeeded, whatever its status: failure limits give their charge back."""
        self._mark(True)

    def _mark(self, success: bool) -> None:
        visit = self._runtime.visit()
        if visit is not None:
            visit.marked = success

    def client_address(self) -> str | None:
        """The client's address, normalised: ``"198.51.100.7"``, ``"2001:db8:0:1200::/56"``, or None."""
        visit = self._runtime.visit()
        return None if visit is None else visit.who.address()

    def robots_txt(self) -> str:
        """The lines for robots.txt that keep crawlers off the limit page of the current app."""
        state = self._runtime.state()
        settings = state.settings if state else Settings()
        where = (
            page_views.page_url(current_request(), settings) if has_request_context() else settings.page_path
        )
        return page_views.robots_txt(where)

"""What an app's developers are warned of, once an app: what is missing, misplaced or overlooked."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Flask, Request

from .callbacks import logger
from .coverage import idle
from .declarations import Declarations
from .keys import Stage
from .limits import Limit
from .settings import Settings
from .storage import Storage
from .storage.memory import MemoryStorage


class Lookout:
    """Warns an app's developers of each thing once.

    :param apps: all apps the limiter serves.
    :param declared: what the limiter was told.
    :param storage: the store itself.
    """

    def __init__(
        self,
        app: Flask,
        apps: Iterable[Flask],
        declared: Declarations,
        settings: Settings,
        storage: Storage,
    ) -> None:
        self._app = app
        self._apps = apps
        self._declared = declared
        self._settings = settings
        self._storage = storage
        self._warned: set[object] = set()

    def no_storage(self) -> None:
        """Say, as the app starts, that nobody counts, and what that leaves open."""
        open_ = [limit.terms for limit in self._declared.limits if limit.terms.budget]
        budgets = ", ".join(sorted(repr(terms.name or terms.spelling) for terms in open_))
        self._once(
            "no storage",
            f"limiting is off in the app {self._app.name!r}: no storage is set, so every limit admits every "
            f"request{f', and these budgets are open: {budgets}' if budgets else ''}. Set "
            "VENUELIMIT_STORAGE_URI to turn it on, for instance to redis://localhost:6379, or to memory:// "
            "for one process.",
        )

    def overlooked_proxy(self, request: Request) -> None:
        """Say that a proxy seems to stand in front, so that everybody shares its address."""
        if "overlooked" in self._warned:
            return
        header = self._settings.proxies.overlooked(request.environ)
        if header is not None:
            self._once(
                "overlooked",
                f"a request came from a private or local address with a {header} header, and no proxy is "
                "trusted: if a proxy stands there, everybody behind it shares its address. Set "
                "VENUELIMIT_TRUSTED_PROXIES to where it connects from (and VENUELIMIT_FORWARDED_HEADER, if "
                "that is not X-Forwarded-For), or use werkzeug's ProxyFix.",
            )

    def no_address(self) -> None:
        """Say that a connection had no usable address."""
        self._once(
            "no-address",
            "a request came without a usable peer address; all such requests share one bucket. Behind a "
            "proxy on a unix socket, have it name the client in X-Forwarded-For, and set "
            "VENUELIMIT_TRUSTED_PROXIES to unix.",
        )

    def hidden(self, limit: Limit, name: str, endpoint: str) -> None:
        """Say that a decorator hides a limit that could be decided earlier, if it could."""
        if limit.terms.key.stage_for(self._declared) is Stage.FRONT:
            self._once(
                ("hidden", limit),
                f"the limit {name!r} could be decided before the view {endpoint!r} and its hooks, but a "
                "decorator without functools.wraps hides it, so it is decided where it stands. Use "
                "functools.wraps in that decorator.",
            )

    def first_request(self, request: Request) -> None:
        """Warn, at the end of the first request, of what only a running app shows."""
        self._idle_limits()
        self._several_processes(request)

    def _idle_limits(self) -> None:
        """Say which limits cover nothing: their decorator may stand above ``@app.route``."""
        for limit in idle(self._apps, self._declared):
            where = "put it on a view or a blueprint, or call everywhere(), unless it is asked by hand later"
            if limit.decorates:
                names = ", ".join(map(repr, limit.decorates))
                where = f"it decorates {names}, but no route leads there; put it below @app.route"
            self._once(("idle", limit), f"the limit {limit.name or limit!r} covers nothing: {where}.")

    def _several_processes(self, request: Request) -> None:
        """Say that counts in one process's memory are not the other workers' (PEP 3333 tells of them)."""
        if isinstance(self._storage, MemoryStorage) and request.environ.get("wsgi.multiprocess"):
            self._once(
                "several processes",
                "memory:// counts in one process, and the server runs several: each client gets every limit "
                "once a worker. Set VENUELIMIT_STORAGE_URI to a Redis, or run one process.",
            )

    def _once(self, about: object, message: str) -> None:
        """Log a WARNING, once an app for each thing it is about."""
        if about not in self._warned:
            self._warned.add(about)
            logger.warning(message)

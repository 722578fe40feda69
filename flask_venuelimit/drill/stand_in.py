"""An app that stands in for another one: it refuses as that one does, and runs no view and no hook of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from flask import Flask

from ..charging import Till
from ..decisions import Decision
from ..declarations import Declarations
from ..hooks import Hooks
from ..limits import Limit
from ..proxies import Proxies
from ..runtime import Runtime
from ..settings import ENABLED, Settings
from ..state import EXTENSION, AppState
from ..storage import Storage
from .lanes import Lane

PATH = "/venuelimit-drill"
_ENDPOINT = "venuelimit-drill"
#: What an app renders a refusal with.
_BORROWED = (
    "aborter",
    "jinja_env",
    "json",
    "request_class",
    "response_class",
    "template_context_processors",
    "url_build_error_handlers",
    "url_default_functions",
)
#: What is not as in the app: any host will do, limits count, and what an error handler raises is seen.
_CONFIG = {
    "SERVER_NAME": None,
    "TRUSTED_HOSTS": None,
    "APPLICATION_ROOT": "/",
    "SESSION_COOKIE_DOMAIN": None,
    "PROPAGATE_EXCEPTIONS": True,
    ENABLED: True,
}


class _Quiet(Till):
    """Charges, and tells nobody of refusals."""

    def tell_refused(self, decision: Decision) -> None:
        """Tell neither the log nor those who listen to the signal."""


class _Unheard(AppState):
    """What a stand-in keeps: nobody outside hears of it."""

    def __init__(self, *kept: Any) -> None:
        super().__init__(*kept)
        self.till = _Quiet(self.app, self.settings, self.till.storage, self.till.clock)

    def _storage_failed(self, error: Exception) -> None:
        """Tell nobody; the drill says so itself."""

    def _storage_recovered(self) -> None:
        """Tell nobody."""


def stand_in(real: AppState, lane: Lane, storage: Storage) -> tuple[Flask, Limit]:
    """Make an app with one view that answers ``lane.status`` at :data:`PATH`, and one limit on it.

    Error handlers, templates, URLs, config and extensions are the app's own; its views, hooks, teardown
    functions and WSGI middleware are not there. Prefix and salt of the keys are the stand-in's.
    """
    app = _bare(real.app)
    declared, owner = Declarations(), object()
    runtime = Runtime(owner, declared)
    state = _Unheard(app, owner, runtime.apps, declared, _settings(real.settings), storage)
    Hooks(state).install()
    app.extensions = {**real.app.extensions, EXTENSION: state}
    runtime.apps.add(app)
    limit = declared.declare(lane.terms, runtime)

    def view(**_: Any) -> tuple[str, int]:
        return "", lane.status

    _borrow(real.app, app, view)
    host: dict[str, Any] = {"host": "<venuelimit_host>"} if app.url_map.host_matching else {}
    blueprint = lane.endpoint.rpartition(".")[0]
    endpoint = f"{blueprint}.{_ENDPOINT}" if blueprint else _ENDPOINT
    app.add_url_rule(PATH, endpoint, limit(view), **host)
    return app, limit


def _settings(real: Settings) -> Settings:
    return replace(
        real,
        salt=secrets.token_bytes(32),
        # below the app's own prefix: a server may let it write there only
        key_prefix=f"{real.key_prefix}:drill-{secrets.token_hex(4)}",
        proxies=Proxies(),
        exempt_networks=(),
        limits={},
    )


def _bare(real: Flask) -> Flask:
    """An app of the same class that has nothing yet."""
    app = type(real).__new__(type(real))
    # not by its own constructor, which may take anything, and register anything
    Flask.__init__(
        app,
        real.import_name,
        static_folder=None,
        template_folder=None,
        host_matching=real.url_map.host_matching,
        instance_path=real.instance_path,
        root_path=real.root_path,
    )
    app.config.update(real.config | _CONFIG)
    app.test_client_class = None
    return app


def _borrow(real: Flask, app: Flask, view: Callable[..., Any]) -> None:
    """Give an app what the real one renders with, all its endpoints leading to ``view``."""
    for name in _BORROWED:
        vars(app)[name] = getattr(real, name)
    for name, value in vars(real).items():
        # what extensions put there; what stands in a method's place would lead to the real app
        if not hasattr(type(real), name):
            vars(app).setdefault(name, value)
    for scope, code, kind, handler in _handlers(real):
        app.error_handler_spec[scope][code].setdefault(kind, handler)
    app.blueprints = real.blueprints | app.blueprints
    app.url_map.converters = real.url_map.converters
    ours = set(app.view_functions)
    for rule in real.url_map.iter_rules():
        if rule.endpoint not in ours:
            app.url_map.add(rule.empty())
            app.view_functions[rule.endpoint] = view


def _handlers(app: Flask) -> Iterator[tuple[str | None, int | None, type[Exception], Any]]:
    for scope, by_code in app.error_handler_spec.items():
        for code, by_kind in by_code.items():
            for kind, handler in by_kind.items():
                yield scope, code, kind, handler

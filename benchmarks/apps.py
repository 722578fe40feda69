"""Apps to measure, and how a request is sent to one without a server."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from flask import Flask
from werkzeug.test import EnvironBuilder


def bare() -> Flask:
    """Make an app with one view and nothing else."""
    app = Flask(__name__)
    app.secret_key = "benchmark"
    app.add_url_rule("/", "index", lambda: "ok")
    return app


def call(app: Flask) -> Callable[[], None]:
    """Make a function that sends one request through the WSGI callable."""
    environ = EnvironBuilder(path="/", environ_base={"REMOTE_ADDR": "198.51.100.7"}).get_environ()

    def request() -> None:
        response: Iterable[bytes] = app.wsgi_app(dict(environ), lambda *_: _nothing)
        for _ in response:
            pass
        close = getattr(response, "close", None)
        if close is not None:
            close()

    return request


def _nothing(_: bytes) -> None:
    """Take what a WSGI app writes."""

"""A pub quiz: an example of an app whose guests all come from one address.

``flask --app demo_app run`` starts it; see README.md beside this file, and :mod:`demo_app.limits` for
what it is there to show.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from flask import Flask, Response, render_template
from werkzeug.exceptions import HTTPException

from . import commands, db, desk, hosts, play
from .limits import limiter


def create_app(config: Mapping[str, Any] | None = None, *, instance_path: str | None = None) -> Flask:
    """Make the app.

    :param config: settings that outrank the environment's ``FLASK_...`` ones.
    :param instance_path: the folder, absolute, for the database and the secret key; Flask's own choice
        by default.
    """
    app = Flask(__name__, template_folder="../templates", instance_path=instance_path)
    _configure(app, config or {})
    db.init_app(app)
    hosts.init_app(app)
    limiter.init_app(app)
    for module in (hosts, desk, play, commands):
        app.register_blueprint(module.bp)
    app.register_error_handler(HTTPException, _explain)
    app.after_request(_keep_to_ourselves)
    return app


def _configure(app: Flask, config: Mapping[str, Any]) -> None:
    folder = Path(app.instance_path)
    folder.mkdir(parents=True, exist_ok=True)
    app.config.from_mapping(
        DATABASE=folder / "quiz.sqlite3",
        MAX_CONTENT_LENGTH=16 * 1024,
        PERMANENT_SESSION_LIFETIME=timedelta(hours=12),
        SESSION_COOKIE_NAME="quiz",
        # Browsers leave a Lax cookie out of a POST that another site caused. Here nothing is changed but
        # by POST, so no other site can act in a guest's name, and the forms need no token.
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_REFRESH_EACH_REQUEST=False,
    )
    app.config.from_prefixed_env()
    app.config.update(config)
    # from_prefixed_env makes a number of a key that is all digits
    app.config["SECRET_KEY"] = str(app.config["SECRET_KEY"] or _kept_secret(folder))


def _kept_secret(folder: Path) -> str:
    """The secret key of this instance, drawn at its first start: sessions outlive a restart."""
    path = folder / "secret_key"
    if not path.exists():
        drawn = folder / f"secret_key.{os.getpid()}"
        drawn.touch(mode=0o600)
        drawn.write_text(secrets.token_hex())
        try:
            # fails if the file is there: of several workers starting at once, one decides for all
            os.link(drawn, path)
        except FileExistsError:
            pass
        drawn.unlink()
    return path.read_text()


def _explain(error: HTTPException) -> Response:
    """Show an HTTP error as a page of the quiz, with the error's own status and headers."""
    response = Response(render_template("error.html", error=error), error.code or 500)
    for name, value in error.get_headers():
        if name.lower() != "content-type":
            response.headers.add(name, value)
    return response


def _keep_to_ourselves(response: Response) -> Response:
    """Nothing is loaded from elsewhere, nothing is framed, and no script runs but our own files."""
    response.headers.setdefault(
        "Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    return response

"""The ways apps know who is asking: Flask-Login, JSON Web Tokens, API keys in a database, tenants."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
from flask import Flask, Response, abort, g, request, session
from flask.testing import FlaskClient
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user

from flask_venuelimit import Key, VenueLimit

#: What the app signs its tokens with, and what somebody else does.
SECRET, OTHER_SECRET = "k" * 32, "x" * 32


class User(UserMixin):  # type: ignore[misc]
    """Somebody whom Flask-Login knows."""

    def __init__(self, name: str) -> None:
        self.id = name


def use_flask_login(app: Flask) -> None:
    """Let people log in at ``/login/NAME``, be remembered with ``?remember=1``, ask ``/me``, and log out."""
    manager = LoginManager(app)
    manager.user_loader(User)

    @app.get("/login/<name>")
    def login(name: str) -> str:
        login_user(User(name), remember="remember" in request.args)
        return "welcome"

    @app.get("/me")
    def me() -> str:
        return str(current_name())

    @app.get("/logout")
    def logout() -> str:
        logout_user()
        return "bye"


def current_name() -> Any:
    """Who Flask-Login says is asking, by the session or by the remember cookie."""
    return current_user.get_id()


def use_plain_sessions(app: Flask) -> None:
    """Let people say at ``/as?user_id=...`` what their session holds."""

    @app.get("/as")
    def become() -> str:
        session.update(request.args.items())
        return "welcome"


def bearer(token: str) -> dict[str, str]:
    """The header that carries a token."""
    return {"Authorization": f"Bearer {token}"}


def token(name: str, secret: str = SECRET, **claims: Any) -> dict[str, str]:
    """The header with a token that is signed for somebody."""
    return bearer(jwt.encode({"sub": name, **claims}, secret, "HS256"))


def claimed() -> str:
    """What follows ``Bearer``, unchecked."""
    return request.headers.get("Authorization", "").removeprefix("Bearer ")


def checked_subject() -> str | None:
    """Whom a token names, its signature checked; None where it is missing or false."""
    try:
        claims = jwt.decode(claimed(), SECRET, ["HS256"])
    except jwt.InvalidTokenError:
        return None
    return str(claims["sub"])


def use_tokens(app: Flask) -> None:
    """Turn away whoever has no good token, before any view."""

    @app.before_request
    def authenticate() -> None:
        g.user = checked_subject() or abort(401)


class ApiKeys:
    """API keys in a database, by their digests: it counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.asked = 0
        self._path = folder / "keys.sqlite3"
        with sqlite3.connect(self._path) as database:
            database.execute("CREATE TABLE keys (digest TEXT PRIMARY KEY, owner INTEGER)")
        database.close()

    def add(self, key: str, owner: int) -> None:
        """Give somebody a key."""
        with sqlite3.connect(self._path) as database:
            database.execute("INSERT INTO keys VALUES (?, ?)", (self._digest(key), owner))
        database.close()

    def owner(self, key: str) -> int | None:
        """Whose key it is, or None."""
        self.asked += 1
        database = sqlite3.connect(self._path)
        row = database.execute("SELECT owner FROM keys WHERE digest = ?", (self._digest(key),)).fetchone()
        database.close()
        return row[0] if row else None

    @staticmethod
    def _digest(key: str) -> str:
        return hashlib.sha256(key.encode()).hexdigest()


def use_api_keys(app: Flask, keys: ApiKeys) -> None:
    """Look the key in ``X-API-Key`` up, and turn away whoever has none that is known."""

    @app.before_request
    def authenticate() -> None:
        g.owner = keys.owner(request.headers.get("X-API-Key", ""))
        if g.owner is None:
            abort(401)


def without(client: FlaskClient, cookie: str) -> FlaskClient:
    """The client when its browser has dropped a cookie."""
    client.delete_cookie(cookie)
    return client


def limit_home(
    app: Flask, limiter: VenueLimit, key: Key, policy: str = "2/minute", **terms: Any
) -> Callable[[], str]:
    """Put a limit on ``/``, and return what tells the kind of whom it charged last."""
    limit = limiter.limit(policy, name="it", key=key, **terms)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    seen: list[str] = []

    @app.after_request
    def note(response: Response) -> Response:
        seen.extend(each.subject.partition(":")[0] for each in limiter.decisions if each.limit == "it")
        return response

    return lambda: seen[-1]

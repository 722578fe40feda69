"""Hosts sign up, log in and log out."""

from __future__ import annotations

from functools import cache

from flask import Blueprint, Flask, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import LoginManager, current_user, login_user, logout_user
from werkzeug.security import check_password_hash, generate_password_hash

from . import limits, records
from .limits import limiter
from .quiz import NAME_LENGTH, read_line

SHORTEST_PASSWORD = 8

bp = Blueprint("hosts", __name__, url_prefix="/host")
login_manager = LoginManager()
login_manager.login_view = "hosts.login_form"
login_manager.login_message = "Log in first."


def init_app(app: Flask) -> None:
    """Let Flask-Login keep track of who is logged in."""
    login_manager.user_loader(_load)
    # Its context processor looks the host up for every template, the limit page included. The proxy
    # waits until a template asks.
    login_manager.init_app(app, add_context_processor=False)
    app.add_template_global(current_user, "current_user")


def _load(id: str) -> records.Host | None:
    return records.find_host(id=int(id))


@bp.get("/login")
def login_form() -> ResponseReturnValue:
    """Show the form to log in."""
    return _form("login")


@bp.post("/login")
@limits.auth
def login() -> ResponseReturnValue:
    """Log a host in, or show the form again."""
    host = records.find_host(name=_field("name"))
    # checked for a host we do not know too, so that the time taken does not tell the two apart
    right = check_password_hash(host.password if host else _hash_of_nobody(), _field("password"))
    if host is None or not right:
        # the answer is a page that worked, status 200; the attempt did not
        limiter.mark_failure()
        return _form("login", problem="Name and password do not fit together.")
    return _enter(host)


@bp.get("/sign-up")
def sign_up_form() -> ResponseReturnValue:
    """Show the form to sign up."""
    return _form("sign_up")


@bp.post("/sign-up")
@limits.auth
def sign_up() -> ResponseReturnValue:
    """Make a host and log it in, or show the form again."""
    # new accounts are what the limit holds back here: one that was made stays charged as well
    limiter.mark_failure()
    try:
        name = read_line(_field("name"), NAME_LENGTH)
        if len(_field("password")) < SHORTEST_PASSWORD:
            raise ValueError(f"A password has {SHORTEST_PASSWORD} characters at least.")
        host = records.add_host(name, generate_password_hash(_field("password")))
    except ValueError as problem:
        return _form("sign_up", problem=str(problem))
    return _enter(host)


@bp.post("/logout")
def logout() -> ResponseReturnValue:
    """Log the host out; a player of the same browser stays in the game."""
    logout_user()
    return redirect(url_for("play.home"))


def _enter(host: records.Host) -> ResponseReturnValue:
    session.permanent = True
    login_user(host)
    return redirect(url_for("desk.games"))


def _form(action: str, problem: str | None = None) -> str:
    return render_template(
        "sign_in.html",
        action=action,
        problem=problem,
        name=_field("name")[:NAME_LENGTH],
        name_length=NAME_LENGTH,
        shortest_password=SHORTEST_PASSWORD,
    )


def _field(name: str) -> str:
    return request.form.get(name, "")


@cache
def _hash_of_nobody() -> str:
    return generate_password_hash("")

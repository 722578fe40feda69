"""The host's desk: open a quiz, show its board, go on to the next question."""

from __future__ import annotations

from typing import cast

from flask import Blueprint, abort, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user

from . import limits, records
from .hosts import login_manager
from .quiz import QUESTIONS, TITLE_LENGTH, read_line

bp = Blueprint("desk", __name__, url_prefix="/host/games")


@bp.before_request
def hosts_only() -> ResponseReturnValue | None:
    """Send everybody else to the form to log in."""
    if current_user.is_authenticated:
        return None
    answer: ResponseReturnValue = login_manager.unauthorized()
    return answer


@bp.get("")
def games() -> ResponseReturnValue:
    """List the host's quizzes, with a form for another."""
    return render_template("desk.html", games=records.games_of(_host()), title_length=TITLE_LENGTH)


@bp.post("")
@limits.create_game
def create_game() -> ResponseReturnValue:
    """Open a quiz."""
    try:
        title = read_line(request.form.get("title", ""), TITLE_LENGTH)
    except ValueError as problem:
        flash(f"About the title: {problem}")
        return redirect(url_for(".games"))
    game = records.add_game(_host(), title)
    return redirect(url_for(".board", code=game.code))


@bp.get("/<code>")
def board(code: str) -> ResponseReturnValue:
    """Show what the whole room may see: the code, the question, the scores."""
    game = _own_game(code)
    return render_template("board.html", game=game, scores=records.scoreboard(game), questions=len(QUESTIONS))


@bp.post("/<code>/step")
def step(code: str) -> ResponseReturnValue:
    """Go on to the next question."""
    game = _own_game(code)
    records.step(game, request.form.get("seen", game.question, type=int))
    return redirect(url_for(".board", code=game.code))


def _host() -> records.Host:
    return cast(records.Host, current_user)


def _own_game(code: str) -> records.Game:
    game = records.find_game(code)
    if game is None or game.host_id != _host().id:
        abort(404, "You have no quiz with that code.")
    return game

"""What the guests do: join, answer, change their name, watch the scores."""

from __future__ import annotations

import secrets

from flask import Blueprint, abort, flash, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from . import limits, records
from .quiz import CHOICES, CODE_LENGTH, NAME_LENGTH, QUESTIONS, read_code, read_line

bp = Blueprint("play", __name__)


class NoSuchGame(NotFound):
    """No quiz has the code that was typed; answered with the form to type it again."""

    description = "There is no quiz with that code. Have another look at the board."


@bp.get("/")
def home() -> ResponseReturnValue:
    """Show the form to join."""
    return _door()


@bp.post("/join")
@limits.join
def join() -> ResponseReturnValue:
    """Let a guest into a game; who is in it already stays who they are."""
    game = _game(request.form.get("code", ""))
    participant = session.get("participant_id") or secrets.token_hex(16)
    if not records.find_player(game, participant):
        try:
            name = read_line(request.form.get("name", ""), NAME_LENGTH)
            records.add_player(game, participant, name)
        except ValueError as problem:
            return _door(problem=str(problem)), 400
        session.permanent = True
        session["participant_id"] = participant
    return redirect(url_for(".game", code=game.code))


@bp.get("/g/<code>")
def game(code: str) -> ResponseReturnValue:
    """Show a player the game, and anybody else the form to join it."""
    game = _game(code)
    player = _player(game)
    if player is None:
        return _door(code=game.code)
    return render_template(
        "play.html",
        game=game,
        player=player,
        answer=records.answer_of(player, game.question),
        scores=records.scoreboard(game),
        questions=len(QUESTIONS),
        name_length=NAME_LENGTH,
    )


@bp.post("/g/<code>/name")
@limits.rename
def rename(code: str) -> ResponseReturnValue:
    """Give a player another name."""
    game = _game(code)
    player = _player(game)
    if player:
        try:
            records.rename_player(player, read_line(request.form.get("name", ""), NAME_LENGTH))
        except ValueError as problem:
            flash(f"About the name: {problem}")
    return redirect(url_for(".game", code=game.code))


@bp.post("/g/<code>/answers")
@limits.submit_answer
def submit_answer(code: str) -> ResponseReturnValue:
    """Take a player's answer to the open question; until it is closed another may follow."""
    game = _game(code)
    player = _player(game)
    number = request.form.get("question", type=int)
    choice = request.form.get("choice", type=int)
    if number is None or choice is None or not 0 <= choice < CHOICES:
        abort(400, "Pick one of the four choices.")
    if player:
        try:
            records.keep_answer(game, player, number, choice)
        except records.Refused as problem:
            flash(str(problem))
    return redirect(url_for(".game", code=game.code))


@bp.get("/g/<code>/state")
@limits.poll
def state(code: str) -> ResponseReturnValue:
    """Answer as JSON how far the game is, and the scores.

    The board on the wall asks too, without being a participant.
    """
    game = _game(code)
    return {
        "question": game.question,
        "over": game.over,
        "scores": [line._asdict() for line in records.scoreboard(game)],
    }


@bp.app_errorhandler(NoSuchGame)
def ask_again(error: NoSuchGame) -> ResponseReturnValue:
    """Show the form to join, with what was typed."""
    return _door(problem=error.description), 404


def _door(problem: str | None = None, code: str = "") -> str:
    return render_template(
        "home.html",
        problem=problem,
        code=code or read_code(request.form.get("code", "")),
        name=request.form.get("name", "")[:NAME_LENGTH],
        code_length=CODE_LENGTH,
        name_length=NAME_LENGTH,
    )


def _game(code: str) -> records.Game:
    game = records.find_game(read_code(code))
    if game is None:
        raise NoSuchGame
    return game


def _player(game: records.Game) -> records.Player | None:
    return records.find_player(game, session.get("participant_id"))

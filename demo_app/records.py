"""What is kept: hosts, games, players, answers; and every SQL statement of the quiz."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

from .db import database
from .quiz import QUESTIONS, Question, new_code

#: As many as a pub holds twice over; without an end, one could fill the scoreboard by joining.
MOST_PLAYERS = 200


class Refused(ValueError):
    """What was asked cannot be done; the text is fit to be shown to whoever asked."""


@dataclass(frozen=True)
class Host:
    """Someone who runs quizzes, in the shape Flask-Login asks for."""

    id: int
    name: str
    password: str
    is_authenticated = True
    is_active = True
    is_anonymous = False

    def get_id(self) -> str:
        """The text that stands for this host in the session."""
        return str(self.id)


@dataclass(frozen=True)
class Game:
    """One quiz night. ``question`` counts from 1; 0 is before the first, beyond the last is over."""

    id: int
    code: str
    host_id: int
    title: str
    question: int
    created: str

    @property
    def over(self) -> bool:
        """Whether all questions have been asked."""
        return self.question > len(QUESTIONS)

    @property
    def asked(self) -> Question | None:
        """The question that is open now."""
        return QUESTIONS[self.question - 1] if 0 < self.question <= len(QUESTIONS) else None

    @property
    def before(self) -> Question | None:
        """The question that was closed last."""
        return QUESTIONS[self.question - 2] if self.question > 1 else None


@dataclass(frozen=True)
class Player:
    """A participant in one game, under the name chosen for it."""

    id: int
    game_id: int
    participant: str
    name: str


class Score(NamedTuple):
    """One line of the scoreboard."""

    name: str
    score: int


def add_host(name: str, password: str) -> Host:
    """Keep a new host; ``password`` is a hash.

    :raises Refused: the name is taken.
    """
    try:
        with database() as connection:
            added = connection.execute("INSERT INTO host (name, password) VALUES (?, ?)", (name, password))
    except sqlite3.IntegrityError:
        raise Refused("That name is taken.") from None
    return Host(added.lastrowid or 0, name, password)


def find_host(*, id: int | None = None, name: str | None = None) -> Host | None:
    """Find a host by number or by name, in any case."""
    row = database().execute("SELECT * FROM host WHERE id = ? OR name = ?", (id, name)).fetchone()
    return Host(**row) if row else None


def add_game(host: Host, title: str) -> Game:
    """Open a game under a code nobody has."""
    while True:
        code = new_code()
        try:
            with database() as connection:
                connection.execute(
                    "INSERT INTO game (code, host_id, title) VALUES (?, ?, ?)", (code, host.id, title)
                )
        except sqlite3.IntegrityError:
            if find_game(code):
                continue
            raise
        game = find_game(code)
        assert game is not None
        return game


def find_game(code: str) -> Game | None:
    """Find a game by its code."""
    row = database().execute("SELECT * FROM game WHERE code = ?", (code,)).fetchone()
    return Game(**row) if row else None


def games_of(host: Host) -> list[Game]:
    """A host's games, the newest first."""
    rows = database().execute("SELECT * FROM game WHERE host_id = ? ORDER BY id DESC", (host.id,))
    return [Game(**row) for row in rows]


def step(game: Game, seen: int) -> None:
    """Go on to the next question, unless someone already went on from the one that was ``seen``."""
    with database() as connection:
        connection.execute(
            "UPDATE game SET question = question + 1 WHERE id = ? AND question = ? AND question <= ?",
            (game.id, seen, len(QUESTIONS)),
        )


def forget(days: int) -> int:
    """Delete the games opened more than ``days`` days ago, players and answers with them; says how many."""
    with database() as connection:
        gone = connection.execute("DELETE FROM game WHERE created < datetime('now', ?)", (f"-{days} days",))
    return gone.rowcount


def add_player(game: Game, participant: str, name: str) -> None:
    """Let a participant into a game.

    :raises Refused: the name is taken, or the game is full.
    """
    try:
        with database() as connection:
            added = connection.execute(
                "INSERT INTO player (game_id, participant, name) SELECT ?, ?, ?"
                " WHERE (SELECT count(*) FROM player WHERE game_id = ?) < ?",
                (game.id, participant, name, game.id, MOST_PLAYERS),
            )
    except sqlite3.IntegrityError:
        if find_player(game, participant):
            return  # a form sent twice
        raise Refused("Somebody here has that name already.") from None
    if not added.rowcount:
        raise Refused("This quiz is full.")


def find_player(game: Game, participant: str | None) -> Player | None:
    """Find who a participant is in a game."""
    row = (
        database()
        .execute("SELECT * FROM player WHERE game_id = ? AND participant = ?", (game.id, participant))
        .fetchone()
    )
    return Player(**row) if row else None


def rename_player(player: Player, name: str) -> None:
    """Give a player another name.

    :raises Refused: it is taken in that game.
    """
    try:
        with database() as connection:
            connection.execute("UPDATE player SET name = ? WHERE id = ?", (name, player.id))
    except sqlite3.IntegrityError:
        raise Refused("Somebody here has that name already.") from None


def keep_answer(game: Game, player: Player, number: int, choice: int) -> None:
    """Keep a player's answer to question ``number``, in place of an earlier one.

    :raises Refused: that question is not the open one.
    """
    too_late = Refused("Too late: that question is closed.")
    if game.asked is None or number != game.question:
        raise too_late
    with database() as connection:
        kept = connection.execute(
            "INSERT INTO answer (player_id, question, choice, correct) SELECT ?, ?, ?, ?"
            # asked once more, so that no answer slips in behind the host's back
            " WHERE (SELECT question FROM game WHERE id = ?) = ?"
            " ON CONFLICT (player_id, question)"
            " DO UPDATE SET choice = excluded.choice, correct = excluded.correct",
            (player.id, number, choice, choice == game.asked.right, game.id, number),
        )
    if not kept.rowcount:
        raise too_late


def answer_of(player: Player, number: int) -> int | None:
    """Which choice a player made at question ``number``, or None."""
    row = (
        database()
        .execute("SELECT choice FROM answer WHERE player_id = ? AND question = ?", (player.id, number))
        .fetchone()
    )
    return row["choice"] if row else None


def scoreboard(game: Game) -> list[Score]:
    """Everybody in a game, the best first. The open question does not count yet: it would tell."""
    rows = database().execute(
        "SELECT player.name, coalesce(sum(answer.correct), 0) AS score FROM player"
        " LEFT JOIN answer ON answer.player_id = player.id AND answer.question < ?"
        " WHERE player.game_id = ? GROUP BY player.id ORDER BY score DESC, player.name",
        (game.question, game.id),
    )
    return [Score(*row) for row in rows]

"""The SQLite file: one connection a request, tables made at the first start."""

from __future__ import annotations

import sqlite3
from importlib import resources
from pathlib import Path

from flask import Flask, current_app, g


def init_app(app: Flask) -> None:
    """Make the tables where they are missing, and close each request's connection at its end."""
    schema = resources.files("demo_app").joinpath("schema.sql").read_text(encoding="utf-8")
    connection = _connect(app.config["DATABASE"])
    # Readers then do not wait for a writer: a hundred phones read while a few write.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(schema)
    connection.close()
    app.teardown_appcontext(_close)


def database() -> sqlite3.Connection:
    """The connection of the current request or command, opened when first asked for.

    Use it as ``with database() as connection:`` to write: committed at the end, rolled back on an
    exception.
    """
    if "database" not in g:
        g.database = _connect(current_app.config["DATABASE"])
    connection: sqlite3.Connection = g.database
    return connection


def _connect(path: str | Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _close(_error: BaseException | None) -> None:
    connection = g.pop("database", None)
    if connection is not None:
        connection.close()

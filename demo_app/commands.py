"""``flask --app demo_app forget``: what is kept of past nights can go."""

from __future__ import annotations

import click
from flask import Blueprint

from . import records

bp = Blueprint("commands", __name__, cli_group=None)


@bp.cli.command("forget")
@click.option("--days", default=7, show_default=True, type=click.IntRange(0), help="Keep this many days.")
def forget(days: int) -> None:
    """Delete old quizzes, with the names and answers of everybody who played."""
    click.echo(f"quizzes forgotten: {records.forget(days)}")

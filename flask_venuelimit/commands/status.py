"""``flask venuelimit status``: how somebody stands with each limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NoReturn

import click
from flask.cli import with_appcontext

from ..overview import Standing
from ..subjects import Subject
from .common import about_somebody, limiter, table


@click.command()
@with_appcontext
@about_somebody
def status(subjects: list[Subject], names: tuple[str, ...]) -> None:
    """Show how much somebody has left of each limit. Writes nothing."""
    show(subjects, names)


def show(subjects: Iterable[Subject], names: Sequence[str]) -> NoReturn:
    """Print how each of these stands, and exit: with 1 where storage could not tell."""
    known = [_show(subject, limiter().status(subject, limits=names)) for subject in subjects]
    raise SystemExit(0 if all(known) else 1)


def _show(subject: Subject, standings: Sequence[Standing]) -> bool:
    """Print how a subject stands; False where storage could not tell."""
    # as logs and signals call them, so that one finds them there
    shown = next((f" ({each.decision.subject})" for each in standings if each.decision), "")
    click.echo(f"{subject.kind} {subject.parts[0]}{shown}")
    if standings:
        click.echo(table([(f"  {_name(each)}", *_told(each)) for each in standings]))
    else:
        click.echo(f"  no limit is keyed by {subject.kind}")
    return not any(each.failed for each in standings)


def _name(standing: Standing) -> str:
    return standing.limit if standing.method is None else f"{standing.limit} ({standing.method})"


def _told(standing: Standing) -> tuple[str, str]:
    decision = standing.decision
    if decision is None:
        return "unknown", standing.unknown
    left = f"{decision.remaining} of {decision.quota} left"
    if not decision.allowed:
        wait = decision.retry_after
        return left, "refuses for good" if wait is None else f"refuses for {math.ceil(wait)} s"
    return left, f"all of it in {math.ceil(decision.reset_after)} s" if decision.reset_after else ""

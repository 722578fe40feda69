"""``flask venuelimit list``: what an app limits, for people."""

from __future__ import annotations

from typing import Any

import click
from flask.cli import with_appcontext

from ..coverage import UNMATCHED
from .common import limiter, plain_errors, table

_HEADINGS = ("limit", "policy", "key", "stage", "covers")


@click.command("list")
@with_appcontext
def list_limits() -> None:
    """Show every limit: how much, by whom, when it is decided, and what it covers."""
    with plain_errors():
        told = limiter().manifest()
    limits = told["limits"]
    if not limits:
        click.echo("No limits are declared.")
        return
    click.echo(table([_HEADINGS, *map(_row, limits)]))
    if not told["counting"]:
        click.echo("\nLimiting is off: none of these counts.", err=True)


def _row(limit: dict[str, Any]) -> tuple[str, ...]:
    policy = _policies(limit["policies"])
    if limit["per_address"]:
        policy += f" ({_policies(limit['per_address'])} for an address)"
    return limit["name"], policy, limit["key"], limit["stage"], _covers(limit["covers"])


def _policies(told: list[dict[str, Any]] | None) -> str:
    return "told at each request" if told is None else "; ".join(each["policy"] for each in told)


def _covers(places: list[dict[str, Any]]) -> str:
    """Endpoints with their methods; only what covers everything covers what matches no route."""
    if not places:
        return "nothing"
    if any(place["endpoint"] == UNMATCHED for place in places):
        return "everywhere"
    return ", ".join(f"{'|'.join(place['methods'])} {place['endpoint']}{_cost(place)}" for place in places)


def _cost(place: dict[str, Any]) -> str:
    return "" if place["cost"] == 1 else f" (cost {place['cost'] or 'told at each request'})"

"""``flask venuelimit manifest``: what an app limits, for machines."""

from __future__ import annotations

import json

import click
from flask.cli import with_appcontext

from .common import limiter, plain_errors


@click.command()
@with_appcontext
def manifest() -> None:
    """Print limits, windows and costs as JSON."""
    with plain_errors():
        click.echo(json.dumps(limiter().manifest(), indent=2))

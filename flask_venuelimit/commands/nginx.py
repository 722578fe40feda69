"""``flask venuelimit nginx``: the limits on addresses, as nginx keeps them in front of the app."""

from __future__ import annotations

import re
from typing import Any

import click
from flask import current_app
from flask.cli import with_appcontext

from ..nginx import Where, nginx_config
from .common import plain_errors


def _words(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Take what a directive takes as one word, and fail for anything else."""
    for word in (value,) if isinstance(value, str) else value:
        if not re.fullmatch(r"[^\s;{}\"'\\$#]+", word):
            raise click.BadParameter(
                f"{word!r} is no single word of an nginx configuration. Leave out blanks, quotes, and "
                "any of ; { } $ # and the backslash."
            )
    return value


@click.command()
@click.option(
    "--server-name",
    metavar="HOST",
    default="_",
    callback=_words,
    help="The name it answers to; any, unless given.",
)
@click.option("--listen", metavar="PORT", multiple=True, callback=_words, help="80, unless given.")
@click.option(
    "--upstream",
    metavar="URL",
    default="http://127.0.0.1:8000",
    show_default=True,
    callback=_words,
    help="Where the app is served.",
)
@with_appcontext
def nginx(server_name: str, listen: tuple[str, ...], upstream: str) -> None:
    """Print a whole nginx.conf that keeps the limits on addresses in front of this app."""
    if not re.match("https?://.", upstream):
        raise click.UsageError(f"--upstream is {upstream!r}. Use a URL such as http://127.0.0.1:8000.")
    with plain_errors():
        config = nginx_config(current_app, Where(server_name, listen or ("80",), upstream))
    click.echo(config, nl=False)

"""What several commands share: the limiter at hand, whom a command is about, and plain errors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click
from flask import current_app

from ..errors import ConfigurationError
from ..subjects import Subject

if TYPE_CHECKING:
    from ..extension import VenueLimit

#: The exit code where what was asked cannot be known here.
_OUT_OF_REACH = 2
#: The kinds of subject that an option can name.
_KINDS = ("user", "participant", "ip")


def limiter() -> VenueLimit:
    """The limiter of the app at hand."""
    owner: VenueLimit = current_app.extensions["venuelimit"].owner
    return owner


@contextmanager
def plain_errors() -> Iterator[None]:
    """Tell what is wrong with an app's settings, or with what was typed, without a traceback."""
    try:
        yield
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def about_somebody(command: Callable[[list[Subject], tuple[str, ...]], None]) -> Callable[..., None]:
    """Give a command the options that say whom it is about, and which limits."""

    @click.option("--user", metavar="ID", help="A user, by the id that the session or the callback tells.")
    @click.option("--participant", metavar="ID", help="A participant, by their id.")
    @click.option("--ip", metavar="ADDRESS", help="A client address; an IPv6 one means its network.")
    @click.option("--limit", "names", metavar="NAME", multiple=True, help="This limit only; may be repeated.")
    @functools.wraps(command)
    def with_options(names: tuple[str, ...], **whom: str | None) -> None:
        subjects = [Subject(kind, value) for kind in _KINDS if (value := whom[kind])]
        if not subjects:
            raise click.UsageError("Say whom: --user 42, --participant p1 or --ip 198.51.100.7.")
        _refuse_out_of_reach()
        with plain_errors():
            command(subjects, names)

    return with_options


def _refuse_out_of_reach() -> None:
    """Say so where the counts that were asked about are not to be had from this process."""
    with plain_errors():
        told = limiter().manifest()
    if not told["counting"]:
        _give_up(
            "Limiting is off in this app, so nothing is counted: set VENUELIMIT_STORAGE_URI, and "
            "VENUELIMIT_ENABLED to true where it is set."
        )
    if not told["shared"]:
        _give_up(
            f"{told['storage']} counts in the memory of one process. Another process's counts, such as the "
            "server's, are out of reach from here. Set VENUELIMIT_STORAGE_URI to a Redis to share them."
        )


def _give_up(why: str) -> None:
    click.echo(why, err=True)
    raise SystemExit(_OUT_OF_REACH)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows in columns that line up; the last one is ragged."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)


def one_line(text: str) -> str:
    """A text without what would break its line: an endpoint may be called anything."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)

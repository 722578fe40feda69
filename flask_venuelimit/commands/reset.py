"""``flask venuelimit reset``: forget what somebody has used."""

from __future__ import annotations

import click
from flask.cli import with_appcontext

from ..subjects import Subject
from .common import about_somebody, limiter
from .status import show


@click.command()
@with_appcontext
@about_somebody
def reset(subjects: list[Subject], names: tuple[str, ...]) -> None:
    """Forget what somebody has used of each limit, and show how they stand then."""
    for subject in subjects:
        limiter().reset(subject, limits=names)
    show(subjects, names)

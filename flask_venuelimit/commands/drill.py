"""``flask venuelimit drill``: drive callers into every limit, and see what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import click
from flask import current_app
from flask.cli import with_appcontext

from ..drill import FAILED, NOT_DRIVEN, OK, Finding, rehearse
from .common import plain_errors


@click.command()
@with_appcontext
def drill() -> None:
    """Drive callers into every limit, in a scratch namespace: no view runs, no count of the app changes.

    Shows that refusals are structured and carry a hint, that callers who honour it get in without a stampede,
    and that memory stays bounded under a flood of distinct keys. Exit code 1 if one of these fails.
    """
    with plain_errors():
        verdicts = _shown(rehearse(current_app._get_current_object()))  # type: ignore[attr-defined]
    raise SystemExit(1 if verdicts[FAILED] else 0)


def _shown(found: Iterable[Finding]) -> Counter[str]:
    """Print each finding as it comes, then how many there were of each sort."""
    verdicts: Counter[str] = Counter()
    for limit, check, verdict, said in found:
        click.echo(f"{verdict:<10}  {check:<8}  {limit}: {said}")
        verdicts[verdict] += 1
    counts = ", ".join(f"{verdicts[each]} {each}" for each in (OK, NOT_DRIVEN, FAILED))
    click.echo(f"\n{verdicts.total()} checks: {counts}" if verdicts else "No limits are declared.")
    return verdicts

"""``flask venuelimit drill``: drive callers into every limit, and see what becomes of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

import click
from flask import current_app
from flask.cli import with_appcontext

from ..drill import FAILED, NOT_DRIVEN, OK, Finding, rehearse, rehearse_at
from .common import plain_errors


@click.command()
@click.option("--url", help="A running server's URL to send requests to, instead; really waits.")
@click.option("--requests", default=200, show_default=True, help="With --url: how many to send at most.")
@click.option(
    "--max-wait", metavar="SECONDS", default=120.0, show_default=True, help="With --url: no longer wait."
)
@click.option("--header", "headers", metavar="NAME: VALUE", multiple=True, help="With --url: sent along.")
@with_appcontext
def drill(url: str | None, requests: int, max_wait: float, headers: tuple[str, ...]) -> None:
    """Drive callers into every limit, in a scratch namespace: no view runs, no count of the app changes.

    Shows that refusals are structured and carry a hint, that callers who honour it get in without a stampede,
    and that memory stays bounded under a flood of distinct keys. Exit code 1 if one of these fails.
    """
    with plain_errors():
        if url is None:
            found = rehearse(current_app._get_current_object())  # type: ignore[attr-defined]
        else:
            named = dict(map(_header, headers))
            found = rehearse_at(url, requests=requests, max_wait=max_wait, headers=named, wait=_wait)
        verdicts = _shown(found)
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


def _wait(seconds: float) -> None:
    click.echo(f"waiting {seconds:.0f} s", err=True)
    time.sleep(seconds)


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ValueError(f"--header is {text!r}. Use a name and a value, such as 'Cookie: session=...'.")
    return name.strip(), value.strip()

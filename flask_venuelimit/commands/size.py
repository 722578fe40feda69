"""``flask venuelimit size``: how much a limit on a shared address has to admit, and why."""

from __future__ import annotations

import click

from ..sizing import Sizing, decimal, size
from .common import plain_errors, table

_WHY = """\
Everybody behind an address shares its bucket, so a limit on it is sized for the sum of those who may stand
there. With less, the whole room is turned away on the evening when all of them ask at once. Whoever is to be
held more tightly than that needs a limit of their own: by_participant, by_user."""


@click.command("size")
@click.option("--clients", type=int, required=True, help="How many people may share the address.")
@click.option("--per-client", metavar="RATE", required=True, help='What each asks for, such as "6/minute".')
@click.option("--extra", metavar="RATE", help="What all of them together ask for besides.")
@click.option(
    "--headroom", metavar="FACTOR", default="1.0", show_default=True, help="A factor of at least 1."
)
def size_address(clients: int, per_client: str, extra: str | None, headroom: str) -> None:
    """Reckon what a limit on a shared address has to admit, and why.

    For example: --clients 100 --per-client 6/minute --extra 600/minute. Rates in different units are brought
    to the longer of their windows; the sum is rounded up, never down.
    """
    with plain_errors():
        sizing = size(clients, per_client, extra, headroom)
    limit = sizing.policy.spelling
    click.echo(f"{limit}\n\n{table(_sum(sizing))}\n\n{_WHY}\n")
    click.echo(f'limiter.limit("{limit}", name="global", key=by_ip).everywhere()')
    click.echo(f'limiter.limit(..., key=by_participant, per_address="{limit}")')


def _sum(sizing: Sizing) -> list[tuple[str, str, str]]:
    """The sum line by line: what is added, its sign, and what that comes to."""
    people = "1 client" if sizing.clients == 1 else f"{sizing.clients} clients"
    lines = [(f"  {people} x {sizing.per_client.spelling}", "=", sizing.spell(sizing.of_clients))]
    if sizing.extra is not None:
        given = sizing.extra.spelling
        brought = sizing.spell(sizing.of_extra)
        lines.append((f"  extra{'' if given == brought else f', {given}'}", "+", brought))
    lines.append((f"  headroom, x {decimal(sizing.headroom)}", "=", sizing.spell(sizing.exact)))
    if sizing.exact.denominator > 1:
        lines.append(("  rounded up", "=", sizing.policy.spelling))
    return lines

"""``flask venuelimit doctor``: what is wrong with a set-up."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click
from flask import current_app
from flask.cli import with_appcontext

from ..diagnosis.findings import SEVERITIES, Finding
from .common import limiter, one_line, plain_errors


@click.command()
@click.option("--format", "shape", type=click.Choice(["text", "json"]), default="text", show_default=True)
@with_appcontext
def doctor(shape: str) -> None:
    """Say what is wrong with this set-up, why it matters and what to change. Writes nothing."""
    with plain_errors():
        findings = limiter().doctor()
    if shape == "json":
        told = {"app": current_app.name, "findings": [finding._asdict() for finding in findings]}
        click.echo(json.dumps(told, indent=2))
    else:
        _show(findings)
    raise SystemExit(1 if any(finding.matters for finding in findings) else 0)


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        click.echo(f"{finding.code} {finding.severity}: {one_line(finding.what)}")
        click.echo(f"  Why:    {finding.why}")
        click.echo(f"  Change: {finding.change}\n")
    click.echo(f"{current_app.name}: {_sum(findings)}")


def _sum(findings: Sequence[Finding]) -> str:
    counted = {name: sum(each.severity == name for each in findings) for name in SEVERITIES}
    told = [f"{number} {name}{'s' if number > 1 else ''}" for name, number in counted.items() if number]
    if any(finding.matters for finding in findings):
        return f"{', '.join(told)}."
    return f"all is well{f', with {told[0]}' if told else ''}."

"""What a drill finds, one check of one limit at a time."""

from __future__ import annotations

from typing import NamedTuple

OK, FAILED, NOT_DRIVEN = "ok", "FAILED", "not driven"

REFUSAL, RECOVERY, MEMORY = "refusal", "recovery", "memory"


class Finding(NamedTuple):
    """What one check of one limit found.

    :param limit: the limit, and for whom where it has more than one policy; or the URL.
    :param check: ``refusal``: it is structured and carries a hint; ``recovery``: who honours the hint gets
        in, without a stampede; ``memory``: it stays bounded.
    :param verdict: ``ok``, ``FAILED``, or ``not driven``, which is no failure.
    :param said: what was seen, what is wrong and what to change, or why it was not driven.
    """

    limit: str
    check: str
    verdict: str
    said: str


class Broken(Exception):
    """A check failed; the text says what is wrong, and what to change."""


class Undriven(Exception):
    """Something cannot be driven, which is no failure; the text says why."""

"""What of an app's limits nginx can keep, and why it cannot keep the others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from werkzeug.routing import Map

from .rates import Rate, rate_of
from .routes import Covered, covered_by


class Kept(NamedTuple):
    """A limit that nginx can keep, or those of its policies that it can.

    :param slug: what its variable and zones are called after.
    """

    name: str
    slug: str
    covered: Covered
    rates: list[Rate]


class LeftOut(NamedTuple):
    """Something that is left to the app.

    :param what: the limit and its policies, or where it is.
    """

    what: str
    why: str


def divide(limits: Sequence[dict[str, Any]], url_map: Map) -> tuple[list[Kept], list[LeftOut]]:
    """Tell the limits that nginx can keep from those that it cannot.

    :param limits: as a manifest tells them.
    """
    kept: list[Kept] = []
    left_out: list[LeftOut] = []
    for limit in limits:
        why = _why_not(limit)
        if why is not None:
            left_out.append(LeftOut(_called(limit, limit["policies"]), why))
            continue
        rates, slow = _rates(limit)
        covered = covered_by(limit, url_map)
        left_out += slow
        if rates:
            left_out += _elsewhere(limit, covered)
        if rates and (covered.default or covered.entries):
            kept.append(Kept(limit["name"], _slug(limit["name"], kept), covered, rates))
    return kept, left_out


def _why_not(limit: dict[str, Any]) -> str | None:
    """Why nginx can keep nothing of a limit, whatever its numbers."""
    reasons = {
        f"keyed by {limit['key']}, and nginx knows addresses alone": limit["key"] != "ip",
        "keyed by a function, which nginx cannot ask": limit["stage"] != "front",
        "a charge is given back by the answer, which nginx does not know when it counts": limit["refunds"],
        "its policy is told at each request": limit["policies"] is None,
        "it only watches, and nginx would refuse": limit["shadow"],
        "`unless` skips it for some requests, and nginx cannot ask": limit["unless"],
        "each process counts for itself, and nginx would count once for all": limit["per_process"],
        "each method has a bucket of its own": limit["per_method"],
        "it covers no request": not limit["covers"],
    }
    return next((why for why, holds in reasons.items() if holds), None)


def _rates(limit: dict[str, Any]) -> tuple[list[Rate], list[LeftOut]]:
    """The rates of a limit's policies, and those that have none."""
    found = [(policy, rate_of(policy)) for policy in limit["policies"]]
    rates = [rate for _, rate in found if isinstance(rate, Rate)]
    return rates, [LeftOut(_called(limit, [policy]), why) for policy, why in found if isinstance(why, str)]


def _elsewhere(limit: dict[str, Any], covered: Covered) -> Iterator[LeftOut]:
    for rule in covered.omitted:
        yield LeftOut(f"{limit['name']} at {rule!a}", "the route is of one host, and only paths are compared")


def _called(limit: dict[str, Any], policies: Sequence[dict[str, Any]] | None) -> str:
    """The name with the policies: ``auth (10 per 15 minutes)``."""
    return (
        f"{limit['name']} ({'; '.join(each['policy'] for each in policies)})" if policies else limit["name"]
    )


def _slug(name: str, earlier: Sequence[Kept]) -> str:
    """What a limit's variable and zones are called: a short word, and no two alike."""
    # longer names of variables do not fit into nginx's table of them
    slug = re.sub("[^a-z0-9]+", "_", name.lower())[:24].strip("_")
    return f"{slug}_{len(earlier) + 1}" if not slug or slug in {each.slug for each in earlier} else slug

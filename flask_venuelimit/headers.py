"""Limit state as header fields: what each limit holds, what is left of it, and until when.

Three dialects, by the names ``VENUELIMIT_HEADERS`` knows them by:

``draft``
    ``RateLimit-Policy`` and ``RateLimit``, every limit in one list of structured fields (RFC 9651,
    draft-ietf-httpapi-ratelimit-headers).
``trio``
    ``RateLimit-Limit``, ``RateLimit-Remaining``, ``RateLimit-Reset`` of the limit with the least room.
``x``
    the same three with an ``X-`` in front.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from .decisions import Decision
from .quantities import SECOND


@dataclass(eq=False, slots=True)
class Shown:
    """One decision as it is to be shown.

    :param decision: what the limit decided.
    :param refund: whether its charge will be given back, so that it is shown as given back.
    :param cost: what was charged, in hits.
    :param counter: tells what was charged from what another limit of the same name charges.
    """

    decision: Decision
    refund: bool = False
    cost: int = 1
    counter: str = ""


class _Line(NamedTuple):
    """What a limit's line says: remaining hits, and whole seconds until reset (None: no wait helps)."""

    decision: Decision
    remaining: int
    reset: int | None
    refuses: bool


def whole_seconds(seconds: float) -> int:
    """Round a wait up to whole seconds.

    Waits are exact to the microsecond, and what lies below that is an artefact of floats: 58.001 is 59,
    but 1.0000000001 is 1.
    """
    return -(-round(seconds * SECOND) // SECOND)


@lru_cache(maxsize=1024)
def sf_string(text: str) -> str:
    """Quote ``text`` as a structured field's string (RFC 9651, section 3.3.3).

    Such a string holds printable ASCII; anything else, as an endpoint's name may have, is
    percent-encoded, since what cannot be sent must not fail the response.
    """
    ascii_only = "".join(char if " " <= char <= "~" else quote(char, errors="replace") for char in text)
    escaped = ascii_only.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@lru_cache(maxsize=1024)
def policy_item(name: str, quota: int, window: float | None) -> str:
    """Say what a limit holds, as one item of ``RateLimit-Policy``: ``"join";q=150;w=60``.

    ``w`` is left out where the window is no whole second. ``Concurrency``, the one policy without a
    window, counts requests under way and says so in ``qu``.
    """
    item = f"{sf_string(name)};q={quota}"
    if window is None:
        return item + ';qu="concurrent-requests"'
    if window >= 1 and window == int(window):
        return item + f";w={int(window)}"
    return item


def limit_state(
    decisions: Iterable[Shown],
    kinds: Sequence[str],
    refused: Decision | None = None,
    retry_after: int | None = None,
) -> list[tuple[str, str]]:
    """Give the header fields that tell a client where it stands.

    Shadow limits and decisions nobody counted show nothing. Of several decisions of one limit the one
    that refused is shown, else the last. A charge that is or will be given back shows as given back: what
    remains plus the cost, at most the quota.

    :param kinds: any of ``draft``, ``trio``, ``x``, in the order wanted.
    :param refused: the decision that refused the request, or None where it was admitted. It shows 0
        remaining, and its time is Retry-After, so that nothing in one response contradicts another.
    :param retry_after: the seconds sent as Retry-After; None, where no wait helps, leaves the time out.
    :returns: names and values, each name once; empty where there is nothing to show.
    """
    if not kinds:
        return []
    lines = [_line(shown, refused, retry_after) for shown in _latest(decisions, refused)]
    if not lines:
        return []
    fields: list[tuple[str, str]] = []
    for kind in kinds:
        if kind == "draft":
            fields += _draft(lines)
        else:
            fields += _trio(lines, "X-" if kind == "x" else "")
    return fields


def _latest(decisions: Iterable[Shown], refused: Decision | None) -> Iterable[Shown]:
    latest: dict[tuple[str, str], Shown] = {}
    for shown in decisions:
        decision = shown.decision
        # a count to show: somebody counted, and the limit is no mere watcher
        if decision.receipt is not None and decision.receipt.records and not decision.shadow:
            # two limits may be called alike, but never share a counter
            which = decision.limit, shown.counter
            if which not in latest or latest[which].decision is not refused:
                latest[which] = shown
    return latest.values()


def _line(shown: Shown, refused: Decision | None, retry_after: int | None) -> _Line:
    decision = shown.decision
    if decision is refused:
        return _Line(decision, 0, retry_after, True)
    if refused is not None and not decision.allowed:
        return _Line(decision, 0, _reset_of(decision.retry_after), False)
    remaining = decision.remaining
    receipt = decision.receipt
    if receipt is not None and receipt.charged and (shown.refund or receipt.redeemed):
        remaining = min(decision.quota, remaining + shown.cost)
    return _Line(decision, remaining, whole_seconds(decision.reset_after), False)


def _reset_of(wait: float | None) -> int | None:
    return None if wait is None else whole_seconds(wait)


def _draft(lines: Sequence[_Line]) -> list[tuple[str, str]]:
    policies, limits = [], []
    for decision, remaining, reset, _ in lines:
        policies.append(policy_item(decision.limit, decision.quota, decision.window))
        item = f"{sf_string(decision.limit)};r={remaining}"
        limits.append(item if reset is None else f"{item};t={reset}")
    return [("RateLimit-Policy", ", ".join(policies)), ("RateLimit", ", ".join(limits))]


def _trio(lines: Sequence[_Line], prefix: str) -> list[tuple[str, str]]:
    # the refusing limit comes first among those without room: Reset and Retry-After have to agree
    line = lines[0] if len(lines) == 1 else min(lines, key=_room)
    fields = [
        (f"{prefix}RateLimit-Limit", str(line.decision.quota)),
        (f"{prefix}RateLimit-Remaining", str(line.remaining)),
    ]
    if line.reset is not None:
        fields.append((f"{prefix}RateLimit-Reset", str(line.reset)))
    return fields


def _room(line: _Line) -> tuple[float, ...]:
    return line.remaining, not line.refuses, -float("inf") if line.reset is None else -line.reset

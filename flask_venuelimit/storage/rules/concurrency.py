"""The rule of :class:`~flask_venuelimit.Concurrency`; ``concurrency.lua`` is its other half.

A state is a :class:`~.log.Log` of the slots in use, in the order in which they were taken or last renewed. A
slot that is exactly a lease old has lapsed. When one will be given back cannot be known: all waits are 1 s.
"""

from __future__ import annotations

from ...quantities import SECOND
from .log import Log, appended, dated, enter, find, leave, newest, removed, sum_before
from .outcome import Outcome


def take(state: Log | None, now: int, cost: int, birth: str, limit: int, lease: int) -> Outcome:
    """Take a slot that weighs ``cost`` if those in use leave room for it; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    outcome = enter(state, now, cost, birth, limit, lease)
    return outcome._replace(wait=outcome.wait and SECOND, reset=SECOND)


def give_back(state: Log, now: int, cost: int, token: str, limit: int, lease: int) -> Log | None:
    """Free a slot.

    :returns: the new state, or None where nothing changes: the slot is free already, or has lapsed.
    """
    return leave(state, now, token, lease)


def renew(state: Log, now: int, token: str, limit: int, lease: int) -> Log | None:
    """Let a slot lapse a lease from now.

    :returns: the new state, or None where nothing changes: the slot is free already, or has lapsed.
    """
    live = dated(state, now, lease)
    index = find(live, now, token, lease) if live else None
    if live is None or index is None:
        return None
    cost = sum_before(live, index + 1) - sum_before(live, index)
    serial = live.rows.serials[live.first + index]
    return appended(removed(live, index), 0, max(now, newest(live)), cost, serial)

"""The rule of :class:`~flask_venuelimit.SlidingLog`; ``sliding_log.lua`` is its other half.

A state is a :class:`~.log.Log` of the admitted hits. An entry that is exactly a window old is outside.
"""

from __future__ import annotations

from .log import Log, enter, leave
from .outcome import Outcome


def take(state: Log | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if the hits of the window before ``now`` leave room for it; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    return enter(state, now, cost, birth, limit, window)


def give_back(state: Log, now: int, cost: int, token: str, limit: int, window: int) -> Log | None:
    """Take the very entry of a charge out of the log.

    :returns: the new state, or None where nothing changes: the entry is outside, or in no such log.
    """
    return leave(state, now, token, window)

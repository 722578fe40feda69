"""The rule of :class:`~flask_venuelimit.LeakyBucket`; ``leaky_bucket.lua`` is its other half.

A state says how many parts of a turn are queued, and since when: see :mod:`.bucket`.
"""

from __future__ import annotations

from .bucket import State, drain, undo
from .outcome import Outcome, redated


def take(
    state: State | None, now: int, cost: int, birth: str, quota: int, unit: int, refill: int, max_delay: int
) -> Outcome:
    """Queue for ``cost`` turns if the last of them comes within ``max_delay``; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state; an empty queue starts anew.
    :param max_delay: microseconds.
    """
    drained = drain(state, now, quota, unit, refill)
    used, _, at, birth = drained or (0, unit, now, birth)
    ahead = at - now
    room = (max_delay - ahead) * refill
    # the last turn begins when what is queued before it has drained
    late = used + (cost - 1) * unit - room
    if cost > 0 >= late:
        delay = ahead - (-(used + (cost - 1) * unit) // refill)
        used += cost * unit
        reset = ahead - (-used // refill)
        return Outcome(True, (used, unit, at, birth), -late // unit, 0, reset, delay, birth, now + reset)
    wait = wait_for(late, cost, quota, refill)
    reset = ahead - (-used // refill)
    left = max(0, (room - used) // unit + 1)
    return Outcome(wait == 0, redated(state, drained, 2), left, wait, reset, 0, "", now + reset)


def wait_for(late: int, cost: int, quota: int, refill: int) -> int | None:
    """Microseconds until ``late`` parts have drained, None where the queue is never short enough."""
    if late <= 0:
        return 0
    return -(-late // refill) if cost <= quota else None


def give_back(
    state: State, now: int, cost: int, token: str, quota: int, unit: int, refill: int, max_delay: int
) -> State | None:
    """Undo ``cost`` turns in a queue that was not empty since; who came later is not called earlier.

    :returns: the new state, or None where nothing changes.
    """
    return undo(state, now, cost, token, quota, unit, refill)

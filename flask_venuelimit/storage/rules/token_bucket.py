"""The rule of :class:`~flask_venuelimit.TokenBucket`; ``token_bucket.lua`` is its other half.

A state says how many parts of a token are missing, and since when: see :mod:`.bucket`.
"""

from __future__ import annotations

from .bucket import State, drain, undo
from .outcome import Outcome, redated


def take(
    state: State | None, now: int, cost: int, birth: str, capacity: int, unit: int, refill: int
) -> Outcome:
    """Charge ``cost`` tokens if they are there; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state; a full bucket starts anew.
    """
    drained = drain(state, now, capacity, unit, refill)
    used, _, at, birth = drained or (0, unit, now, birth)
    short = used - (capacity - cost) * unit
    if cost > 0 >= short:
        used += cost * unit
        reset = at - now - (-used // refill)
        return Outcome(True, (used, unit, at, birth), -short // unit, 0, reset, 0, birth, now + reset)
    wait = wait_for(short, at - now, cost, capacity, refill)
    reset = at - now - (-used // refill)
    room = max(0, capacity - (-(-used // unit)))
    return Outcome(wait == 0, redated(state, drained, 2), room, wait, reset, 0, "", now + reset)


def wait_for(short: int, ahead: int, cost: int, capacity: int, refill: int) -> int | None:
    """Microseconds until ``short`` parts have come back, None where the bucket never holds as many.

    :param ahead: microseconds until the bucket begins to fill.
    """
    if short <= 0:
        return 0
    return ahead - (-short // refill) if cost <= capacity else None


def give_back(
    state: State, now: int, cost: int, token: str, capacity: int, unit: int, refill: int
) -> State | None:
    """Undo a charge of ``cost`` tokens in a bucket that was not full since.

    :returns: the new state, or None where nothing changes.
    """
    return undo(state, now, cost, token, capacity, unit, refill)

"""The rule of :class:`~flask_venuelimit.TokenBucket`; ``token_bucket.lua`` is its other half.

A state is ``(used, unit, at, birth)``: at the time ``at``, ``used`` parts were missing from a full bucket,
a token being ``unit`` parts. Parts are whole, and whole parts come back each microsecond, so that nothing
is ever rounded. Times are whole microseconds.
"""

from __future__ import annotations

from .outcome import Outcome, redated

State = tuple[int, int, int, str]

#: As much as Lua's doubles count exactly.
_MOST = 2**53 - 1


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
    reset = at - now - (-used // refill) if drained else 0
    room = max(0, capacity - (-(-used // unit)))
    return Outcome(wait == 0, redated(state, drained, 2), room, wait, reset, 0, "", now + reset)


def drain(state: State | None, now: int, capacity: int, unit: int, refill: int) -> State | None:
    """Bring a state to ``now``, in parts of ``unit``.

    :returns: the state then, or None where the bucket is full.
    """
    if state is None:
        return None
    used, old, at, birth = state
    if old != unit:
        # the rate was changed: as many tokens are missing as were, in parts of another size
        used = min(_MOST, -(-used * unit // old))
    # a clock that stepped back gives nothing back, unless it is over a bucket's filling away
    if at - now > -(-capacity * unit // refill):
        at = now
    if now > at:
        used, at = max(0, used - (now - at) * refill), now
    return (used, unit, at, birth) if used else None


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
    drained = drain(state, now, capacity, unit, refill)
    if drained is None or token != drained[3]:
        return None
    used, _, at, birth = drained
    return max(0, used - cost * unit), unit, at, birth

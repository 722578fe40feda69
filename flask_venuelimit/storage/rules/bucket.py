"""What a TokenBucket and a LeakyBucket have in common; ``bucket.lua`` is its other half.

A state is ``(used, unit, at, birth)``: at the time ``at``, ``used`` parts were missing from a full bucket, or
queued in a leaky one, a token or a turn being ``unit`` parts. Parts are whole, and whole parts come back each
microsecond, so that nothing is ever rounded. Times are whole microseconds.
"""

from __future__ import annotations

State = tuple[int, int, int, str]

#: As much as Lua's doubles count exactly.
_MOST = 2**53 - 1


def drain(state: State | None, now: int, quota: int, unit: int, refill: int) -> State | None:
    """Bring a state to ``now``, in parts of ``unit``.

    :returns: the state then, or None where the bucket is full, or the queue empty.
    """
    if state is None:
        return None
    used, old, at, birth = state
    if old != unit:
        # the rate was changed: as many tokens are missing as were, in parts of another size
        used = min(_MOST, -(-used * unit // old))
    # a clock that stepped back gives nothing back, unless it is over a bucket's filling away
    if at - now > -(-quota * unit // refill):
        at = now
    if now > at:
        used, at = max(0, used - (now - at) * refill), now
    return (used, unit, at, birth) if used else None


def undo(state: State, now: int, cost: int, token: str, quota: int, unit: int, refill: int) -> State | None:
    """Undo a charge of ``cost`` in a bucket that was not full, or a queue that was not empty, since.

    :returns: the new state, or None where nothing changes.
    """
    drained = drain(state, now, quota, unit, refill)
    if drained is None or token != drained[3]:
        return None
    used, _, at, birth = drained
    return max(0, used - cost * unit), unit, at, birth

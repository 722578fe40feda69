"""The rule of :class:`~flask_venuelimit.FixedWindow`; ``fixed_window.lua`` is its other half.

A state is ``(start, count, birth)``. A window opens at the first hit at or after the end of the last
one. Times are whole microseconds.
"""

from __future__ import annotations

from .outcome import Outcome, redated

State = tuple[int, int, str]


def take(state: State | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if it fits; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    rolled = roll(state, now, window)
    start, count, birth = rolled or (now, 0, birth)
    expires = start + window
    if 0 < cost <= limit - count:
        count += cost
        return Outcome(True, (start, count, birth), limit - count, 0, expires - now, 0, birth, expires)
    wait = wait_for(count, cost, expires - now, limit)
    reset = expires - now if rolled else 0
    after = redated(state, rolled, 0)
    return Outcome(wait == 0, after, max(0, limit - count), wait, reset, 0, "", expires)


def roll(state: State | None, now: int, window: int) -> State | None:
    """Bring a state to ``now``.

    :returns: the state then, or None where its window is over.
    """
    if state is None or now >= state[0] + window:
        return None
    start, count, birth = state
    # a clock that stepped back keeps the window where it is, unless that is over a window away
    return (now, count, birth) if start - now > window else state


def wait_for(count: int, cost: int, rest: int, limit: int) -> int | None:
    """Microseconds until ``cost`` fits, None where it never does; ``rest`` are left of the window."""
    if count + cost <= limit:
        return 0
    return rest if cost <= limit else None


def give_back(state: State, now: int, cost: int, token: str, limit: int, window: int) -> State | None:
    """Undo a charge of ``cost`` in the window that holds it.

    :returns: the new state, or None where nothing changes: the window is over, or is another one.
    """
    rolled = roll(state, now, window)
    if rolled is None or token != rolled[2]:
        return None
    start, count, birth = rolled
    return start, max(0, count - cost), birth

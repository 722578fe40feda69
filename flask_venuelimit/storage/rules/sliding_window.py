"""The rule of :class:`~flask_venuelimit.SlidingWindow`; ``sliding_window.lua`` is its other half.

A state is ``(start, previous, current, turn, birth)``: the hits of the window that began at ``start``, the
``turn``-th since birth, and of the one before. Windows lie end to end from the key's first hit. Times are
whole microseconds.
"""

from __future__ import annotations

from .outcome import Outcome, redated

State = tuple[int, int, int, int, str]


def take(state: State | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if it fits; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    rolled = roll(state, now, window)
    start, previous, current, turn, birth = rolled or (now, 0, 0, 0, birth)
    rest = start + window - now
    # a start ahead of now has not begun to fade
    used = current - (-previous * min(rest, window) // window)
    if 0 < cost <= limit - used:
        after = (start, previous, current + cost, turn, birth)
        expires = start + 2 * window
        return Outcome(True, after, limit - used - cost, 0, rest, 0, f"{birth}:{turn}", expires)
    wait = 0 if used + cost <= limit else wait_for(previous, current, cost, rest, limit, window)
    reset = rest if rolled else 0
    # a window without a hit is followed by none that remembers it
    expires = start + (2 * window if current else window)
    return Outcome(wait == 0, redated(state, rolled, 0), max(0, limit - used), wait, reset, 0, "", expires)


def roll(state: State | None, now: int, window: int) -> State | None:
    """Bring a state to the window that holds ``now``.

    :returns: the state then, or None where it is as good as none.
    """
    if state is None:
        return None
    start, previous, current, turn, birth = state
    if now >= start + 2 * window:
        return None
    if now >= start + window:
        return (start + window, current, 0, turn + 1, birth) if current else None
    return (now, previous, current, turn, birth) if start - now > window else state


def anchor(start: int, now: int, window: int) -> int:
    """Where a window starts: a clock that stepped back leaves it, unless it is over a window away."""
    return now if start - now > window else start


def wait_for(previous: int, current: int, cost: int, rest: int, limit: int, window: int) -> int | None:
    """Microseconds until ``cost``, which does not fit now, does; None where it never does.

    :param rest: microseconds left of this window.
    """
    room = limit - current - cost
    if room >= 0:
        # the last window has to fade until only room of it counts
        return rest - room * window // previous
    if cost > limit:
        return None
    # this window has to become the last one, and fade in its turn
    return rest + window - (limit - cost) * window // current


def give_back(state: State, now: int, cost: int, token: str, limit: int, window: int) -> State | None:
    """Undo a charge of ``cost`` in the window that holds it, this one or the last.

    :returns: the new state, or None where nothing changes: neither window holds it.
    """
    start, previous, current, turn, birth = state
    if now >= start + 2 * window:
        return None
    start = anchor(start, now, window)
    if token == f"{birth}:{turn}":
        return start, previous, max(0, current - cost), turn, birth
    if token == f"{birth}:{turn - 1}" and now < start + window:
        return start, max(0, previous - cost), current, turn, birth
    return None

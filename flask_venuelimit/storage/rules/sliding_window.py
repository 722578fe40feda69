"""The rule of :class:`~flask_venuelimit.SlidingWindow`; ``sliding_window.lua`` is its other half.

A state is ``(start, previous, current, birth)``: the hits of the window that began at ``start``, and of
the one before. Windows lie end to end from the key's first hit. Times are whole microseconds.
"""

from __future__ import annotations

from .outcome import Outcome

State = tuple[int, int, int, str]


def take(state: State | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if it fits; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    rolled = roll(state, now, window)
    fresh = rolled is None
    start, previous, current, birth = rolled or (now, 0, 0, birth)
    redated = state is not None and start < state[0]
    elapsed = max(0, now - start)
    used = current - (-previous * (window - elapsed) // window)
    allowed = used + cost <= limit
    charged = allowed and cost > 0
    if charged:
        current += cost
        used += cost
    rest = start + window - now
    return Outcome(
        allowed,
        (start, previous, current, birth) if charged or redated else None,
        max(0, limit - used),
        0 if allowed else _wait(previous, current, cost, rest, limit, window),
        rest if charged or not fresh else 0,
        0,
        f"{birth}:{start}" if charged else "",
        start + 2 * window,
    )


def roll(state: State | None, now: int, window: int) -> State | None:
    """Bring a state to the window that holds ``now``.

    :returns: the state then, or None where it is as good as none.
    """
    if state is None:
        return None
    start, previous, current, birth = state
    if now >= start + 2 * window:
        return None
    if now >= start + window:
        start, previous, current = start + window, current, 0
        return (start, previous, current, birth) if previous else None
    # a clock that stepped back keeps the window where it is, unless that is over a window away
    return (now, previous, current, birth) if start - now > window else state


def _wait(previous: int, current: int, cost: int, rest: int, limit: int, window: int) -> int | None:
    """Microseconds until ``cost`` fits, which it does not now; ``rest`` are left of this window."""
    room = limit - current - cost
    if room >= 0:
        # the last window has to fade until only room of it counts
        return rest - room * window // previous
    if cost > limit:
        return None
    # this window has to become the last one, and fade in its turn
    return rest + max(0, window - (limit - cost) * window // current)


def give_back(state: State, now: int, cost: int, token: str, limit: int, window: int) -> State | None:
    """Undo a charge of ``cost`` in the window that holds it, this one or the last.

    :returns: the new state, or None where nothing changes: neither window holds it.
    """
    start, previous, current, birth = state
    if now >= start + 2 * window:
        return None
    if token == f"{birth}:{start}":
        return start, previous, max(0, current - cost), birth
    if token == f"{birth}:{start - window}":
        return start, max(0, previous - cost), current, birth
    return None

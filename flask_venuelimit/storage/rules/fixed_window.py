"""The rule of :class:`~flask_venuelimit.FixedWindow`; ``fixed_window.lua`` is its other half.

A state is ``(start, count, birth)``. A window opens at the first hit at or after the end of the last
one. Times are whole microseconds.
"""

from __future__ import annotations

from .outcome import Outcome

State = tuple[int, int, str]


def take(state: State | None, now: int, cost: int, birth: str, limit: int, window: int) -> Outcome:
    """Charge ``cost`` if it fits; a cost of 0 only looks.

    :param state: what is kept, or None.
    :param birth: names the life that starts if there is no live state.
    """
    redated = False
    if state is None or now >= state[0] + window:
        start, count, fresh = now, 0, True
    else:
        start, count, birth = state
        fresh = False
        # a clock that stepped back keeps the window where it is, unless that is over a window away
        if start - now > window:
            start, redated = now, True
    allowed = count + cost <= limit
    charged = allowed and cost > 0
    if charged:
        count += cost
    rest = start + window - now
    return Outcome(
        allowed,
        (start, count, birth) if charged or redated else None,
        max(0, limit - count),
        0 if allowed else (rest if cost <= limit else None),
        rest if charged or not fresh else 0,
        0,
        birth if charged else "",
        start + window,
    )


def give_back(state: State, now: int, cost: int, token: str, limit: int, window: int) -> State | None:
    """Undo a charge of ``cost`` in the window that holds it.

    :returns: the new state, or None where nothing changes: the window is over, or is another one.
    """
    start, count, birth = state
    if token != birth or now >= start + window:
        return None
    return start, max(0, count - cost), birth

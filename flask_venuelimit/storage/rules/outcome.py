"""What a rule answers, and the births that tell one life of a key from the next."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from ..forks import mend_in_children

State = TypeVar("State", bound=tuple[Any, ...])


class Outcome(NamedTuple):
    """What a rule's ``take`` answers; the Lua half returns the same values in the same order.

    :param allowed: whether the cost fits.
    :param state: the state to keep from now on, or None where nothing is to be written.
    :param remaining: whole hits of cost 1 that fit after this.
    :param wait: microseconds until the cost fits, 0 when it does, None (in Lua -1) where no wait helps.
    :param reset: microseconds to the end of the window, or until a bucket is full; 0 for an unused key.
    :param delay: microseconds the caller is asked to hold the request back.
    :param token: what gives this charge back; empty where nothing was charged.
    :param expires: the time, in microseconds, at which the state is as good as none.
    """

    allowed: bool
    state: tuple[Any, ...] | None
    remaining: int
    wait: int | None
    reset: int
    delay: int
    token: str
    expires: int


def redated(state: State | None, rolled: State | None, field: int) -> State | None:
    """The rolled state if its time lies before the kept one's, which only a clock far back does; else None.

    It is written even where the hit is refused, or the wait would begin anew at each hit.

    :param field: where in the state its time stands.
    """
    if state is None or rolled is None or rolled[field] >= state[field]:
        return None
    return rolled


class _Births:
    """Names no two of which are equal, in this process or another.

    A refund names the life of the key it charged. A clock cannot tell lives apart: it may stand still,
    or step back, between a reset and the hit after it.
    """

    def __init__(self) -> None:
        self.after_fork()
        mend_in_children(self)

    def after_fork(self) -> None:
        self._process = secrets.token_urlsafe(9)
        self._numbers: Iterator[int] = itertools.count()

    def __call__(self) -> str:
        return f"{self._process}.{next(self._numbers)}"


#: Call it for a fresh birth: text without spaces or colons.
new_birth = _Births()

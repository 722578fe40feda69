"""An app's functions, looked at from outside: what they are called, and what lies behind them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

from ..coverage import layers
from ..limits import STACK, Stack

#: How much of what a function closes over is looked at.
_MOST = 200


def called(function: Any) -> str:
    """What a function is called, with its module, for people who look for it."""
    if isinstance(function, partial):
        return called(function.func)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', None) or type(function).__module__}.{name}"


def listed(names: list[str], most: int = 8) -> str:
    """Names in a row, and how many more there are."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def stack_of(function: Any) -> Stack | None:
    """The limits that a function decides itself; not those that ``functools.wraps`` has copied to it."""
    stack = getattr(function, STACK, None)
    return stack if isinstance(stack, Stack) and stack.wrapper is function else None


def decorated_by_others(view: Any) -> bool:
    """Whether a decorator that is none of ours stands on a view: it may let nobody pass who is unknown."""
    return any(stack_of(each) is None for each in layers(view)[:-1])


def within(view: Any) -> Iterator[Any]:
    """A function, and those that it closes over: what it calls, if it is a decorator's."""
    todo = [view]
    seen: set[int] = set()
    while todo and len(seen) < _MOST:
        function = todo.pop()
        if id(function) not in seen:
            seen.add(id(function))
            yield function
            todo += [each for each in _closed_over(function) if isinstance(each, FunctionType)]


def _closed_over(function: Any) -> Iterator[Any]:
    for cell in getattr(function, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # a name that has no value yet
            continue

"""How the functions an app hands to us are called: async or not, and never at the cost of a request."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib.util import find_spec
from types import CellType, FunctionType
from typing import Any, TypeVar

from flask import Flask

from .errors import ConfigurationError

logger = logging.getLogger("flask_venuelimit")

_EMPTY = object()
_Callback = TypeVar("_Callback", bound=Callable[..., Any])


def is_async(function: Callable[..., Any]) -> bool:
    """Whether calling ``function`` gives a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - asked for the method itself, not whether it is there
    )


def accept(what: str, function: _Callback) -> _Callback:
    """Check a callback as it is declared, and hand it back.

    :param what: what the callback is for, as the message calls it.
    :raises ConfigurationError: it cannot be called, or it is async and Flask cannot run it.
    """
    if not callable(function):
        raise ConfigurationError(f"{what} is {function!r}, which cannot be called. Pass a function.")
    if is_async(function) and find_spec("asgiref") is None:
        raise ConfigurationError(
            f"{what} is an async function, and Flask cannot run one here. Install flask[async]."
        )
    return function


def call(app: Flask, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` to its result, awaiting it where it is async.

    :raises TypeError: a plain function returned a coroutine, or something else to be awaited.
    :raises Exception: whatever the function raises.
    """
    if not is_async(function):
        result = function(*arguments)
        if inspect.isawaitable(result):
            if inspect.iscoroutine(result):
                result.close()
            raise TypeError("it returned what has to be awaited; declare it with async def")
        return result

    async def awaited() -> Any:
        return await function(*arguments)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return app.ensure_sync(awaited)()
    # an async view runs us inside its loop, where nothing may block on that same loop
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(copy_context().run, asyncio.run, awaited()).result()


def call_or_log(app: Flask, what: str, function: Callable[..., Any], *arguments: Any, instead: Any) -> Any:
    """Call ``function``; if it raises, log that and answer ``instead``.

    The one place where what a callback raises stops: a limiter that cannot learn who is asking must not
    take the request down with it.
    """
    try:
        return call(app, function, *arguments)
    except Exception:
        logger.exception("%s raised; %r stands in for its answer", what, instead)
        return instead


def is_true(app: Flask, what: str, answer: object) -> bool:
    """Whether an app's answer is true; one that cannot tell, as a database column, is logged and is not."""
    return bool(call_or_log(app, what, bool, answer, instead=False))


def alike(one: object, other: object) -> bool:
    """Whether two values declare the same thing.

    Functions count as the same when they come from the same line with the same defaults and the same
    closed-over values: a factory that runs twice makes new function objects of one declaration.
    """
    if one is other:
        return True
    if isinstance(one, FunctionType) and isinstance(other, FunctionType):
        return _origin(one) == _origin(other)
    return bool(one == other)


def _origin(function: FunctionType) -> tuple[object, ...]:
    cells = tuple(map(_held, function.__closure__ or ()))
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells


def _held(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        # a name that the factory has not given a value yet
        return _EMPTY

"""Decorators and a key as apps have them, good and bad."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from flask import abort

Function = Callable[..., Any]


def known_late() -> str:
    """Name everybody alike, and only right before the view."""
    return "somebody"


def wrapped(view: Function) -> Function:
    """A decorator as it should be."""

    @functools.wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapper


def careless(view: Function) -> Function:
    """A decorator without functools.wraps: what it covers cannot be seen from outside."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return view(*args, **kwargs)

    return wrapper


def locked(view: Function) -> Function:
    """A decorator that lets nobody in."""

    @functools.wraps(view)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        abort(401)

    return wrapper

"""What the session tells of who is asking: the built-in ways to tell the participant and the user.

A session is signed, so what it says is known before any hook of the app, and without a look-up.
"""

from __future__ import annotations

from typing import Any

from flask import session
from flask.globals import request_ctx


def participant() -> Any:
    """The participant, as an app keeps it: ``session["participant_id"]``, or None."""
    return _first_of("participant_id")


def user() -> Any:
    """The user, as Flask-Login keeps it: ``session["_user_id"]``, else ``session["user_id"]``, or None."""
    return _first_of("_user_id", "user_id")


def _first_of(*names: str) -> Any:
    """The first of these entries in the signed session, without marking the session as accessed.

    A limiter that looks must not make Flask add ``Vary: Cookie`` to every response. Flask 3.1.3 marks
    the session when the context hands it out, earlier ones when it is read.
    """
    context = request_ctx._get_current_object()  # type: ignore[attr-defined]
    held = getattr(context, "_session", None)
    if held is None:
        held = session
    # an app's own kind of session may not say
    accessed = getattr(held, "accessed", None)
    try:
        for name in names:
            # user 0 is somebody
            if (value := held.get(name)) not in (None, ""):
                return value
    finally:
        if getattr(held, "accessed", None) is not accessed:
            held.accessed = bool(accessed)
    return None

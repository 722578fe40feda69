"""Blinker signals, each sent with the Flask app as sender."""

from __future__ import annotations

import logging
from typing import Any

from blinker import NamedSignal, Namespace
from flask import Flask

logger = logging.getLogger("flask_venuelimit")

_signals = Namespace()

#: A limit refused a request: ``decision=`` the :class:`~flask_venuelimit.Decision`.
limit_refused = _signals.signal("limit-refused")

#: The storage began to fail: ``error=`` the exception. Sent at the onset, not for each request.
storage_failed = _signals.signal("storage-failed")

#: The storage answers again.
storage_recovered = _signals.signal("storage-recovered")

#: A bounded store is full, and drops keys or counts no newcomers: ``storage=`` the store.
capacity_reached = _signals.signal("capacity-reached")


def tell(signal: NamedSignal, app: Flask, **said: Any) -> None:
    """Send a signal in an app's name; a receiver that raises must not fail the request that it hears of."""
    try:
        signal.send(app, **said)
    except Exception:
        logger.exception("a receiver of %s raised", signal.name.replace("-", "_"))

"""Blinker signals, each sent with the Flask app as sender."""

from __future__ import annotations

from blinker import Namespace

_signals = Namespace()

#: A limit refused a request: ``decision=`` the :class:`~flask_venuelimit.Decision`.
limit_refused = _signals.signal("limit-refused")

#: The storage began to fail: ``error=`` the exception. Sent at the onset, not for each request.
storage_failed = _signals.signal("storage-failed")

#: The storage answers again.
storage_recovered = _signals.signal("storage-recovered")

#: A bounded store is full, and drops keys or counts no newcomers: ``storage=`` the store.
capacity_reached = _signals.signal("capacity-reached")

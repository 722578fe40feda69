"""An app for servers of their own: one limit on one view, counted in memory."""

from __future__ import annotations

from flask_venuelimit import by_ip
from tests.commands.drilling import venue

app, limiter = venue()
app.add_url_rule("/", "home", limiter.limit("5/minute", name="it", key=by_ip)(lambda: "ok"))

"""An app for several workers, loaded before they are forked, that shows the metrics of all of them."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from flask_venuelimit import FixedWindow, VenueLimit, by_ip
from flask_venuelimit.prometheus import Metrics

application = Flask("venue", template_folder=None, static_folder=None)
application.config.from_prefixed_env()
limiter = VenueLimit(application)
Metrics(limiter, application)


@application.get("/")
@limiter.limit(FixedWindow(100_000, per=3600), name="it", key=by_ip)
def home() -> str:
    """Be limited, and say by which worker."""
    return str(os.getpid())


@application.get("/metrics")
def metrics() -> Response:
    """What all workers have counted."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return Response(generate_latest(registry), mimetype="text/plain")


def child_exit(server: Any, worker: Any) -> None:
    """Let go of what only a living worker can say; gunicorn calls this."""
    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]

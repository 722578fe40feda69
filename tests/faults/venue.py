"""An app for real servers: it has counted something before its workers are forked."""

from __future__ import annotations

import os
import socket
from typing import Any

from flask import Flask

from flask_venuelimit import FixedWindow, VenueLimit, by_ip

application = Flask("venue", template_folder=None, static_folder=None)
application.config.from_prefixed_env()
limiter = VenueLimit(application)
limit = limiter.limit(FixedWindow(300, per=3600), name="it", key=by_ip)


@application.get("/")
@limit
def home() -> str:
    """Be limited."""
    return "ok"


@application.get("/who")
@limiter.limit(FixedWindow(100_000, per=3600), name="who", key=by_ip)
def who() -> dict[str, Any]:
    """Say which process answers, and over which sockets it speaks with the storage."""
    return {"worker": os.getpid(), "master": os.getppid(), "sockets": storage_sockets()}


def storage_sockets() -> list[int]:
    """The local ports of this process's connections to the storage."""
    port = int(application.config["STORAGE_PORT"])
    return [local for local, peer in map(ends, range(3, 200)) if peer == port]


def ends(file: int) -> tuple[int, int]:
    """The ports at both ends of an open file, zeros where it is no TCP connection."""
    try:
        with socket.socket(fileno=os.dup(file)) as connection:
            return int(connection.getsockname()[1]), int(connection.getpeername()[1])
    except (OSError, IndexError, ValueError, TypeError):
        return 0, 0


# over a connection that is open when the workers are forked
limit.hit(subject="198.51.100.7")

"""The app that the chaos run tries, which tells how long each request took and why."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask

from flask_venuelimit import Concurrency, FixedWindow, VenueLimit, by_ip

#: How many requests each caller has in an hour.
LIMIT = 600


def create_app() -> Flask:
    """Make the app: a limit, a failure limit and slots on one view, and the time each request took."""
    app = Flask("chaos", template_folder=None, static_folder=None)
    app.config.from_prefixed_env()
    limiter = VenueLimit(app)
    limits = [
        limiter.limit(FixedWindow(LIMIT, per=3600), name="each", key=by_ip),
        limiter.failures(FixedWindow(LIMIT, per=3600), name="failures"),
        limiter.limit(Concurrency(3, lease=5), name="slots", key=by_ip),
    ]

    def view() -> str:
        return "ok"

    for limit in limits:
        view = limit(view)
    app.add_url_rule("/", "home", view)
    app.wsgi_app = timed(app.wsgi_app)  # type: ignore[method-assign]
    return app


class Canary:
    """A thread that wakes a hundred times a second, and so knows when the machine lets nobody run."""

    def __init__(self) -> None:
        self._beat = time.perf_counter()
        self._late: deque[tuple[float, float]] = deque(maxlen=300)
        threading.Thread(target=self._watch, daemon=True).start()

    def late(self, since: float) -> float:
        """By how many seconds it was kept from waking since a moment, all in all."""
        kept = [late for at, late in tuple(self._late) if at >= since]
        return sum(kept) + max(0.0, time.perf_counter() - self._beat - 0.01)

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            self._beat = time.perf_counter()
            pause.wait(0.01)
            now = time.perf_counter()
            self._late.append((now, now - self._beat - 0.01))


#: One a process, begun after the fork.
canary = cache(Canary)
#: What Linux tells of a thread: nanoseconds that it ran, and that it was ready and waited for a processor.
SCHEDULED = Path("/proc/thread-self/schedstat")


def waited() -> float:
    """Seconds that this thread has waited for a processor so far, where the system tells."""
    return int(SCHEDULED.read_text().split()[1]) / 1e9 if SCHEDULED.exists() else 0.0


def timed(inner: Any) -> Any:
    """Tell in header fields how long the app took, and how long of that the machine let nobody run."""

    def outer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        watch, before, began = canary(), waited(), time.perf_counter()

        def started(status: str, fields: list[tuple[str, str]], *error: Any) -> Any:
            spent = time.perf_counter() - began
            late = max(watch.late(began), waited() - before)
            told = {
                "X-Spent": f"{spent:.4f}",
                "X-Late": f"{late:.4f}",
                "X-Worker": str(os.getpid()),
            }
            return start(status, [*fields, *told.items()], *error)

        answer: Iterable[bytes] = inner(environ, started)
        return answer

    return outer

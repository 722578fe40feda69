"""What limits add to a request, beside Flask-Limiter in the same run.

    python -m benchmarks.request_cost [--rounds 25] [--requests 400]

Every app is called through its WSGI callable, so that no server's cost is measured. Rounds of all apps are
interleaved, and the fastest of each is shown: in this process's own processor time, and by the wall clock,
which counts a server's work as well. Ratios are what to read: a machine's microseconds are its own. A real
Valkey or Redis server is started for the rows that need one, and the commands it ran are counted.

Needs the extras ``test`` and ``benchmark``.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any, NamedTuple

from flask import Flask
from flask_limiter import Limiter
from flask_limiter.util import get_remote_address

from benchmarks.apps import bare, call
from flask_venuelimit import SlidingWindow, VenueLimit, by_ip
from tests.servers import StoreServer

PLENTY = 1_000_000_000


class Subject(NamedTuple):
    """One app under measure."""

    name: str
    app: Flask
    storage: bool = False


def ours(uri: str | None, limits: int, *, everywhere: bool = True, headers: bool = True) -> Flask:
    """Make the same app under our limits, all by address and wide enough to admit everything."""
    app = bare()
    app.config["VENUELIMIT_STORAGE_URI"] = uri
    if not headers:
        app.config["VENUELIMIT_HEADERS"] = ()
    limiter = VenueLimit(app)
    for number in range(limits):
        limit = limiter.limit(SlidingWindow(PLENTY, 60 + number), name=f"limit-{number}", key=by_ip)
        if everywhere:
            limit.everywhere()
    return app


def theirs(uri: str, limits: int, *, strategy: str = "sliding-window-counter") -> Flask:
    """Make the same app under Flask-Limiter, with headers."""
    app = bare()
    rates: list[Any] = [f"{PLENTY} per {60 + number} seconds" for number in range(limits)]
    Limiter(
        get_remote_address,
        app=app,
        storage_uri=uri,
        application_limits=rates,
        headers_enabled=True,
        strategy=strategy,
    )
    return app


def ours_decorated(uri: str) -> Flask:
    """Make the same app with one of our limits on its view."""
    app = bare()
    app.config["VENUELIMIT_STORAGE_URI"] = uri
    limit = VenueLimit(app).limit(SlidingWindow(PLENTY, 60), key=by_ip)
    app.view_functions["index"] = limit(app.view_functions["index"])
    return app


def theirs_decorated(uri: str) -> Flask:
    """Make the same app with one limit of Flask-Limiter's on its view, with headers."""
    app = bare()
    limiter = Limiter(
        get_remote_address,
        app=app,
        storage_uri=uri,
        headers_enabled=True,
        strategy="sliding-window-counter",
    )
    decorated: Any = limiter.limit(f"{PLENTY} per 60 seconds")
    app.view_functions["index"] = decorated(app.view_functions["index"])
    return app


class Cost(NamedTuple):
    """Microseconds a request."""

    processor: float
    wall: float


def measure(subjects: list[Subject], rounds: int, requests: int) -> dict[str, Cost]:
    """Give what a request to each app costs: the fastest of interleaved rounds."""
    calls = {subject.name: call(subject.app) for subject in subjects}
    taken: dict[str, list[Cost]] = {name: [] for name in calls}
    for send in calls.values():
        for _ in range(50):
            send()
    for _ in range(rounds):
        for name, send in calls.items():
            wall, processor = time.perf_counter(), time.process_time()
            for _ in range(requests):
                send()
            spent = time.process_time() - processor, time.perf_counter() - wall
            taken[name].append(Cost(*(seconds / requests * 1e6 for seconds in spent)))
    return {
        name: Cost(min(cost.processor for cost in costs), min(cost.wall for cost in costs))
        for name, costs in taken.items()
    }


def commands(client: Any, app: Flask, requests: int = 100) -> float:
    """Count the commands a server ran for one request."""
    send = call(app)
    send()
    client.config_resetstat()
    for _ in range(requests):
        send()
    stats = client.info("commandstats")
    own = {"cmdstat_config|resetstat", "cmdstat_info"}
    # what a script does inside is no round trip, and counts under the commands' own names
    scripted = {"cmdstat_get", "cmdstat_set", "cmdstat_pttl", "cmdstat_time", "cmdstat_pexpire"}
    sent: dict[str, float] = {name: row["calls"] for name, row in stats.items() if name not in own | scripted}
    return sum(sent.values()) / requests


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=400)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    with StoreServer() as server:
        report(server, arguments.rounds, arguments.requests)


def report(server: StoreServer, rounds: int, requests: int) -> None:
    """Measure every app, and print what each adds to the bare one."""
    uri = server.url
    subjects = [
        Subject("bare Flask", bare()),
        Subject("venuelimit, no storage", ours(None, 1)),
        Subject("venuelimit, memory, nothing covers", ours("memory://", 1, everywhere=False)),
        Subject("venuelimit, memory, 1 limit", ours("memory://", 1)),
        Subject("venuelimit, memory, 1 limit, no headers", ours("memory://", 1, headers=False)),
        Subject("Flask-Limiter, memory, 1 limit", theirs("memory://", 1)),
        Subject("Flask-Limiter, memory, 1 fixed window", theirs("memory://", 1, strategy="fixed-window")),
        Subject("venuelimit, memory, 1 on the view", ours_decorated("memory://")),
        Subject("Flask-Limiter, memory, 1 on the view", theirs_decorated("memory://")),
        Subject("venuelimit, memory, 3 limits", ours("memory://", 3)),
        Subject("Flask-Limiter, memory, 3 limits", theirs("memory://", 3)),
        Subject("venuelimit, Redis, 1 limit", ours(uri, 1), True),
        Subject("venuelimit, Redis, 3 limits", ours(uri, 3), True),
        Subject("Flask-Limiter, Redis, 3 limits", theirs(uri, 3), True),
        Subject("Flask-Limiter, Redis, 3 fixed windows", theirs(uri, 3, strategy="fixed-window"), True),
    ]
    costs = measure(subjects, rounds, requests)
    base = costs["bare Flask"]
    print(f"{'':44}{'processor µs':>14}{'added':>8}{'wall µs':>10}{'added':>8}{'commands':>10}")
    for subject in subjects:
        cost = costs[subject.name]
        sent = f"{commands(server.client(), subject.app):.2f}" if subject.storage else ""
        print(
            f"{subject.name:44}{cost.processor:14.1f}{cost.processor - base.processor:+8.1f}"
            f"{cost.wall:10.1f}{cost.wall - base.wall:+8.1f}{sent:>10}"
        )


if __name__ == "__main__":
    main()

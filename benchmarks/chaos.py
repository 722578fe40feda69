"""A server that is killed, frozen, flushed and brought back at random, under four workers and a load.

    python -m benchmarks.chaos [--seconds 300] [--seed 1]

Held against what came back: no 5xx and no connection refused; no request that was kept for longer than the
storage's time-outs; and in each life of the server no more requests of a caller admitted and counted than the
limit. Exit 1 if one does not hold. What passed uncounted is told: it may, while the storage is down and for
the rest of the breaker's pause.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from http.client import HTTPConnection, HTTPException
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.chaos_app import LIMIT
from tests.servers import StoreServer, run_gunicorn

CALLERS = [f"198.51.100.{number}" for number in range(4)]
CLIENTS = 12
#: Seconds a request may wait for the storage: to connect, and for an answer.
BUDGET = 0.35


class Answer(NamedTuple):
    """What one request got: status 0 where nobody answered; ``counted`` where it says what is left.

    :param spent: seconds in the app.
    :param late: seconds of these in which the machine was busy with something else.
    """

    at: float
    caller: str
    status: int
    counted: bool
    spent: float
    late: float
    worker: str


class Event(NamedTuple):
    """Something that was done to the server."""

    at: float
    what: str


def ask(address: str, caller: str, answers: list[Answer], until: float) -> None:
    """Send one request after the other."""
    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=10)
    sent = 0
    while time.monotonic() < until:
        sent += 1
        if sent % 10 == 0:
            # to be taken up by another worker
            connection.close()
        try:
            connection.request("GET", "/", headers={"X-Forwarded-For": caller})
            answer = connection.getresponse()
            answer.read()
        except (OSError, HTTPException):
            connection.close()
            answers.append(Answer(time.monotonic(), caller, 0, False, 0.0, 0.0, ""))
            continue
        counted = re.search(r'"each";r=\d+', answer.headers.get("RateLimit", "")) is not None
        spent, late = (float(answer.headers[name]) for name in ("X-Spent", "X-Late"))
        worker = answer.headers["X-Worker"]
        answers.append(Answer(time.monotonic(), caller, answer.status, counted, spent, late, worker))


def torment(server: StoreServer, chance: random.Random, until: float) -> list[Event]:
    """Do things to a server, and leave it well."""
    events = [Event(time.monotonic(), "up")]
    pause = threading.Event()

    def note(what: str) -> None:
        events.append(Event(time.monotonic(), what))

    while time.monotonic() < until - 6:
        pause.wait(chance.uniform(1, 6))
        what = chance.choice(["killed", "killed", "frozen", "frozen", "flushed", "cut off"])
        note(what)
        if what == "killed":
            server.kill()
            pause.wait(chance.uniform(0, 3))
            server.start()
            note("up")
        elif what == "frozen":
            server.pause()
            pause.wait(chance.uniform(0.1, 3))
            server.resume()
            note("thawed")
        else:
            with server.client() as client:
                client.script_flush() if what == "flushed" else client.client_kill_filter(_type="normal")
    return events


def down(events: list[Event]) -> list[tuple[float, float]]:
    """When the storage was down: from, and until; a connection that is cut is down for a moment."""
    spans = []
    for event, following in pairwise([*events, Event(events[-1].at + 1, "end")]):
        if event.what in ("killed", "frozen"):
            spans.append((event.at, following.at))
        elif event.what == "cut off":
            spans.append((event.at, event.at))
    return spans


def pauses(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """How long the breaker may keep requests from asking, at the longest, on from each outage.

    A pause is at most a second longer than all that came before it, back to the first failure. One that an
    outage falls into goes on from there.
    """
    found: list[tuple[float, float]] = []
    for began, ended in spans:
        first = found[-1][0] if found and began <= found[-1][1] else began
        found.append((first, ended + (ended - first) + 1.5))
    return found


def where(at: float, spans: list[tuple[float, float]], after: list[tuple[float, float]]) -> str:
    """Whether a moment lies in an outage, in a pause that may follow it, or in neither."""
    if any(began <= at <= ended + 0.05 for began, ended in spans):
        return "down"
    return "pause" if any(began <= at <= ended for began, ended in after) else "up"


def over(answers: list[Answer], events: list[Event]) -> list[tuple[str, int]]:
    """The callers of whom more was admitted and counted than the limit in one life of the server."""
    lives = [event.at for event in events if event.what == "up"]
    admitted: Counter[tuple[int, str]] = Counter()
    for answer in answers:
        if answer.status == 200 and answer.counted:
            life = sum(began <= answer.at for began in lives)
            admitted[life, answer.caller] += 1
    return [(caller, count) for (_, caller), count in admitted.items() if count > LIMIT]


def held(workers: Iterable[str]) -> list[tuple[int, int]]:
    """Open files and kilobytes of each worker, where the system tells."""
    found = []
    for worker in sorted(workers):
        proc = Path("/proc", worker)
        if worker and proc.exists():
            resident = re.search(r"VmRSS:\s+(\d+)", (proc / "status").read_text())
            found.append((len(list((proc / "fd").iterdir())), int(resident[1]) if resident else 0))
    return found


def run(seconds: float, seed: int) -> tuple[list[Answer], list[Event], list[Any], list[Any], str]:
    """Let it go on for so long; what workers held early and late, and what they logged."""
    answers: list[Answer] = []
    with StoreServer() as server:
        settings: dict[str, Any] = {
            "FLASK_SECRET_KEY": "chaos",
            "FLASK_VENUELIMIT_STORAGE_URI": server.hasty_url,
            "FLASK_VENUELIMIT_TRUSTED_PROXIES": "127.0.0.1",
        }
        options = ("--workers", "4", "--threads", "4", "--preload")
        factory = "benchmarks.chaos_app:create_app()"
        with run_gunicorn(factory, *options, worker="gthread", **settings) as served:
            until = time.monotonic() + seconds
            clients = [
                threading.Thread(
                    target=ask, args=(served.address, CALLERS[number % 4], answers, until), daemon=True
                )
                for number in range(CLIENTS)
            ]
            for client in clients:
                client.start()
            threading.Event().wait(2)
            early = held({answer.worker for answer in answers})
            events = torment(server, random.Random(seed), until)
            for client in clients:
                client.join()
            late = held({answer.worker for answer in answers})
            return answers, events, early, late, served.log.read_text()


def report(
    answers: list[Answer], events: list[Event], early: list[Any], late: list[Any], log: str
) -> list[str]:
    """Print the figures; give what did not hold."""
    statuses = Counter(answer.status for answer in answers)
    spans = down(events)
    after = pauses(spans)
    uncounted = Counter(where(a.at, spans, after) for a in answers if a.status == 200 and not a.counted)
    spent = sorted(answer.spent for answer in answers)
    slow = [answer for answer in answers if answer.spent - answer.late > BUDGET]
    too_many = over(answers, events)
    print(f"what happened       {dict(Counter(event.what for event in events))}")
    lasted = events[-1].at - events[0].at
    print(f"seconds in all      {lasted:.0f}, load of the machine at the end {os.getloadavg()[0]:.1f}")
    print(f"storage was down    {sum(ended - began for began, ended in spans):.1f} s in {len(spans)} outages")
    print(f"requests            {len(answers):,}: {dict(sorted(statuses.items()))}")
    print(f"passed uncounted    {dict(uncounted)}")
    print(f"admitted too many   {too_many or 'never'}")
    ranks = {"half": 0.5, "99 %": 0.99, "99.9 %": 0.999}
    quantiles = ", ".join(
        f"{name} in {spent[int(len(spent) * share)] * 1e3:.1f} ms" for name, share in ranks.items()
    )
    waited = sum(value > 0.09 for value in spent)
    print(f"time in the app     {quantiles}, the slowest {spent[-1] * 1e3:.1f} ms; {waited} waited")
    worst = max(answers, key=lambda answer: answer.spent)
    print(f"                    of which the machine let nobody run for {worst.late * 1e3:.1f} ms")
    print(f"over the budget     {len(slow)}")
    onsets = Counter(re.findall(r"does not answer \((\w+)", log))
    print(f"told                {dict(onsets)}, {log.count('answers again')} recoveries")
    print(f"workers (files, KB) at first {early}, at the end {late}")
    bad = sum(count for status, count in statuses.items() if status not in (200, 429))
    checks = {"statuses": bad, "over the limit": len(too_many), "over the budget": len(slow)}
    return [f"{name}: {count}" for name, count in checks.items() if count]


def main() -> None:
    """Run, print, and say by the exit code whether all held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    # so that servers and workers are ended, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = report(*run(arguments.seconds, arguments.seed))
    print("held" if not failed else f"did not hold: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

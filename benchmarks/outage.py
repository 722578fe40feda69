"""What an outage of the storage costs: the wait once, then next to nothing, and no leak.

    python -m benchmarks.outage [--requests 100000]

1. The server freezes. How long does the first request wait, and what does each of the next thousand cost
   more than in the same app without limits?
2. It goes on. How long after that does a request find out?
3. It flaps: for many requests it is cut off, falls silent, is refused and comes back in turn, and the clock
   is moved so that each time somebody finds out. What is left open, and how does the memory grow?
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import NamedTuple

from flask import Flask

from benchmarks.apps import bare, call
from flask_venuelimit import SlidingWindow, VenueLimit, by_ip, storage_failed
from flask_venuelimit.storage import open_storage
from flask_venuelimit.testing import ManualClock
from tests.faults.proxy import Proxy
from tests.servers import StoreServer

PLENTY = 1_000_000_000
THOUSAND = 1000


def limited(uri: str, clock: ManualClock | None = None) -> Flask:
    """Make an app with one view under one limit and one failure limit, each with plenty of room."""
    app = bare()
    limiter = VenueLimit(app, storage=open_storage(uri, clock=clock))
    limiter.limit(SlidingWindow(PLENTY, 60), name="all", key=by_ip).everywhere()
    limiter.failures(SlidingWindow(PLENTY, 60), name="failures").everywhere()
    return app


def seconds(send: Callable[[], None]) -> float:
    """How long one request takes."""
    began = time.perf_counter()
    send()
    return time.perf_counter() - began


def each(send: Callable[[], None], requests: int = THOUSAND) -> float:
    """Microseconds of the processor a request: the median of ten parts."""
    part, taken = requests // 10, []
    for _ in range(10):
        began = time.process_time()
        for _ in range(part):
            send()
        taken.append(time.process_time() - began)
    return sorted(taken)[5] / part * 1e6


class Silence(NamedTuple):
    """What a frozen server costs.

    :param first: milliseconds that the first request takes.
    :param added: microseconds of the processor that each of the next thousand costs more than one without
        limits.
    :param noticed: milliseconds between the server's going on and the first request that is counted.
    :param pause: milliseconds that the breaker's pause had left when it went on.
    """

    first: float
    added: float
    noticed: float
    pause: float


def silence() -> Silence:
    """Freeze a server, ask on, and let it go on."""
    with StoreServer() as server:
        app = limited(server.hasty_url)
        send, plain = call(app), call(bare())
        for _ in range(200):
            send()
            plain()
        guarded = app.extensions["venuelimit"].storage.shared
        without = min(each(plain) for _ in range(5))
        server.pause()
        first = seconds(send) * 1e3
        # at once, within the pause: what comes after it would probe
        while_open = each(send)
        server.resume()
        pause, began = guarded.breaker.remaining(), time.perf_counter()
        while guarded.breaker.open:
            send()
        return Silence(first, while_open - without, (time.perf_counter() - began) * 1e3, pause * 1e3)


class Held(NamedTuple):
    """What a process holds: open files, threads, kilobytes of Python objects; and the server's clients."""

    files: int
    threads: int
    kilobytes: float
    clients: int


def held(server: StoreServer) -> Held:
    """Count."""
    gc.collect()
    with server.client() as client:
        clients = client.info("clients")["connected_clients"]
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else -1
    return Held(files, threading.active_count(), tracemalloc.get_traced_memory()[0] / 1024, clients)


def flaps(proxy: Proxy) -> Iterator[None]:
    """Let the way to a server fail and heal, in turn, for ever."""

    def answer(text: bytes) -> None:
        proxy.carry = lambda _: text

    def heal() -> None:
        proxy.carry = bytes
        proxy.reset()

    turns: list[tuple[Callable[[], None], Callable[[], None]]] = [
        (proxy.reset, heal),
        (proxy.refuse, proxy.listen),
        (lambda: answer(b"-LOADING\r\n"), heal),
        (lambda: answer(b"+nonsense\r\n"), heal),
    ]
    for begin, end in cycle(turns):
        begin()
        yield
        end()
        yield


def flapping(requests: int, every: int = 10) -> tuple[Held, Held, int]:
    """Ask so many times while the server flaps; what was held after the first tenth and at the end.

    :returns: the two, and how many failures there were.
    """
    failures: list[Exception] = []

    def fail(_: Flask, error: Exception) -> None:
        failures.append(error)

    with StoreServer() as server, Proxy(server.port) as proxy, storage_failed.connected_to(fail):
        clock = ManualClock()
        app = limited(proxy.url, clock)
        send, flap = call(app), flaps(proxy)
        tracemalloc.start()
        early = held(server)
        for number in range(requests):
            if number % every == 0:
                next(flap)
            if number == requests // 10:
                failures.clear()
                early = held(server)
            clock.advance(1)
            send()
        count = len(failures)
        failures.clear()
        late = held(server)
        tracemalloc.stop()
        return early, late, count


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--requests", type=int, default=100_000)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    cost = silence()
    print(f"the first request to a frozen server waits      {cost.first:8.1f} ms")
    print(f"each of the next thousand adds, processor       {cost.added:8.1f} µs")
    print(f"when it goes on, that is noticed after          {cost.noticed:8.1f} ms")
    print(f"  of the pause, there were left                 {cost.pause:8.1f} ms")
    early, late, failures = flapping(arguments.requests)
    print(
        f"{arguments.requests:,} requests of flapping; in the last nine tenths {failures:,} outages were told"
    )
    for name, before, after in zip(Held._fields, early, late, strict=True):
        print(f"  {name:10} held after a tenth {before:10.1f}   at the end {after:10.1f}")


if __name__ == "__main__":
    main()

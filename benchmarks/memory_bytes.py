"""How many bytes a key takes, for each policy, in this process and on a server.

    python -m benchmarks.memory_bytes [--keys 10000]

In this process: what tracemalloc counts for that many keys, each hit as often as the row says, divided by
the keys; keys are as long as an app's. "flooded" is the same store after four times as many keys have come
and gone, with all that is kept about the order in which keys go. On a server: MEMORY USAGE of one such key.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import redis

from flask_venuelimit import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    MemoryStorage,
    RedisStorage,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import Policy
from flask_venuelimit.storage.sketch import SketchStorage
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer


class Row(NamedTuple):
    """A policy, and how often each key is hit."""

    policy: Policy
    hits: int

    @property
    def name(self) -> str:
        """The kind, and the entries it holds if it holds any."""
        entries = isinstance(self.policy, (SlidingLog, Concurrency))
        return f"{self.policy.kind}, {self.hits} entries" if entries else self.policy.kind


ROWS = (
    Row(FixedWindow(10, per=60), 2),
    Row(SlidingWindow(10, per=60), 2),
    Row(TokenBucket(10, rate=1), 2),
    Row(LeakyBucket(rate=1, max_delay=9), 2),
    Row(SlidingLog(10, per=60), 1),
    Row(SlidingLog(20, per=60), 20),
    Row(SlidingLog(1_000, per=60), 1_000),
    Row(Concurrency(10), 1),
    Row(Concurrency(20), 20),
)


def key(number: int) -> str:
    """Make a key as long as an app's."""
    return f"venuelimit:{{{number:022d}}}:AAAAAAAAAAA"


def hit(store: Any, row: Row, number: int) -> None:
    """Hit one key as often as the row says."""
    for _ in range(row.hits):
        store.decide([Charge((Cell(key(number), row.policy),))])


def traced(work: Callable[[], object]) -> int:
    """Give the bytes that ``work`` leaves allocated, as long as what it returns lives."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    left = work()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del left
    return after - before


def in_this_process(row: Row, keys: int, times: int = 1) -> float:
    """Give the bytes a key takes in a store that holds ``keys``, of ``times`` as many that came."""

    def fill() -> MemoryStorage:
        store = MemoryStorage(keys, clock=ManualClock())
        for number in range(keys * times):
            hit(store, row, number)
        return store

    return traced(fill) / keys


def on_a_server(client: redis.Redis, row: Row) -> int:
    """Give what a server says that one key takes."""
    client.flushall()
    hit(RedisStorage(client), row, 1)
    return int(client.memory_usage(key(1), samples=0) or 0)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--keys", type=int, default=10_000)
    keys = parser.parse_args().keys
    print(f"{'bytes a key':32}{'process':>10}{'flooded':>10}{'server':>10}")
    with StoreServer() as server, server.client() as client:
        for row in ROWS:
            some = max(100, keys // row.hits)
            cells = (in_this_process(row, some), in_this_process(row, some, 4), on_a_server(client, row))
            print(f"{row.name:32}" + "".join(f"{cell:10.0f}" for cell in cells))
    for mebibytes in (1, 8):
        taken = traced(lambda size=mebibytes: SketchStorage(size))  # type: ignore[misc]
        print(f"memory://?sketch={mebibytes}: {taken / 2**20:.2f} MiB before the first hit")


if __name__ == "__main__":
    main()

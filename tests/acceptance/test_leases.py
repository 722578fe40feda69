"""Slots and their leases: one that nobody gives back lapses, and a body that is streamed renews its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import redis
from flask import Flask

from flask_venuelimit import Concurrency, Limit, RedisStorage, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, commands, left, statuses
from tests.acceptance.streams import add_answers, add_stream, chunks, started
from tests.servers import StoreServer, wait_until

LEASE = 60
WORKER = """
import sys
from flask import Flask
from flask_venuelimit import Concurrency, VenueLimit, by_ip
app = Flask("venue")
app.config.update(SECRET_KEY="long and random", VENUELIMIT_STORAGE_URI=sys.argv[1])
limiter = VenueLimit(app)
limit = limiter.limit(Concurrency(1, lease=2), name="slots", key=by_ip)

@app.get("/")
@limit
def home():
    print("inside", flush=True)
    return sys.stdin.read()

app.test_client().get("/", environ_base={"REMOTE_ADDR": "198.51.100.7"})
"""


@pytest.fixture
def one(app: Flask, limiter: VenueLimit, tmp_path: Path) -> Limit:
    """One request at a time of every sort of answer, for sixty seconds at most."""
    limit = limiter.limit(Concurrency(1, lease=LEASE), name="slots", key=by_ip)
    add_answers(app, limit, tmp_path)
    return limit


def test_a_slot_that_nobody_gives_back_lapses(app: Flask, one: Limit, clock: ManualClock) -> None:
    """A worker that died: sixty seconds after it was taken, and not a moment earlier, it is free."""
    lost = started(app, "generator")
    clock.advance(LEASE - 0.000001)
    assert statuses(caller(app), "/plain", 1) == [429]
    clock.advance(0.000001)
    assert statuses(caller(app), "/plain", 1) == [200]
    lost.close()


def test_a_lapsed_slot_that_is_given_back_late_is_nobody_else_s(
    app: Flask, one: Limit, clock: ManualClock
) -> None:
    """Its end frees nothing, and it is not revived by streaming on."""
    late = started(app, "generator")
    clock.advance(LEASE)
    other = started(app, "generator")
    b"".join(chunks(late))
    late.close()
    assert left(one) == 0
    other.close()
    assert left(one) == 1


def test_a_stream_renews_its_slot_as_it_yields(app: Flask, one: Limit, clock: ManualClock) -> None:
    """Three leases long it is held, and it lapses one lease after the last chunk."""
    add_stream(app, one, None, *[lambda: clock.advance(50)] * 3)
    answer = started(app, "stream")
    body = chunks(answer)
    for _ in range(4):
        next(body)
        assert left(one) == 0
    clock.advance(LEASE - 1)
    assert left(one) == 0
    clock.advance(1)
    assert left(one) == 1
    answer.close()


def test_a_stream_whose_view_took_long_renews_in_time(app: Flask, one: Limit, clock: ManualClock) -> None:
    """What counts is when the slot was taken, not when the body began."""

    add_stream(app, one, *[lambda: clock.advance(0.5)] * 8)
    app.before_request(lambda: clock.advance(LEASE - 2))
    answer = started(app, "stream")
    for _ in chunks(answer):
        assert left(one) == 0
    assert (clock(), left(one)) == (LEASE + 2, 1)
    answer.close()


def test_renewing_is_not_a_command_a_chunk(
    app: Flask, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """A body of many quick chunks is one decision and one release; a slow one renews now and then."""
    limiter = VenueLimit(app, storage=valkey_client)
    limit = limiter.limit(Concurrency(1, lease=LEASE), name="slots", key=by_ip)
    add_stream(app, limit, *[None] * 200)
    caller(app).get("/stream", buffered=True)
    with commands(valkey_client) as sent:
        answer = caller(app).get("/stream", buffered=True)
    assert (answer.data, len(sent)) == (b"x" * 200, 2)


def test_several_slots_are_renewed_and_given_back_in_one_command_each(
    app: Flask, valkey_client: redis.Redis, clock: ManualClock
) -> None:
    """Two limits, one decision, one renewal, one release."""
    limiter = VenueLimit(app, storage=RedisStorage(valkey_client, clock=clock))
    one, two = (limiter.limit(Concurrency(1, lease=LEASE), name=name, key=by_ip) for name in ("one", "two"))

    def both(view: Any) -> Any:
        return one(two(view))

    add_stream(app, both, None, lambda: clock.advance(40), lambda: clock.advance(1), None)  # type: ignore[arg-type]
    caller(app).get("/stream", buffered=True)
    with commands(valkey_client) as sent:
        assert caller(app).get("/stream", buffered=True).data == b"xxxx"
    assert len(sent) == 3
    assert (left(one), left(two)) == (1, 1)


def test_a_killed_worker_s_slot_lapses(app: Flask, valkey: StoreServer, valkey_client: redis.Redis) -> None:
    """A process that dies in the middle of a view blocks its slot for the lease, and no longer."""
    app.config["VENUELIMIT_STORAGE_URI"] = valkey.url
    limit = VenueLimit(app).limit(Concurrency(1, lease=2), name="slots", key=by_ip)
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, valkey.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"inside\n"
        assert left(limit) == 0
        worker.kill()
    wait_until(lambda: limit.hit(subject=C).allowed, 5, what="the slot lapses")


def test_a_storage_that_dies_meanwhile_breaks_no_stream(
    app: Flask, server: StoreServer, tmp_path: Path
) -> None:
    """Neither the renewal nor the release that fails reaches whoever reads the body."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    limit = VenueLimit(app).limit(Concurrency(1), name="slots", key=by_ip)
    add_stream(app, limit, None, server.kill, None)
    answer = started(app, "stream")
    assert b"".join(chunks(answer)) == b"xxx"
    answer.close()
    assert statuses(caller(app), "/stream", 1, buffered=True) == [200]

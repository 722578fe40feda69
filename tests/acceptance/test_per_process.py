"""``per_process=True``: a cheap first filter in this process, under the ceiling that all processes share."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from flask import Flask

from flask_venuelimit import Decision, FixedWindow, Limit, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, commands, items, left, statuses
from tests.servers import StoreServer

OTHER_PROCESS = """
import sys
from flask import Flask
from flask_venuelimit import VenueLimit, by_ip
app = Flask("venue")
app.config.update(SECRET_KEY="long and random", VENUELIMIT_STORAGE_URI=sys.argv[1])
limiter = VenueLimit(app)
near = limiter.limit("2/minute", name="near", key=by_ip, per_process=True)
far = limiter.limit("3/minute", name="far", key=by_ip)
app.add_url_rule("/", "home", near(far(lambda: "ok")))
client = app.test_client()
print([client.get("/", environ_base={"REMOTE_ADDR": "198.51.100.7"}).status_code for _ in range(3)])
"""


def near_and_far(app: Flask, limiter: VenueLimit, near: int, far: int, **terms: Any) -> tuple[Limit, Limit]:
    """Put so many requests a minute in this process, and so many in all, on ``/``."""
    here = limiter.limit(FixedWindow(near, 60), name="near", key=by_ip, per_process=True, **terms)
    all_ = limiter.limit(FixedWindow(far, 60), name="far", key=by_ip)
    app.add_url_rule("/", "home", here(all_(lambda: "ok")))
    return here, all_


def test_each_process_counts_for_itself(app: Flask, valkey: StoreServer, valkey_client: redis.Redis) -> None:
    """Two may pass here and two in another process, until the ceiling of three in all is reached."""
    app.config["VENUELIMIT_STORAGE_URI"] = valkey.url
    limiter = VenueLimit(app)
    near = limiter.limit("2/minute", name="near", key=by_ip, per_process=True)
    far = limiter.limit("3/minute", name="far", key=by_ip)
    app.add_url_rule("/", "home", near(far(lambda: "ok")))
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    other = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, valkey.url], check=True, capture_output=True, text=True
    )
    assert other.stdout.strip() == "[200, 429, 429]"


def test_the_first_filter_refuses_and_is_shown(app: Flask, limiter: VenueLimit) -> None:
    """It is a limit like any other: it refuses, waits, and stands in the header fields."""
    near_and_far(app, limiter, near=2, far=9)
    client = caller(app)
    assert items(client.get("/"), "RateLimit") == {"near": {"r": 1, "t": 60}, "far": {"r": 8, "t": 60}}
    client.get("/")
    refused = client.get("/")
    assert (refused.status_code, refused.get_json()["limit"]) == (429, "near")
    assert refused.headers["Retry-After"] == "60"


def test_a_flood_it_refuses_spares_the_server(
    app: Flask, limiter: VenueLimit, valkey_client: redis.Redis
) -> None:
    """What passes is one command, what the filter refuses is none."""
    limiter = VenueLimit(storage=valkey_client)
    other = Flask("other", template_folder=None)
    other.config["SECRET_KEY"] = "s"
    limiter.init_app(other)
    near_and_far(other, limiter, near=3, far=99)
    statuses(caller(other, "203.0.113.1"), "/", 1)
    with commands(valkey_client) as sent:
        assert statuses(caller(other), "/", 50) == [200] * 3 + [429] * 47
    assert sent == ["EVALSHA"] * 3


def test_alone_it_needs_no_server(app: Flask, valkey_client: redis.Redis) -> None:
    """Where all limits of a point are this process's, nothing is sent, and no key is left behind."""
    limiter = VenueLimit(app, storage=valkey_client)
    near = limiter.limit("2/minute", name="near", key=by_ip, per_process=True)
    app.add_url_rule("/", "home", near(lambda: "ok"))
    with commands(valkey_client) as sent:
        assert statuses(caller(app), "/", 3) == [200, 200, 429]
        near.reset(C)
        near.refund(near.hit(subject=C))
    assert set(sent) <= {"DEL"}
    assert valkey_client.keys() == []


def test_what_the_filter_refuses_is_not_charged_to_the_ceiling(app: Flask, limiter: VenueLimit) -> None:
    """All or none: the shared count holds what passed."""
    near, far = near_and_far(app, limiter, near=2, far=9)
    assert statuses(caller(app), "/", 5) == [200, 200, 429, 429, 429]
    assert (left(near), left(far)) == (0, 7)


def test_what_the_ceiling_refuses_is_not_charged_to_the_filter(app: Flask, limiter: VenueLimit) -> None:
    """The other way round as well: what another process used up costs nothing here."""
    near, far = near_and_far(app, limiter, near=9, far=2)
    assert statuses(caller(app), "/", 5) == [200, 200, 429, 429, 429]
    assert (left(near), left(far)) == (7, 0)


@pytest.mark.parametrize(("near", "far"), [(20, 99), (99, 20)])
def test_all_or_none_holds_across_both_under_threads(
    app: Flask, limiter: VenueLimit, near: int, far: int
) -> None:
    """Eight threads, eighty requests: twenty pass, and both counts hold exactly those."""
    limits = near_and_far(app, limiter, near=near, far=far)
    with ThreadPoolExecutor(8) as pool:
        seen = [
            status for some in pool.map(lambda _: statuses(caller(app), "/", 10), range(8)) for status in some
        ]
    assert (seen.count(200), seen.count(429)) == (20, 60)
    assert [left(limit) for limit in limits] == [near - 20, far - 20]


def test_a_refusal_of_the_ceiling_shows_what_the_filter_has_left(app: Flask, limiter: VenueLimit) -> None:
    """On a refusal each limit shows its true room."""
    near_and_far(app, limiter, near=9, far=2)
    client = caller(app)
    statuses(client, "/", 2)
    refused = client.get("/")
    assert refused.get_json()["violated-policies"] == ["far"]
    assert {name: item["r"] for name, item in items(refused, "RateLimit").items()} == {"near": 7, "far": 0}


def test_a_refusal_of_the_ceiling_opens_no_window_here(
    app: Flask, limiter: VenueLimit, clock: ManualClock
) -> None:
    """Refused hits change nothing: the filter's window opens with the first request that passes."""
    near, far = near_and_far(app, limiter, near=2, far=1)
    far.hit(subject=C)
    clock.advance(30)
    assert statuses(caller(app), "/", 1) == [429]
    clock.advance(30)
    assert statuses(caller(app), "/", 1) == [200]
    assert near.peek(subject=C).reset_after == 60.0


def test_failure_limits_are_charged_though_the_filter_refuses(app: Flask, limiter: VenueLimit) -> None:
    """The refusal is a failure, also where the server had not been asked for anything else."""
    failures = limiter.failures("9/minute", name="failures")
    near = limiter.limit("1/minute", name="near", key=by_ip, per_process=True)
    far = limiter.limit("9/minute", name="far", key=by_ip)
    app.add_url_rule("/", "home", failures(near(far(lambda: "ok"))))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert (left(failures), left(far)) == (6, 8)


@pytest.mark.parametrize("ceiling", [9, 2])
def test_a_failure_limit_may_be_the_filter(app: Flask, limiter: VenueLimit, ceiling: int) -> None:
    """Successes are given back here; failures stay, the ceiling's refusals among them."""
    failures = limiter.failures(FixedWindow(3, 60), name="failures", per_process=True)
    far = limiter.limit(FixedWindow(ceiling, 60), name="far", key=by_ip)
    app.add_url_rule("/<int:status>", "login", failures(far(lambda status: ("", status))))
    assert statuses(caller(app), "/200", 2) == [200, 200]
    assert left(failures) == 3
    assert statuses(caller(app), "/401", 3) == [401 if ceiling == 9 else 429] * 3
    assert left(failures) == 0


def test_by_hand_it_counts_here(limiter: VenueLimit) -> None:
    """Hit, peek, refund and reset mean the count of this process."""
    limit = limiter.limit(FixedWindow(3, 60), name="near", key=by_ip, per_process=True)
    charged = limit.hit(2, subject=C)
    assert (charged.remaining, left(limit), limit.hit(2, subject=C).allowed) == (1, 1, False)
    limit.refund(charged)
    limit.refund(charged)
    assert left(limit) == 3
    limit.hit(3, subject=C)
    limit.reset(C)
    assert left(limit) == 3


def test_of_both_the_longest_wait_is_told(app: Flask, limiter: VenueLimit) -> None:
    """Two filters refuse: the one that takes longer is the reason."""
    short = limiter.limit(FixedWindow(1, 60), name="short", key=by_ip, per_process=True)
    long = limiter.limit(FixedWindow(1, 3600), name="long", key=by_ip, per_process=True)
    app.add_url_rule("/", "home", short(long(lambda: "ok")))
    caller(app).get("/")
    told = caller(app).get("/").get_json()
    assert (told["limit"], told["retry_after"]) == ("long", 3600)


def test_a_shadow_filter_lets_the_ceiling_decide(
    app: Flask, limiter: VenueLimit, told: list[Decision]
) -> None:
    """A filter that only watches neither refuses nor spares the server, and tells what it would do."""
    near, far = near_and_far(app, limiter, near=1, far=3, shadow=True)
    assert statuses(caller(app), "/", 4) == [200, 200, 200, 429]
    assert (left(near), left(far)) == (0, 0)
    assert [decision.limit for decision in told] == ["near", "near", "near", "far"]


def test_the_filter_holds_while_the_server_is_down(app: Flask, server: StoreServer) -> None:
    """What this process counts needs no server: the ceiling is open, the filter is not."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    near_and_far(app, VenueLimit(app), near=2, far=1)
    server.kill()
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_a_ceiling_that_denies_leaves_the_filter_uncharged(app: Flask, server: StoreServer) -> None:
    """All or none, too, where nobody can count and the ceiling lets nobody pass."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    limiter = VenueLimit(app)
    near = limiter.limit("2/minute", name="near", key=by_ip, per_process=True)
    app.add_url_rule("/", "home", near(limiter.limit("9/minute", key=by_ip, budget=True)(lambda: "ok")))
    server.kill()
    assert statuses(caller(app), "/", 3) == [503] * 3
    assert left(near) == 2

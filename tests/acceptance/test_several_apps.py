"""One VenueLimit for several apps: declarations are shared, everything else is each app's own."""

from __future__ import annotations

from typing import Any

import redis
from flask import Blueprint, Flask

from flask_venuelimit import (
    FixedWindow,
    MemoryStorage,
    RedisStorage,
    VenueLimit,
    by_ip,
    capacity_reached,
)
from tests.acceptance.callers import NAVIGATING, A, C, caller, items, statuses


def venue(limiter: VenueLimit, name: str = "venue", **settings: Any) -> Flask:
    """An app of its own under a limiter."""
    app = Flask(name, template_folder=None, static_folder=None)
    app.config.update({"SECRET_KEY": "s", "VENUELIMIT_STORAGE_URI": "memory://", **settings})
    limiter.init_app(app)
    app.add_url_rule("/", "home", lambda: "ok")
    return app


def test_declarations_cover_every_app() -> None:
    """A limit declared once holds in each app, whichever was initialised first."""
    limiter = VenueLimit()
    before = venue(limiter)
    limiter.limit(FixedWindow(1, 60), name="global", key=by_ip).everywhere()
    after = venue(limiter)
    assert [statuses(caller(app), "/", 2) for app in (before, after)] == [[200, 429]] * 2


def test_memory_is_one_store_an_app() -> None:
    """What is used in one app is not used in another."""
    limiter = VenueLimit()
    limiter.limit("1/minute", name="global", key=by_ip).everywhere()
    one, two = venue(limiter), venue(limiter)
    assert statuses(caller(one), "/", 2) + statuses(caller(two), "/", 1) == [200, 429, 200]


def test_each_app_keeps_its_own_settings() -> None:
    """What a second app is set to changes nothing about the first."""
    limiter = VenueLimit()
    limiter.limit(FixedWindow(1, 60), name="global", key=by_ip).everywhere()
    one = venue(limiter, VENUELIMIT_HEADERS="x", VENUELIMIT_PAGE_PATH="/one")
    two = venue(limiter, VENUELIMIT_HEADERS="draft", VENUELIMIT_PAGE_MODE="inline")
    seen = []
    for app in (one, two, one):
        first, second = caller(app).get("/"), caller(app).get("/", headers=NAVIGATING)
        seen.append(
            ("RateLimit" in first.headers, second.status_code, second.headers.get("Location", "")[:4])
        )
    assert seen == [(False, 303, "/one"), (True, 429, ""), (False, 303, "/one")]


def test_one_app_is_switched_off_alone() -> None:
    """``VENUELIMIT_ENABLED`` is the app's."""
    limiter = VenueLimit()
    limiter.limit(FixedWindow(0, 60), name="global", key=by_ip).everywhere()
    one, two = venue(limiter, VENUELIMIT_ENABLED=False), venue(limiter)
    assert statuses(caller(one), "/", 1) + statuses(caller(two), "/", 1) == [200, 429]


def test_one_app_without_storage_leaves_the_other_limited(warnings: list[str]) -> None:
    """The no-op of one app is not the other's, and the warning names the app."""
    limiter = VenueLimit()
    limiter.limit(FixedWindow(0, 60), name="global", key=by_ip).everywhere()
    bare = venue(limiter, "bare", VENUELIMIT_STORAGE_URI=None)
    limited = venue(limiter)
    assert statuses(caller(bare), "/", 1) + statuses(caller(limited), "/", 1) == [200, 429]
    (warning,) = warnings
    assert "bare" in warning


def test_a_factory_may_run_twice() -> None:
    """Declarations inside a factory are the same limits again, and each app counts for itself."""
    limiter = VenueLimit()

    def create_app() -> Flask:
        app = venue(limiter)
        limit = limiter.limit(FixedWindow(2, 60), name="shared", key=by_ip)
        app.add_url_rule("/view", "view", limit(lambda: "ok"))
        limiter.limit(FixedWindow(3, 60), name="wide", key=by_ip, unless=lambda: False).everywhere()
        return app

    for app in (create_app(), create_app()):
        answer = caller(app).get("/view")
        assert items(answer, "RateLimit") == {"shared": {"r": 1, "t": 60}, "wide": {"r": 2, "t": 60}}
        assert statuses(caller(app), "/view", 2) == [200, 429]


def test_a_module_s_blueprint_serves_two_apps() -> None:
    """A blueprint that is limited at module level is limited in each app that registers it."""
    limiter, bp = VenueLimit(), Blueprint("quiz", __name__)
    limiter.limit(FixedWindow(2, 60), name="quiz", key=by_ip)(bp)
    bp.add_url_rule("/quiz", "play", lambda: "ok")
    apps = [venue(limiter), venue(limiter)]
    for app in apps:
        app.register_blueprint(bp)
    assert [statuses(caller(app), "/quiz", 3) for app in apps] == [[200, 200, 429]] * 2


def test_a_storage_object_is_shared_by_its_apps(storage: MemoryStorage | RedisStorage) -> None:
    """Apps that share storage, prefix and salt share buckets."""
    limiter = VenueLimit(storage=storage)
    limiter.limit("2/minute", name="global", key=by_ip).everywhere()
    one, two = venue(limiter), venue(limiter)
    seen = [statuses(caller(app), "/", 1) for app in (one, two, one, two)]
    assert seen == [[200], [200], [429], [429]]


def test_another_prefix_or_salt_is_another_bucket(storage: MemoryStorage | RedisStorage) -> None:
    """Two apps on one storage do not meet where either differs."""
    limiter = VenueLimit(storage=storage)
    limiter.limit(FixedWindow(1, 60), name="global", key=by_ip).everywhere()
    apps = [
        venue(limiter),
        venue(limiter, VENUELIMIT_KEY_PREFIX="other"),
        venue(limiter, VENUELIMIT_SALT="other"),
        venue(limiter, SECRET_KEY="other"),
    ]
    assert [statuses(caller(app), "/", 2) for app in apps] == [[200, 429]] * 4


def test_a_redis_client_is_storage(valkey_client: redis.Redis) -> None:
    """``VenueLimit(storage=client)`` takes a redis-py client, and outranks the URI."""
    limiter = VenueLimit(storage=valkey_client)
    limiter.limit("2/minute", name="global", key=by_ip).everywhere()
    app = venue(limiter, VENUELIMIT_STORAGE_URI="redis://127.0.0.1:1")
    assert statuses(caller(app), "/", 3) == [200, 200, 429]
    assert len(valkey_client.keys()) == 1


def test_views_and_limits_may_come_after_init_app(app: Flask, limiter: VenueLimit) -> None:
    """The order of ``init_app``, views, limits and blueprints says nothing."""
    app.add_url_rule("/early", "early", lambda: "ok")
    limiter.limit(FixedWindow(1, 60), name="global", key=by_ip).everywhere()
    app.add_url_rule("/late", "late", lambda: "ok")
    assert statuses(caller(app, C), "/late", 2) + statuses(caller(app, A), "/early", 2) == [200, 429] * 2


def test_a_full_store_is_signalled_by_its_app() -> None:
    """``memory://?max_keys=`` bounds an app's store; reaching it is told once, not for each newcomer."""
    limiter, seen = VenueLimit(), list[tuple[object, object]]()
    limiter.limit("9/minute", name="global", key=by_ip).everywhere()
    app, roomy = venue(limiter, VENUELIMIT_STORAGE_URI="memory://?max_keys=10"), venue(limiter)

    def full(sender: object, storage: object) -> None:
        seen.append((sender, storage))

    with capacity_reached.connected_to(full):
        for n in range(20):
            for each in (app, roomy):
                assert statuses(caller(each, f"198.51.100.{n}"), "/", 1) == [200]
    assert [(sender, type(store)) for sender, store in seen] == [(app, MemoryStorage)]


def test_whoever_hears_that_a_store_is_full_fails_no_request() -> None:
    """A receiver that raises is logged; the newcomer is answered, and what it charged is given back."""
    limiter = VenueLimit()
    failures = limiter.failures("9/minute", name="failures").everywhere()
    app = venue(limiter, VENUELIMIT_STORAGE_URI="memory://?max_keys=1")

    def alarm(sender: object, storage: object) -> None:
        raise RuntimeError("no network")

    with capacity_reached.connected_to(alarm):
        assert [statuses(caller(app, address), "/", 1) for address in (A, C)] == [[200], [200]]
    with app.app_context():
        assert failures.peek(subject=C).remaining == 9


def test_a_flood_of_newcomers_does_not_free_the_refused() -> None:
    """Who is refused stays refused though more addresses come than the store can hold."""
    limiter = VenueLimit()
    limiter.limit(FixedWindow(1, 3600), name="global", key=by_ip).everywhere()
    app = venue(limiter, VENUELIMIT_STORAGE_URI="memory://?max_keys=50")
    assert statuses(caller(app, C), "/", 2) == [200, 429]
    for n in range(120):
        caller(app, f"203.0.113.{n}").get("/")
    assert statuses(caller(app, C), "/", 1) == [429]

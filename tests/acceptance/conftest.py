"""What most stories begin with: an app with a secret, and a limiter over a store whose clock stands still."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from flask_venuelimit import (
    Decision,
    FixedWindow,
    Limit,
    MemoryStorage,
    RedisStorage,
    VenueLimit,
    by_ip,
    by_participant,
    limit_refused,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import caller
from tests.servers import StoreServer


@pytest.fixture
def app() -> Flask:
    """An app without folders of its own, whose waits are told without jitter, to be compared."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)
    return app


@pytest.fixture(params=["memory", "redis"])
def storage(request: pytest.FixtureRequest, clock: ManualClock) -> MemoryStorage | RedisStorage:
    """An empty store on the test's clock: once in memory, once on a real server."""
    if request.param == "memory":
        return MemoryStorage(clock=clock)
    return RedisStorage(request.getfixturevalue("valkey_client"), clock=clock)


@pytest.fixture
def limiter(app: Flask, storage: MemoryStorage | RedisStorage) -> VenueLimit:
    """A limiter that serves the app; views and limits are declared after it."""
    return VenueLimit(app, storage=storage)


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What the extension says at WARNING or above, a list that grows."""
    said: list[str] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    caplog.set_level(logging.DEBUG, "flask_venuelimit")
    listener = Listener(logging.WARNING)
    logger = logging.getLogger("flask_venuelimit")
    logger.addHandler(listener)
    yield said
    logger.removeHandler(listener)


@pytest.fixture
def told(app: Flask) -> Iterator[list[Decision]]:
    """The decisions that ``limit_refused`` tells of, in the app's name, a list that grows."""
    heard: list[Decision] = []

    def hear(sender: object, decision: Decision) -> None:
        heard.append(decision)

    with limit_refused.connected_to(hear, sender=app):
        yield heard


@pytest.fixture
def server() -> Iterator[StoreServer]:
    """A server of this test's own, to be killed."""
    with StoreServer() as server:
        yield server


@pytest.fixture
def login(app: Flask, limiter: VenueLimit) -> Limit:
    """A view that answers the status it is asked for, under a limit of three failures."""
    limit = limiter.failures("3/minute", name="failed-logins")

    @app.route("/<int:status>", methods=["GET", "POST"])
    @limit
    def login(status: int) -> tuple[str, int]:
        return "answer", status

    return limit


@pytest.fixture
def refused(app: Flask, limiter: VenueLimit) -> Callable[..., TestResponse]:
    """What the second caller of a view with one request a minute is answered, whatever its method."""
    limit = limiter.limit(FixedWindow(1, 60), name="submit-answer", key=by_ip)
    app.add_url_rule("/submit", "submit", limit(lambda: "ok"), methods=["GET", "POST", "PUT"])

    def refused(method: str = "GET", path: str = "/submit", **headers: str) -> TestResponse:
        client = caller(app)
        client.get(path)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.open(path, method=method, headers=named)

    return refused


@pytest.fixture
def closed(app: Flask, limiter: VenueLimit) -> Limit:
    """A limit that has room for one request a minute in all the app."""
    app.add_url_rule("/", "home", lambda: "ok")
    return limiter.limit(FixedWindow(1, 60), name="everything", key=by_ip).everywhere()


@pytest.fixture
def mails(limiter: VenueLimit) -> Limit:
    """Three hits in sixty seconds, for participants."""
    return limiter.limit(FixedWindow(3, 60), name="mails", key=by_participant)

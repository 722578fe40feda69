"""An app whose counts other processes can see, and somebody at its command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from flask import Flask

from flask_venuelimit import RedisStorage, VenueLimit, by_ip, by_participant
from flask_venuelimit.diagnosis.addressed import PLATFORMS
from flask_venuelimit.testing import ManualClock
from tests.commands.terminal import Typed, typed


@pytest.fixture(autouse=True)
def _no_signs_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what the developer's shell says of a server: doctor would believe it."""
    for name in (*PLATFORMS, "GUNICORN_CMD_ARGS", "WEB_CONCURRENCY", "UWSGI_PROCESSES", "UWSGI_WORKERS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def app() -> Flask:
    """An app without folders of its own."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random")
    return app


@pytest.fixture
def limiter(app: Flask, valkey_client: redis.Redis, clock: ManualClock) -> VenueLimit:
    """A limiter with two limits: one everywhere by address, one on a view by participant."""
    limiter = VenueLimit(app, storage=RedisStorage(valkey_client, clock=clock))
    limiter.limit("1200/minute", name="global", key=by_ip).everywhere()
    answer = limiter.limit("10/minute", name="answer", key=by_participant, per_address="1000/minute")
    app.add_url_rule("/answers", "answers", answer(lambda: "ok"), methods=["POST"])
    return limiter


@pytest.fixture
def flask(app: Flask, limiter: VenueLimit) -> Callable[..., Typed]:
    """Types ``flask venuelimit ...`` for the app."""
    return lambda *words: typed(app, *words)

"""An app whose server is about to fail, with a clock of its own, so that no pause has to be waited out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest
from flask import Flask

from flask_venuelimit import (
    FixedWindow,
    Limit,
    VenueLimit,
    by_ip,
    storage_failed,
    storage_recovered,
)
from flask_venuelimit.storage import open_storage
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import caller
from tests.faults.faults import FAULTS, Fault, Site
from tests.faults.proxy import Proxy
from tests.servers import StoreServer, wait_until

PLENTY = FixedWindow(1000, per=60)


@pytest.fixture(params=FAULTS)
def fault(request: pytest.FixtureRequest) -> Fault:
    """Each of the things that go wrong."""
    return FAULTS[request.param]


@pytest.fixture
def server() -> Iterator[StoreServer]:
    """A server of this test's own."""
    with StoreServer() as server:
        yield server


@pytest.fixture
def proxy(server: StoreServer) -> Iterator[Proxy]:
    """A network in front of it."""
    with Proxy(server.port) as proxy:
        yield proxy


@pytest.fixture
def site(fault: Fault, server: StoreServer, proxy: Proxy) -> Site:
    """The server, and the way an app takes to it for this fault to meet it."""
    return Site(server, proxy, fault.direct, fault.silent)


@pytest.fixture
def uri(site: Site) -> str:
    """Where the app finds its server; other modules may say otherwise."""
    return site.url


@pytest.fixture
def app() -> Flask:
    """An app without folders of its own, whose waits are told without jitter."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)
    return app


@pytest.fixture
def limiter(app: Flask, uri: str, clock: ManualClock) -> VenueLimit:
    """A limiter that asks the server as one does that is given its URI, on the test's clock."""
    return VenueLimit(app, storage=open_storage(uri, clock=clock))


@pytest.fixture
def limit(app: Flask, limiter: VenueLimit) -> Limit:
    """Plenty of requests of ``/``."""
    limit = limiter.limit(PLENTY, name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


@pytest.fixture
def told(app: Flask) -> Iterator[list[str]]:
    """The signals the app sends of its storage, a list that grows."""
    heard: list[str] = []

    def failed(sender: object, error: Exception) -> None:
        heard.append("failed")

    def recovered(sender: object) -> None:
        heard.append("recovered")

    with storage_failed.connected_to(failed, app), storage_recovered.connected_to(recovered, app):
        yield heard


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], list[int]]:
    """The levels of what the extension has logged so far, WARNING and above."""
    return lambda: [
        record.levelno
        for record in caplog.records
        if record.name == "flask_venuelimit" and record.levelno >= logging.WARNING
    ]


@pytest.fixture
def counts_again(app: Flask, clock: ManualClock) -> Callable[[], None]:
    """Waits, without waiting for pauses, until an answer carries limit state again."""

    def counts() -> bool:
        clock.advance(30)
        return "RateLimit" in caller(app).get("/").headers

    return lambda: wait_until(counts, what="limits count again")

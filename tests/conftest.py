"""Fixtures for all tests: a real store server, a clock that stands still, a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis
from hypothesis import settings

from flask_venuelimit.testing import ManualClock
from tests.parts import BROWSER, NGINX, require
from tests.servers import StoreServer
from tests.several import Cluster, run_cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# A busy machine is slow at times; what a test promises is no matter of milliseconds.
settings.register_profile("house", settings.default, deadline=None)
# What CI draws is the same each time: a change is judged by what it changes. Elsewhere it is drawn anew.
settings.register_profile("ci", settings.get_profile("house"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "house")


@pytest.fixture(autouse=True)
def _push_request_context() -> None:
    """Replace pytest-flask's fixture of this name.

    It pushes a context around each test that uses ``app``, and all requests of the test would then
    share one ``flask.g``, as no requests outside a test do.
    """


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take FLASK_ settings of the developer's shell away: apps under test read the environment."""
    for name in [name for name in os.environ if name.startswith("FLASK_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def clock() -> ManualClock:
    """A clock that reads 0 and stands still until it is advanced."""
    return ManualClock()


@pytest.fixture(scope="session")
def valkey() -> Iterator[StoreServer]:
    """A server for the whole run; a test that kills or fills one starts its own StoreServer."""
    with StoreServer() as server:
        yield server


@pytest.fixture
def valkey_client(valkey: StoreServer) -> Iterator[redis.Redis]:
    """A client of a server that holds nothing."""
    with valkey.client() as client:
        client.flushall()
        client.config_resetstat()
        yield client
        # redis-py 5 leaves the connections of other threads to the garbage collector
        client.connection_pool.disconnect()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster for the whole run; a test that harms one runs its own."""
    with run_cluster() as cluster:
        yield cluster


@pytest.fixture(params=["memory", "redis"])
def storage_uri(request: pytest.FixtureRequest) -> str:
    """The address of an empty store, once in memory and once on the server."""
    if request.param == "memory":
        return "memory://"
    request.getfixturevalue("valkey_client")
    server: StoreServer = request.getfixturevalue("valkey")
    return server.url


@pytest.fixture(scope="session")
def nginx() -> str:
    """The path of nginx."""
    return require(NGINX)


# For each module anew: as long as Playwright runs, asyncio sees a running loop in this thread, and the
# async views of later tests could not be called in it.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium that runs for the tests of one module and speaks to this machine only."""
    from playwright.sync_api import sync_playwright

    path = require(BROWSER)
    quiet = ["gpu", "quic", "background-networking", "component-update", "sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            headless=True,
            # Chromium refuses to put root into its sandbox.
            chromium_sandbox=os.geteuid() != 0,
            args=[
                "--no-first-run",
                # sites of any name, all on this machine: plain HTTP from elsewhere is no secure context
                "--host-resolver-rules=MAP *.example 127.0.0.1",
                *(f"--disable-{part}" for part in quiet),
            ],
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in a browsing context of its own: no cookies, nothing remembered."""
    context = browser.new_context()
    context.set_default_timeout(10_000)
    yield context.new_page()
    context.close()

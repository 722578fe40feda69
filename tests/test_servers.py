"""The test helpers themselves: real servers that start, stop and die when they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request

import pytest
import redis
from flask import Flask, g
from flask.testing import FlaskClient
from playwright.sync_api import Page

from tests import parts
from tests.servers import TRY_ONCE, StoreServer, run_app, wait_until


@pytest.fixture
def app() -> Flask:
    """An app whose answer tells the process and what the request before it left on flask.g."""
    app = Flask(__name__)

    @app.get("/")
    def index() -> str:
        before = g.get("seen", "nothing")
        g.seen = "something"
        return f"<p>{before} from {os.getpid()}</p>"

    return app


def test_a_server_answers_on_both_its_addresses(valkey: StoreServer) -> None:
    """A started server answers over TCP and over its unix socket."""
    for url in (valkey.url, valkey.unix_url):
        with redis.Redis.from_url(url) as client:
            assert client.ping() is True


def test_a_killed_server_refuses_connections_until_started_again() -> None:
    """After kill() nobody listens; start() brings the server back at the same port."""
    with StoreServer() as server, server.client() as client:
        server.kill()
        with server.client() as lost, pytest.raises(redis.ConnectionError):
            lost.ping()
        server.start()
        assert client.ping() is True


def test_a_paused_server_accepts_and_does_not_answer() -> None:
    """A paused server lets a client wait until its time-out, and answers again after resume()."""
    with StoreServer() as server, server.client(socket_timeout=0.1) as client:
        server.pause()
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.resume()
        assert client.ping() is True


def test_a_server_dies_with_the_process_that_started_it() -> None:
    """A test run that is killed leaves no server behind."""
    code = "from tests.servers import *; print(StoreServer().start().port, flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        client = redis.Redis(port=int(child.stdout.readline()), retry=TRY_ONCE)
        assert client.ping() is True
        child.send_signal(signal.SIGKILL)
    wait_until(lambda: _is_refused(client), what="the orphan is gone")


def _is_refused(client: redis.Redis) -> bool:
    try:
        client.ping()
    except redis.ConnectionError:
        return True
    return False


def test_an_app_is_served_in_this_process(app: Flask) -> None:
    """run_app() answers real requests from the test's own process."""
    with run_app(app) as url, urllib.request.urlopen(url) as response:
        assert str(os.getpid()) in response.read().decode()


def test_requests_of_one_test_do_not_share_flask_g(client: FlaskClient) -> None:
    """Each request of a test starts with an empty flask.g."""
    assert [client.get("/").text.split()[0] for _ in range(2)] == ["<p>nothing", "<p>nothing"]


def test_a_browser_shows_what_the_app_serves(app: Flask, page: Page) -> None:
    """The page fixture drives a real browser against a real port."""
    with run_app(app) as url:
        page.goto(url)
        assert page.inner_text("p") == f"nothing from {os.getpid()}"


def test_a_missing_part_skips_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a part the test skips and says how to get it."""
    monkeypatch.delenv(parts.STRICT, raising=False)
    part = parts.Part("moon", lambda: None, "wait for the night")
    with pytest.raises(pytest.skip.Exception) as skipped:
        parts.require(part)
    assert str(skipped.value) == "no moon found: wait for the night"


def test_a_missing_part_fails_where_all_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under VENUELIMIT_REQUIRE_PARTS nothing is skipped."""
    monkeypatch.setenv(parts.STRICT, "1")
    part = parts.Part("moon", lambda: None, "wait for the night")
    with pytest.raises(pytest.fail.Exception, match="no moon found: wait for the night"):
        parts.require(part)

"""What ``flask venuelimit doctor`` finds in a storage, asked for real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from redis.backoff import NoBackoff
from redis.retry import Retry

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.storage import open_storage
from tests.commands.doctor import findings, told
from tests.faults.faults import FAULTS, Site
from tests.faults.proxy import Proxy
from tests.servers import StoreServer, free_port
from tests.storage.test_acl import rights


@pytest.fixture
def server() -> Iterator[StoreServer]:
    """A server of this test's own."""
    with StoreServer() as server:
        yield server


def venue(storage: object) -> Flask:
    """An app with one limit, which counts there: a URI, or an object."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config["SECRET_KEY"] = "long and random"
    if isinstance(storage, str):
        app.config["VENUELIMIT_STORAGE_URI"] = storage
    limiter = VenueLimit(app, storage=None if isinstance(storage, str) else storage)
    limiter.limit("1200/minute", name="global", key=by_ip).everywhere()
    return app


def test_a_server_that_is_not_there_is_found() -> None:
    """Where it should be, and what came of asking."""
    port = free_port()
    (what,) = told(venue(f"redis://:geheim@127.0.0.1:{port}"), "VL101")
    assert what.startswith(f"RedisStorage(host='127.0.0.1', port={port}) does not answer as a storage")
    assert "Connection refused" in what


@pytest.mark.parametrize("name", FAULTS)
def test_whatever_goes_wrong_with_a_server_is_found(server: StoreServer, name: str) -> None:
    """Before a request does; where a server still answers who only looks, by what it says to who writes."""
    fault = FAULTS[name]
    with Proxy(server.port) as proxy:
        site = Site(server, proxy, fault.direct, fault.silent)
        app = venue(site.url)
        assert findings(app) == []
        fault.begin(site)
        assert [each["code"] for each in findings(app)] == ["VL102" if fault.looks else "VL101"]
        fault.end(site)
        assert findings(app) == []


def test_a_server_that_wants_a_password_is_found(server: StoreServer) -> None:
    """In its own words."""
    with server.client() as client:
        client.config_set("requirepass", "geheim")
    (what,) = told(venue(server.url), "VL101")
    assert "Authentication required" in what
    (what,) = told(venue(server.url.replace("//", "//:wrong@")), "VL101")
    assert "invalid username-password pair" in what


def test_a_store_of_the_apps_own_is_asked_too() -> None:
    """What it fails with is named, and not repeated: nobody knows what it says."""

    class Broken(MemoryStorage):
        failures = (LookupError,)

        def peek(self, charges: Any) -> Any:
            raise LookupError("geheim")

    (what,) = told(venue(Broken()), "VL101")
    assert what == "Broken does not answer as a storage should. LookupError."


def test_a_full_server_is_found(server: StoreServer) -> None:
    """It answers whoever looks, so that only asking to write tells."""
    with server.client() as client:
        client.config_set("maxmemory", 1)
    (what,) = told(venue(server.url), "VL102")
    assert "takes no writes. It says: OOM command not allowed" in what


def test_a_replica_is_found(server: StoreServer) -> None:
    """It takes no writes either."""
    with server.client() as client:
        client.replicaof("127.0.0.1", free_port())
    (what,) = told(venue(server.url), "VL102")
    assert "READONLY" in what


@pytest.fixture
def limited(server: StoreServer) -> str:
    """The address of a server for a user with the rights that are documented."""
    with server.client() as client:
        client.execute_command(*rights())
    return server.url.replace("//", "//limiter:password@")


@pytest.mark.parametrize("right", [right for right in rights() if right.startswith("+")])
def test_each_right_that_is_missing_is_named(server: StoreServer, limited: str, right: str) -> None:
    """Of all that are documented."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "limiter", right.replace("+", "-"))
    (what,) = told(venue(limited), "VL103")
    assert f"lacks the right to {right[1:]}." in what


def test_a_right_to_other_keys_is_found(server: StoreServer, limited: str) -> None:
    """The prefix is not the one that the user may use."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "limiter", "resetkeys", "~other:*")
    (what,) = told(venue(limited), "VL103")
    assert "lacks the right to keys of this prefix" in what


def test_what_a_user_may_not_ask_is_told_as_unknown(limited: str) -> None:
    """A user with no more rights than are needed has nothing wrong; the rest could not be looked at."""
    (finding,) = findings(venue(limited))
    assert finding["code"] == "VL106"
    assert "could not be looked at" in finding["what"]


def test_a_server_that_hides_its_policy_is_told_as_unknown(server: StoreServer) -> None:
    """As some that are rented do."""
    with Proxy(server.port) as proxy:
        proxy.carry = lambda answer: answer.replace(b"maxmemory_policy", b"something_policy")
        (what,) = told(venue(proxy.url), "VL106")
    assert what.endswith("could not be looked at: the server tells no maxmemory-policy.")


def test_a_server_that_evicts_is_found(server: StoreServer) -> None:
    """Whatever it evicts: counts have an expiry."""
    with server.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "volatile-ttl")
    (what,) = told(venue(server.url), "VL104")
    assert what.endswith("has maxmemory-policy volatile-ttl: it throws counts away.")


def test_a_server_that_would_evict_is_found(server: StoreServer) -> None:
    """As soon as somebody bounds its memory."""
    with server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
    (what,) = told(venue(server.url), "VL104")
    assert what.endswith("it throws counts away, once it has a maxmemory.")


def test_a_cluster_that_is_down_is_found() -> None:
    """Where its client cannot even be made."""
    (finding,) = findings(venue(open_storage(f"redis+cluster://127.0.0.1:{free_port()}")))
    assert finding["code"] == "VL101"


def test_an_old_server_is_found(server: StoreServer) -> None:
    """By the version it tells; here a network in between tells another."""
    with Proxy(server.port) as proxy:
        proxy.carry = _as_an_old_redis
        (what,) = told(venue(proxy.url), "VL105")
    assert what.startswith(f"RedisStorage(host='127.0.0.1', port={proxy.port}, db=0) is Redis 5.")


def _as_an_old_redis(answer: bytes) -> bytes:
    """What a server says of itself, with another version of the same length."""
    return re.sub(rb"redis_version:\d", b"redis_version:5", answer).replace(b"valkey_", b"melkey_")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEB_CONCURRENCY", "4"),
        ("UWSGI_PROCESSES", "2"),
        ("GUNICORN_CMD_ARGS", "--bind=127.0.0.1 --workers=3"),
        ("GUNICORN_CMD_ARGS", "-w 3"),
    ],
)
def test_workers_that_count_apart_are_found(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment says that there are several."""
    monkeypatch.setenv(name, value)
    (what,) = told(venue("memory://"), "VL107")
    assert what.startswith("memory:// counts in one process, and ")


def test_one_worker_counts_by_itself(monkeypatch: pytest.MonkeyPatch, valkey: StoreServer) -> None:
    """One process is enough for memory, however many there could be; and Redis is for all."""
    monkeypatch.setenv("WEB_CONCURRENCY", "4")
    assert told(venue(valkey.url), "VL107") == []
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "-w 1 --threads 8")
    assert told(venue("memory://"), "VL107") == []


def test_a_patient_client_is_found(valkey: StoreServer) -> None:
    """One that the app has made, and that would let a request wait."""
    with valkey.client(socket_timeout=None) as client:
        assert "waits for ever" in told(venue(client), "VL108")[0]
    with valkey.client(socket_timeout=5, retry=Retry(NoBackoff(), 10)) as client:
        assert "waits up to 55 s" in told(venue(client), "VL108")[0]
    with valkey.client(socket_timeout=0.5) as client:
        assert findings(venue(client)) == []

"""How a URI or an object becomes a store, and what bad ones are told."""

from __future__ import annotations

import time
import traceback
from typing import Any

import pytest
import redis
import redis.asyncio

from flask_venuelimit.errors import ConfigurationError
from flask_venuelimit.policies import FixedWindow
from flask_venuelimit.storage import open_storage
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.noop import NoopStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.storage.sketch import SketchStorage
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer
from tests.storage.asking import hit

KNOWN = "memory://, redis://, rediss://, unix://, valkey://, valkeys://, redis+sentinel://, redis+cluster://"
SENTINEL = "Use redis+sentinel://host1:26379,host2:26379/service, and /service/1 for database 1."
UNREADABLE = (
    "VENUELIMIT_STORAGE_URI has a host or port that cannot be read. Use a port from 1 to 65535, and "
    "percent-encode special characters in a password."
)


MEBIBYTES = "Use one number of MiB from 0.001 on, such as 8."


def _settings(uri: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """What redis-py would connect with."""
    settings: dict[str, Any] = open_storage(uri, options).client.connection_pool.connection_kwargs
    return settings


def test_no_uri_is_no_storage() -> None:
    """Without a URI nobody counts."""
    assert isinstance(open_storage(None), NoopStorage)


def test_memory_counts_in_this_process(clock: ManualClock) -> None:
    """memory:// is a store of 100,000 keys on a monotonic clock; both can be chosen."""
    assert open_storage("memory://").max_keys == 100_000
    assert open_storage("MEMORY://?max_keys=7").max_keys == 7
    assert open_storage("memory://").clock is time.monotonic
    assert open_storage("memory://", clock=clock).clock is clock


def test_memory_counts_in_a_sketch_where_that_is_asked_for(clock: ManualClock) -> None:
    """memory://?sketch=8 takes 8 MiB, fractions allowed, and max_keys bounds what is counted beside it."""
    store = open_storage("memory://?sketch=0.5", clock=clock)
    assert isinstance(store, SketchStorage)
    assert (store.mebibytes, store.max_keys, store.clock) == (0.5, 51, clock)
    assert open_storage("memory://?max_keys=7&sketch=.25").max_keys == 7
    assert open_storage("memory://?sketch=2.").mebibytes == 2


def test_each_opening_is_a_store_of_its_own() -> None:
    """Two apps with memory:// share nothing."""
    first, second = open_storage("memory://"), open_storage("memory://")
    hit(first, FixedWindow(1, per=60))
    assert hit(second, FixedWindow(1, per=60)).allowed


@pytest.mark.parametrize("scheme", ["redis", "valkey", "REDIS", "Valkey"])
def test_a_server_is_reached_over_tcp(valkey: StoreServer, valkey_client: redis.Redis, scheme: str) -> None:
    """redis:// and valkey:// are one and the same, in any case."""
    store = open_storage(valkey.url.replace("redis", scheme, 1))
    assert hit(store, FixedWindow(5, per=60)).remaining == 4
    assert valkey_client.exists("k")


def test_a_server_is_reached_over_a_socket(valkey: StoreServer, valkey_client: redis.Redis) -> None:
    """unix:// names a socket's path."""
    store = open_storage(valkey.unix_url)
    assert hit(store, FixedWindow(5, per=60)).remaining == 4
    assert valkey_client.exists("k")


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
def test_tls_is_asked_for_by_name(scheme: str) -> None:
    """rediss:// and valkeys:// speak TLS."""
    pool = open_storage(f"{scheme}://store.example").client.connection_pool
    assert pool.connection_class is redis.SSLConnection


def test_a_uri_says_who_and_where() -> None:
    """User, password, host, port and database are taken from the URI, percent-encoding undone."""
    settings = _settings("redis://user:p%40ss%2F@store.example:7000/3")
    wanted = {"username": "user", "password": "p@ss/", "host": "store.example", "port": 7000, "db": 3}
    assert wanted.items() <= settings.items()


def test_failing_is_quick_by_default() -> None:
    """A quarter of a second to connect, and a tenth for an answer."""
    settings = _settings("redis://store.example")
    assert (settings["socket_connect_timeout"], settings["socket_timeout"]) == (0.25, 0.1)


def test_options_outrank_the_defaults() -> None:
    """VENUELIMIT_STORAGE_OPTIONS, and options in the URI, are redis-py's own and win."""
    given = {"socket_timeout": 0.5, "health_check_interval": 30}
    settings = _settings("redis://store.example?socket_connect_timeout=0.7", given)
    assert (settings["socket_timeout"], settings["health_check_interval"]) == (0.5, 30)
    assert settings["socket_connect_timeout"] == 0.7


def test_a_server_that_is_down_fails_once() -> None:
    """Opening connects to nothing; the first call fails by an error the store names, and is not repeated."""
    store = open_storage(StoreServer().hasty_url)
    with pytest.raises(store.failures, match="refused"):
        hit(store, FixedWindow(5, per=60))
    assert store.client.connection_pool.connection_kwargs["retry"]._retries == 0


def test_a_silent_server_costs_its_time_out_once() -> None:
    """A server that accepts and never answers is given up after its time-out, an error the store names."""
    with StoreServer() as server:
        store = open_storage(server.hasty_url)
        server.pause()
        with pytest.raises(redis.TimeoutError) as caught:
            hit(store, FixedWindow(5, per=60))
        assert isinstance(caught.value, store.failures)


def test_a_store_is_taken_as_it_is() -> None:
    """An object that counts is used as given."""
    store = MemoryStorage()
    assert open_storage(store) is store


def test_a_client_becomes_a_store(clock: ManualClock) -> None:
    """A redis-py client keeps its own settings."""
    client = redis.Redis(socket_timeout=9)
    store = open_storage(client, clock=clock)
    assert isinstance(store, RedisStorage)
    assert (store.client, store.clock) == (client, clock)


def test_an_asyncio_client_is_told_so() -> None:
    """What is no store and no such client is refused, naming the argument."""
    with pytest.raises(ConfigurationError, match=r"^storage: RedisStorage cannot use a redis\.asyncio\."):
        open_storage(redis.asyncio.Redis())


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("", f"has no scheme. Use one of {KNOWN}."),
        ("localhost:6379", f"has no scheme. Use one of {KNOWN}."),
        ("memcached://h", f"names the unknown scheme memcached://. Use one of {KNOWN}."),
        ("redis+sentinel://h", f"names no service of Sentinel's. {SENTINEL}"),
        ("redis+sentinel://h1,h2:2/", f"names no service of Sentinel's. {SENTINEL}"),
        ("redis+sentinel://h/service/x", f"names no service of Sentinel's. {SENTINEL}"),
        (
            "redis+cluster://h/3",
            "names a database, and a cluster has only 0. Use redis+cluster://host1:6379,host2:6379.",
        ),
        ("redis+cluster://h#", "has a # in it. Percent-encode special characters in a password."),
        (
            "memory://host",
            "has more than options after memory://. Use memory:// or memory://?max_keys=100000.",
        ),
        ("memory://?size=3", "has the unknown option 'size'. memory:// knows max_keys and sketch only."),
        ("memory://?max_keys=0", "has max_keys='0'. Use one whole number of at least 1."),
        ("memory://?max_keys=", "has max_keys=''. Use one whole number of at least 1."),
        ("memory://?max_keys=-5", "has max_keys='-5'. Use one whole number of at least 1."),
        ("memory://?max_keys=1&max_keys=2", "has max_keys='1, 2'. Use one whole number of at least 1."),
        ("memory://?sketch=8&max_keys=0", "has max_keys='0'. Use one whole number of at least 1."),
        ("memory://?sketch=", f"has sketch=''. {MEBIBYTES}"),
        ("memory://?sketch=0", f"has sketch='0'. {MEBIBYTES}"),
        ("memory://?sketch=0.0009", f"has sketch='0.0009'. {MEBIBYTES}"),
        ("memory://?sketch=-1", f"has sketch='-1'. {MEBIBYTES}"),
        ("memory://?sketch=nan", f"has sketch='nan'. {MEBIBYTES}"),
        ("memory://?sketch=8MiB", f"has sketch='8MiB'. {MEBIBYTES}"),
        ("memory://?sketch=1e3", f"has sketch='1e3'. {MEBIBYTES}"),
        ("memory://?sketch=1&sketch=2", f"has sketch='1, 2'. {MEBIBYTES}"),
        (
            "memory://?sketch=999999999",
            "has sketch='999999999', and there are not so many MiB to be had. Use a smaller number.",
        ),
        ("redis://h/x", "has a path that is no database number. Use redis://host:port/0."),
        ("unix://", "names no socket. Use unix:///path/to/redis.sock."),
        ("redis://h/0#x", "has a # in it. Percent-encode special characters in a password."),
    ],
)
def test_a_bad_uri_is_told_what_is_wrong(uri: str, text: str) -> None:
    """The error names the setting, the fault, and what to change."""
    with pytest.raises(ConfigurationError) as caught:
        open_storage(uri)
    assert str(caught.value) == f"VENUELIMIT_STORAGE_URI {text}"


@pytest.mark.parametrize("place", ["h:port", "h:0", "h:70000", "[::1", ":pa/ss@h"])
@pytest.mark.parametrize("uri", ["redis://{}", "redis+sentinel://{}/s", "redis+sentinel://h:1,{}/s"])
def test_a_bad_place_is_told_what_is_wrong(uri: str, place: str) -> None:
    """A port or host that cannot be read is named as such, whatever made it so."""
    with pytest.raises(ConfigurationError) as caught:
        open_storage(uri.format(place))
    assert str(caught.value) in (
        UNREADABLE,
        f"VENUELIMIT_STORAGE_URI names no service of Sentinel's. {SENTINEL}",
    )


@pytest.mark.parametrize("hosts", ["", ",", "h:1,", "h:1,u:p@h:2", "h 1", "h:1;h:2"])
def test_bad_places_of_a_cluster_are_told_what_is_wrong(hosts: str) -> None:
    """Each host counts, and one user is everybody's."""
    with pytest.raises(ConfigurationError) as caught:
        open_storage(f"redis+cluster://{hosts}")
    assert str(caught.value) == UNREADABLE


@pytest.mark.parametrize(
    ("query", "options", "what"),
    [
        ("?sockettimeout=1", {}, "the option 'sockettimeout' that redis-py does not take (TypeError)"),
        ("?socket_timeout=soon", {}, "the option 'socket_timeout' that redis-py does not take (ValueError)"),
        ("", {"pasword": "hunter2"}, "the option 'pasword' that redis-py does not take (TypeError)"),
        ("?protocol=9", {}, "the option 'protocol' that redis-py does not take (ConnectionError)"),
    ],
)
def test_a_bad_option_is_named(query: str, options: dict[str, Any], what: str) -> None:
    """An option redis-py does not know, or a value it cannot read, is found when the store is opened."""
    with pytest.raises(ConfigurationError) as caught:
        open_storage(f"redis://store.example{query}", options)
    assert str(caught.value) == (
        f"VENUELIMIT_STORAGE_URI or VENUELIMIT_STORAGE_OPTIONS has {what}. The names and values are those of "
        "redis.Redis(...)."
    )


@pytest.mark.parametrize(
    "uri",
    [
        "hunter2",
        "hunter2@store.example",
        "memcached://u:hunter2@h",
        "memory://u:hunter2@h",
        "redis://u:hunter2@h:port",
        "redis://u:hunter2/@h:1",
        "redis://u:hunter2@h/x",
        "redis://u:hunter2#@h",
        "redis://u:hunter2@h?socket_timeout=hunter2",
        "redis://h?password=hunter2&wrong=hunter2",
        "redis+sentinel://:hunter2@h",
        "redis+sentinel://h:1,u:hunter2@h:2/s",
        "redis+sentinel://:hunter2@h/s?wrong=hunter2",
        "redis+cluster://u:hunter2@h:port",
        "redis+cluster://u:hunter2@h/7",
        "redis+cluster://u:hunter2@h?socket_timeout=hunter2",
        "redis://u:hunter2@[h",
    ],
)
def test_no_error_shows_a_password(uri: str) -> None:
    """Neither the text nor anything a traceback leads to holds what may be a secret."""
    with pytest.raises(ConfigurationError) as caught:
        open_storage(uri)
    error = caught.value
    assert "hunter2" not in "".join(traceback.format_exception_only(type(error), error))
    assert error.__cause__ is error.__context__ is None

"""How commands are sent: whatever redis-py meets is a failure or an answer, and a fork harms nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from redis.sentinel import Sentinel

from flask_venuelimit.errors import ConfigurationError
from flask_venuelimit.policies import FixedWindow
from flask_venuelimit.storage import open_storage
from flask_venuelimit.storage.clients import Line
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.faults.proxy import Proxy
from tests.servers import StoreServer
from tests.storage.asking import ask, forking, hit, in_child, remaining

TEN = FixedWindow(10, per=60)
PATIENCE = "?socket_timeout=10"
#: Answers that no server of ours gives: to everything, the shake of hands included.
ANSWERS = [
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*2\r\n:1\r\n$2\r\nab\r\n",
    b"$3\r\n\xff\xfe\xfd\r\n",
    b"$0\r\n\r\n",
    b"$5\r\nerror\r\n",
    b"$11\r\n1\t1 1 0 1 0\r\n",
    b"$13\r\n2\t1 1 0 1 0 -\r\n",
    b"$13\r\n1\t3 1 0 1 0 -\r\n",
    b"$13\r\n1\t1 x 0 1 0 -\r\n",
    b"$25\r\n1\t1 1 0 1 0 -\t1 1 0 1 0 -\r\n",
    b"$27\r\n1\t1 1 0 1 0 -\n1\t1 1 0 1 0 -\r\n",
    b"*1\r\n" * 50 + b":1\r\n",
    b"hello\r\n",
    b"\x00\x01\x02\r\n",
    b"-\r\n",
    b"-ERR what\r\n",
]


@pytest.fixture
def proxy(valkey: StoreServer, valkey_client: redis.Redis) -> Iterator[Proxy]:
    """A network in front of an empty server."""
    with Proxy(valkey.port) as proxy:
        yield proxy


@pytest.mark.parametrize("protocol", [2, 3])
@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_any_answer_that_is_no_answer_is_a_failure(proxy: Proxy, answer: bytes, protocol: int) -> None:
    """Over a connection there is and over a new one; afterwards all is as before."""
    # some answers leave the client waiting for another one
    store = open_storage(f"{proxy.url}?socket_timeout=1&protocol={protocol}")
    receipt = ask(store, TEN)
    for _ in range(2):
        proxy.carry = lambda _: answer
        with pytest.raises(store.failures):
            hit(store, TEN)
        proxy.carry = bytes
        proxy.reset()
    store.refund([receipt])
    assert remaining(store, TEN) >= 8


def test_an_answer_too_many_is_not_taken_for_the_next(proxy: Proxy) -> None:
    """A connection on which something is left unread is closed, not used."""
    store = open_storage(f"{proxy.url}{PATIENCE}")
    hit(store, TEN)
    proxy.carry = lambda data: data * 2
    hit(store, TEN)
    proxy.carry = bytes
    assert [hit(store, TEN, key=key).remaining for key in ("a", "a", "b")] == [9, 8, 9]


def test_a_failure_closes_connections_that_lie_idle(proxy: Proxy, valkey_client: redis.Redis) -> None:
    """What is asked next is asked over a new one."""
    store = open_storage(f"{proxy.url}{PATIENCE}")
    hit(store, TEN)
    opened = proxy.connections
    valkey_client.config_set("maxmemory", "1")
    with pytest.raises(store.failures):
        hit(store, TEN)
    valkey_client.config_set("maxmemory", "0")
    hit(store, TEN)
    assert proxy.connections == opened + 1


def test_a_server_that_forgot_the_script_keeps_its_connection(
    proxy: Proxy, valkey_client: redis.Redis
) -> None:
    """That is no failure."""
    store = open_storage(f"{proxy.url}{PATIENCE}")
    hit(store, TEN)
    opened = proxy.connections
    valkey_client.script_flush()
    hit(store, TEN)
    assert proxy.connections == opened


def test_a_store_that_is_gone_leaves_no_connection_open(proxy: Proxy, valkey_client: redis.Redis) -> None:
    """What was opened for it is closed with it."""
    store = open_storage(f"{proxy.url}{PATIENCE}")
    hit(store, TEN)
    pool = store.client.connection_pool
    del store
    assert not any(connection._sock for connection in pool._available_connections)


def test_a_client_that_was_given_stays_open(valkey_client: redis.Redis) -> None:
    """The app may have use for it still."""
    store = RedisStorage(valkey_client)
    hit(store, TEN)
    pool: Any = valkey_client.connection_pool
    del store
    assert any(connection._sock for connection in pool._available_connections)


@forking
def test_children_of_a_process_at_work_never_hang(valkey: StoreServer, valkey_client: redis.Redis) -> None:
    """Forked while threads are asking, whatever those have locked: each of ten children counts."""
    store = open_storage(valkey.url)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            hit(store, FixedWindow(10**9, per=60))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        assert all(in_child(lambda: hit(store, TEN, key="children").allowed) for _ in range(10))
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert remaining(store, TEN, "children") == 0


@forking
def test_a_lock_that_a_thread_held_is_free_in_a_child(
    valkey: StoreServer, valkey_client: redis.Redis
) -> None:
    """redis-py's own locks are new there, those of its pools above all."""
    store = open_storage(valkey.url)
    hit(store, TEN)
    held, over = threading.Event(), threading.Event()

    def hold() -> None:
        with store.client.connection_pool._lock:
            held.set()
            over.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        assert in_child(lambda: hit(store, TEN).remaining == 8)
    finally:
        over.set()
        holder.join()


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("redis://u:hunter2@h:7000/3", "host='h', port=7000, db=3"),
        ("unix:///run/s.sock?password=hunter2", "path='/run/s.sock'"),
        ("redis+sentinel://u:hunter2@h1:1,h2:2/venue/3", "service='venue', db=3"),
        ("redis+cluster://u:hunter2@h1:1,h2", "cluster=h1:1, h2:6379"),
    ],
)
def test_a_store_says_where_it_counts_and_no_password(uri: str, place: str) -> None:
    """Without asking anybody."""
    assert repr(open_storage(uri)) == f"RedisStorage({place})"


@pytest.mark.parametrize("protocol", [2, 3])
def test_an_error_that_repeats_the_password_is_not_passed_on(proxy: Proxy, protocol: int) -> None:
    """As servers say it that do not know the command they were sent it with; the rest is told as it is."""
    store = open_storage(f"{proxy.url}{PATIENCE}&protocol={protocol}".replace("//", "//u:hunter2@"))
    proxy.carry = lambda _: b"-ERR unknown command 'AUTH', with args beginning with: 'u' 'hunter2'\r\n"
    with pytest.raises(store.failures) as caught:
        hit(store, TEN)
    assert str(caught.value) == "the server's error repeats the password, so it is not shown"
    proxy.carry = lambda _: b"-WRONGPASS invalid username-password pair or user is disabled.\r\n"
    with pytest.raises(store.failures, match="invalid username-password pair"):
        hit(store, TEN)


def test_sentinel_itself_is_no_client() -> None:
    """What it gives for a service is."""
    make: Any = Sentinel
    sentinel = make([("h", 1)])
    with pytest.raises(ConfigurationError, match=r"cannot use a redis\.sentinel\.Sentinel"):
        Line(sentinel)
    assert Line(sentinel.master_for("venue")).place() == "service='venue'"


def test_a_given_client_keeps_its_own_ways(valkey: StoreServer, clock: ManualClock) -> None:
    """Its time-outs, tries and protocol are the app's."""
    client = valkey.client(socket_timeout=9, protocol=3)
    store = RedisStorage(client, clock)
    assert hit(store, TEN).allowed
    settings = client.connection_pool.connection_kwargs
    assert (settings["socket_timeout"], settings["protocol"]) == (9, 3)
    client.close()

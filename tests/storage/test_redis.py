"""Counting in a real server: one command a call, an expiry on every key, and no key of others' harmed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.errors import ConfigurationError
from flask_venuelimit.policies import FixedWindow, LeakyBucket, Policy, SlidingLog, SlidingWindow, TokenBucket
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer, wait_until
from tests.storage.asking import (
    POLICIES,
    ask,
    charge,
    contents,
    every_policy,
    forking,
    hit,
    hits,
    in_child,
    look,
    remaining,
)

HOUR = 3_600_000


@pytest.fixture
def client(valkey_client: redis.Redis) -> redis.Redis:
    """A client of an empty server."""
    return valkey_client


@pytest.fixture
def moved(client: redis.Redis, clock: ManualClock) -> RedisStorage:
    """A store on a clock that stands still."""
    return RedisStorage(client, clock)


@pytest.fixture
def store(client: redis.Redis) -> RedisStorage:
    """A store on the server's own clock."""
    return RedisStorage(client)


@pytest.fixture(params=[{}, {"decode_responses": True}, {"protocol": 2}, {"protocol": 3}], ids=str)
def any_client(request: pytest.FixtureRequest, valkey: StoreServer) -> Iterator[redis.Redis]:
    """A client of an empty server, in each way that clients read answers."""
    with valkey.client(**request.param) as client:
        client.flushall()
        yield client


def _calls(client: redis.Redis) -> dict[str, int]:
    """How often the server was asked for each command from outside a script."""
    stats: Any = client.info("commandstats")
    inside = {"time", "get", "set", "pttl", "pexpire"}
    # Redis 6.2 does not tell the parts of a command apart
    setup = {"hello", "client|setinfo", "config|resetstat", "info", "flushall", "client", "config"}
    names = {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in stats.items()}
    return {name: calls for name, calls in names.items() if name not in inside | setup}


def _lives(client: redis.Redis) -> dict[object, int]:
    """The milliseconds each key has left."""
    keys: Any = client.keys()
    return {key: int(client.pttl(key)) for key in keys}


def test_any_kind_of_answer_is_understood(any_client: redis.Redis) -> None:
    """Bytes or text, RESP2 or RESP3: the store reads them all."""
    store = RedisStorage(any_client)
    receipt = ask(store, POLICIES[0], 2)
    assert (receipt.charged, receipt.records[0].remaining) == (True, 3)
    store.refund([receipt])
    assert remaining(store, POLICIES[0]) == 5


def test_a_call_is_one_command(store: RedisStorage, client: redis.Redis) -> None:
    """However many charges, cells and receipts, whatever is asked is one command."""
    several = [Charge((Cell(f"{n} a", POLICIES[0]), Cell(f"{n} b", POLICIES[1]))) for n in range(5)]
    hit(store, POLICIES[0])
    client.config_resetstat()
    receipts = store.decide(several)
    store.peek(several)
    store.refund(receipts)
    store.reset([cell.key for one in several for cell in one.cells])
    assert _calls(client) == {"evalsha": 3, "del": 1}


def test_a_flushed_script_is_sent_again(store: RedisStorage, client: redis.Redis) -> None:
    """A server that has forgotten the script gets its text, the charge counts once, and nothing fails."""
    hit(store, POLICIES[0])
    client.script_flush()
    client.config_resetstat()
    assert hit(store, POLICIES[0]).remaining == 3
    assert hit(store, POLICIES[0]).remaining == 2
    assert _calls(client) == {"evalsha": 2, "eval": 1}


def test_a_refund_to_a_flushed_server_counts_once(store: RedisStorage, client: redis.Redis) -> None:
    """A refund too is sent again where the script was forgotten."""
    receipt = ask(store, POLICIES[0], 4)
    client.script_flush()
    store.refund([receipt])
    assert remaining(store, POLICIES[0]) == 5


@every_policy
def test_every_write_sets_an_expiry(store: RedisStorage, client: redis.Redis, policy: Policy) -> None:
    """From its first hit on, and after a refund, a key goes by itself when it is as good as none."""
    longest = 120_000 if isinstance(policy, SlidingWindow) else 60_000
    receipt, _ = ask(store, policy, 3), ask(store, policy, 2)
    assert longest - 5_000 < _lives(client)[b"k"] <= longest
    store.refund([receipt])
    assert longest - 5_000 < _lives(client)[b"k"] <= longest


def test_the_shortest_window_has_an_expiry_too(store: RedisStorage, client: redis.Redis) -> None:
    """A window of less than a millisecond is kept for one, and then goes."""
    hit(store, FixedWindow(5, per=0.000_001))
    wait_until(lambda: not client.exists("k"))
    assert client.dbsize() == 0


def test_a_given_clock_lets_keys_live_longer(moved: RedisStorage, client: redis.Redis) -> None:
    """Where the caller moves time, the server's own expiry comes an hour later."""
    hit(moved, POLICIES[0])
    assert HOUR < _lives(client)[b"k"] <= HOUR + 60_000


@pytest.mark.parametrize(
    ("policy", "life"),
    [
        (FixedWindow(5, per=60), 60_000),
        (FixedWindow(5, per=0.0015), 2),
        (FixedWindow(5, per=0.000_001), 1),
        (SlidingLog(5, per=0.0015), 2),
        (TokenBucket(3, rate=7, per=0.01), 5),
    ],
    ids=str,
)
def test_an_expiry_is_rounded_up_to_a_millisecond(
    moved: RedisStorage, client: redis.Redis, policy: Policy, life: int
) -> None:
    """No key goes before its time, nor a millisecond later than need be."""
    lives = []
    for _ in range(50):
        moved.reset(["k"])
        hit(moved, policy, 3)
        lives.append(_lives(client)[b"k"] - HOUR)
    # the server's own clock may go on meanwhile, if seldom
    assert max(lives) == life


@every_policy
@pytest.mark.parametrize("step", ["hit", "refused", "not charged", "refund"])
def test_a_key_without_expiry_is_given_one(
    store: RedisStorage, client: redis.Redis, policy: Policy, step: str
) -> None:
    """Whatever touches it: a key found without an expiry goes when its window is over."""
    receipts = [ask(store, policy) for _ in range(4)]
    client.persist("k")
    if step == "hit":
        hit(store, policy)
    elif step == "refused":
        hit(store, policy, 5)
    elif step == "refund":
        store.refund(receipts[1:])
    else:
        store.decide([charge(policy), charge(FixedWindow(0, per=1), key="no")])
    assert 0 < _lives(client)[b"k"] <= 120_000


def test_a_key_given_an_expiry_is_given_what_it_needs(moved: RedisStorage, client: redis.Redis) -> None:
    """A bucket that lost its expiry, and is then refunded, goes when what is left of its use is made good."""
    receipt, _ = ask(moved, POLICIES[3], 3), ask(moved, POLICIES[3])
    client.persist("k")
    moved.refund([receipt])
    assert HOUR + 11_000 < _lives(client)[b"k"] <= HOUR + 12_000


@every_policy
def test_a_key_refused_without_expiry_lives_as_it_would_have(
    moved: RedisStorage, client: redis.Redis, policy: Policy
) -> None:
    """A refused hit gives a key that lost its expiry the one that its last charge had given it."""
    hit(moved, policy)
    due = _lives(client)[b"k"]
    client.persist("k")
    assert not hit(moved, policy, 5).allowed
    assert due - 1_000 < _lives(client)[b"k"] <= due + 1


def test_a_window_that_is_only_behind_lives_until_it_is_past(
    moved: RedisStorage, client: redis.Redis, clock: ManualClock
) -> None:
    """Where the current window holds nothing, a sliding window's key goes with the last one's weight."""
    hit(moved, POLICIES[1], 3)
    clock.advance(70)
    moved.refund([ask(moved, POLICIES[1])])
    client.persist("k")
    assert not hit(moved, POLICIES[1], 5).allowed
    assert HOUR + 49_000 < _lives(client)[b"k"] <= HOUR + 50_000


def test_a_key_given_an_expiry_is_free_after_a_window(
    moved: RedisStorage, client: redis.Redis, clock: ManualClock
) -> None:
    """A key that lost its expiry at the limit keeps nobody out for longer than the window."""
    hits(moved, POLICIES[0], 5)
    client.persist("k")
    assert not hit(moved, POLICIES[0]).allowed
    clock.advance(60)
    assert hit(moved, POLICIES[0]).allowed


@every_policy
def test_a_peek_writes_nothing(moved: RedisStorage, client: redis.Redis, policy: Policy) -> None:
    """A peek at used, unused, foreign and undated keys leaves the server as it was."""
    hit(moved, policy, 2, "used")
    client.set("undated", "nonsense")
    client.rpush("list", "a")
    before = contents(client)
    moved.peek([charge(policy, 9, key) for key in ("used", "unused", "undated", "list")])
    assert contents(client) == before
    assert client.pttl("undated") == client.pttl("list") == -1


@every_policy
def test_a_refused_hit_writes_nothing(moved: RedisStorage, client: redis.Redis, policy: Policy) -> None:
    """Neither on a key that is used up nor on one that is unused."""
    hits(moved, policy, 5)
    before = contents(client)
    hits(moved, policy, 5)
    hit(moved, policy, 6, "unused")
    assert contents(client) == before


@every_policy
def test_a_refused_hit_asks_for_no_write(moved: RedisStorage, client: redis.Redis, policy: Policy) -> None:
    """Not even of what is there already: a flood costs a server reads only."""
    hits(moved, policy, 5)
    client.config_resetstat()
    hits(moved, policy, 5)
    stats: Any = client.info("commandstats")
    assert {"cmdstat_set", "cmdstat_setrange", "cmdstat_pexpire"}.isdisjoint(stats)


@every_policy
def test_what_fits_and_is_not_charged_writes_nothing(
    moved: RedisStorage, client: redis.Redis, policy: Policy
) -> None:
    """Where another limit refuses, an unused key stays unused, and a used one as it was."""
    hit(moved, policy, 2, "used")
    before = contents(client)
    full = charge(FixedWindow(0, per=60), key="full")
    moved.decide([charge(policy, key="used"), charge(policy, key="unused"), full])
    assert contents(client) == before


@every_policy
def test_a_refund_revives_nothing(moved: RedisStorage, client: redis.Redis, policy: Policy) -> None:
    """A key that is gone stays gone."""
    receipt = ask(moved, policy, 5)
    moved.reset(["k"])
    moved.refund([receipt])
    assert client.dbsize() == 0


def test_a_wrong_typed_key_fails_alone(store: RedisStorage, client: redis.Redis) -> None:
    """A list where a counter should be fails its own charge, refuses nobody, and is given an expiry."""
    client.rpush("list", "a")
    broken, sound = store.decide([charge(POLICIES[0], key="list"), charge(POLICIES[0])])
    assert broken.error == "WRONGTYPE Operation against a key holding the wrong kind of value"
    assert (broken.charged, broken.records) == (False, ())
    assert (sound.charged, sound.error) == (True, None)
    assert 0 < _lives(client)[b"list"] <= 60_000
    assert client.lrange("list", 0, -1) == [b"a"]


def test_a_wrong_typed_key_fails_its_whole_limit(store: RedisStorage, client: redis.Redis) -> None:
    """Where one counter of a limit cannot be read, the other is not charged."""
    client.rpush("list", "a")
    both = Charge((Cell("k", POLICIES[0]), Cell("list", POLICIES[1])))
    assert store.decide([both])[0].error is not None
    assert remaining(store, POLICIES[0]) == 5


def test_a_key_that_became_a_list_is_refunded_nothing(store: RedisStorage, client: redis.Redis) -> None:
    """A refund leaves a foreign key alone, save that it is given an expiry."""
    receipt = ask(store, POLICIES[0])
    client.delete("k")
    client.rpush("k", "a")
    store.refund([receipt])
    assert client.lrange("k", 0, -1) == [b"a"]
    assert 0 < _lives(client)[b"k"] <= 60_000


@every_policy
@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "f 1", "s 1 2 3 4", "\xff\x00", "l", "c" * 99),
        *("b 1 0 1 x", "b 1 9e99 1 x", "q 1 0 1 x", f"b 5 {2**52} 0 x"),
    ],
)
def test_unreadable_text_counts_as_no_state(
    moved: RedisStorage, client: redis.Redis, policy: Policy, text: str
) -> None:
    """What no rule has written is overwritten by the next hit, and given an expiry by a refused one."""
    client.set("k", text.encode("latin-1"))
    assert not hit(moved, policy, 6).allowed
    assert 0 < _lives(client)[b"k"] <= 60_000
    assert hit(moved, policy).remaining == 4


@pytest.mark.parametrize("clocked", [True, False], ids=["given clock", "server's clock"])
def test_state_is_kept_in_whole_numbers(client: redis.Redis, clock: ManualClock, clocked: bool) -> None:
    """However large the numbers, no exponent and no fraction is ever written."""
    clock.advance(1_700_000_000)
    store = RedisStorage(client, clock if clocked else None)
    for policy in (FixedWindow(10**15 - 1, per=10**9), SlidingWindow(10**15 - 1, per=10**9)):
        hit(store, policy, 10**15 - 2, policy.kind)
    hit(store, TokenBucket(10**8, rate=1, per=7), 10**8, "bucket")
    hit(store, LeakyBucket(rate=1, per=7, max_delay=10**9), 10**8, "queue")
    values: Any = client.mget("fixed-window", "sliding-window", "bucket", "queue")
    assert [value.split()[2] for value in values[:2]] == [b"999999999999998", b"0"]
    assert all(set(value.split()[n]) <= set(b"0123456789") for value in values for n in (1, 2))


def test_the_servers_clock_counts(store: RedisStorage, client: redis.Redis) -> None:
    """Without a clock of the caller's, windows are the server's: its time is in the state."""
    hit(store, POLICIES[0])
    seconds, microseconds = client.time()
    value: Any = client.get("k")
    start = int(value.split()[1])
    assert 0 <= seconds * 1_000_000 + microseconds - start < 10_000_000


@forking
def test_a_forked_child_counts_with_its_parent(moved: RedisStorage) -> None:
    """Parent and child ask over connections of their own, and share the count."""
    hits(moved, POLICIES[0], 2)
    assert in_child(lambda: hits(moved, POLICIES[0], 5) == 3)
    assert look(moved, POLICIES[0]).remaining == 0


@forking
def test_parent_and_child_name_their_charges_apart(moved: RedisStorage) -> None:
    """A child never makes a receipt that its parent makes too."""
    hit(moved, POLICIES[0], key="before")
    names: Any = moved.client
    assert in_child(lambda: names.set("told", hit(moved, POLICIES[0], key="a").token))
    assert names.get("told").decode() != hit(moved, POLICIES[0], key="b").token


def test_a_refused_connection_is_a_failure() -> None:
    """A server that is down raises what the store says failures are, at once, not when it is made."""
    server = StoreServer()
    store = RedisStorage(server.client())
    began = time.monotonic()
    with pytest.raises(store.failures):
        hit(store, POLICIES[0])
    assert time.monotonic() - began < 1


def test_a_full_server_is_a_failure() -> None:
    """Out of memory raises, and half a decision is never written."""
    with StoreServer("--maxmemory", "1", "--maxmemory-policy", "noeviction") as server:
        client = server.client()
        store = RedisStorage(client)
        with pytest.raises(store.failures):
            store.decide([charge(POLICIES[0], key="a"), charge(POLICIES[0], key="b")])
        assert client.dbsize() == 0


def test_a_replica_is_a_failure() -> None:
    """A server that may not be written to raises."""
    with StoreServer("--replicaof", "127.0.0.1", "1") as server:
        store = RedisStorage(server.client())
        with pytest.raises(store.failures):
            hit(store, POLICIES[0])


@pytest.mark.parametrize(
    "make",
    [redis.asyncio.Redis, lambda: redis.Redis().pipeline(), object, lambda: None],
    ids=["asyncio", "pipeline", "object", "None"],
)
def test_only_a_client_that_answers_will_do(make: Any) -> None:
    """An asyncio client, a pipeline or something else is refused where the store is made."""
    given = make()
    name = f"{type(given).__module__}.{type(given).__qualname__}"
    with pytest.raises(ConfigurationError) as caught:
        RedisStorage(given)
    assert str(caught.value) == (
        f"storage: RedisStorage cannot use a {name}. Use a redis-py client such as redis.Redis(host=...), no "
        "pipeline and not the one of redis.asyncio."
    )


def test_its_name_tells_where_and_no_password() -> None:
    """A store says where it counts; passwords stay out."""
    given = redis.Redis(host="store.example", port=7000, username="user", password="hunter2", db=3)
    assert repr(RedisStorage(given)) == "RedisStorage(host='store.example', port=7000, db=3)"
    over_socket = redis.Redis(unix_socket_path="/run/s.sock", password="hunter2")
    assert repr(RedisStorage(over_socket)) == "RedisStorage(path='/run/s.sock', db=0)"

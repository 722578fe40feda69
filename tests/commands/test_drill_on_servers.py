"""A drill on the app's own Valkey: under keys of its own, which all lapse, and are gone afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import redis

from flask_venuelimit import FixedWindow, MemoryStorage, RedisStorage, by_ip, by_user
from flask_venuelimit.decisions import Cell, Charge, Receipt
from flask_venuelimit.drill.findings import Broken
from flask_venuelimit.drill.flood import held
from flask_venuelimit.drill.scratch import Noted
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import caller, statuses
from tests.commands.drilling import drilled, said, venue, verdicts
from tests.servers import StoreServer
from tests.several import Cluster


def test_each_scratch_key_lapses_and_is_gone_afterwards(
    valkey: StoreServer, valkey_client: redis.Redis
) -> None:
    """What others keep on the server stays, and what callers have used stays used."""
    app, limiter = venue(STORAGE_URI=valkey.url)
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(3, per=60), name="it", key=by_ip)(lambda: "ok"))
    valkey_client.set("theirs", 1)
    assert statuses(caller(app), "/", 2) == [200, 200]
    before = set(valkey_client.keys())
    answer = drilled(app)
    assert verdicts(answer) == ["ok"] * 3
    assert " keys on the server, all lapse, the last in " in said(answer, "memory", "it")
    assert (len(before), set(valkey_client.keys())) == (2, before)
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_a_user_who_may_write_below_the_prefix_only_can_drill(valkey_client: redis.Redis) -> None:
    """The scratch keys lie there, and no command is sent but what limits need."""
    valkey_client.acl_setuser(
        "quiz", enabled=True, reset=True, nopass=True, keys=["pub:*"], categories=["+@all"]
    )
    port = valkey_client.connection_pool.connection_kwargs["port"]
    app, limiter = venue(STORAGE_URI=f"redis://quiz:x@127.0.0.1:{port}?socket_timeout=10", KEY_PREFIX="pub")
    limiter.limit("50/minute", name="it", key=by_user)
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_windows_of_a_tenth_of_a_second_are_driven_on_a_server(
    valkey: StoreServer, valkey_client: redis.Redis
) -> None:
    """The clock that counts is the drill's, however long the server takes."""
    app, limiter = venue(STORAGE_URI=valkey.url)
    limiter.limit("5/0.1s", name="it", key=by_user)
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_what_each_process_counts_is_driven_in_memory(
    valkey: StoreServer, valkey_client: redis.Redis
) -> None:
    """There it is counted in the app too."""
    app, limiter = venue(STORAGE_URI=valkey.url)
    limiter.limit("50/minute", name="it", key=by_user, per_process=True)
    assert "400 keys held in memory" in said(drilled(app), "memory", "it")


def test_a_cluster_is_drilled(cluster: Cluster) -> None:
    """Its keys are on all of its servers, and gone from all of them."""
    cluster.empty()
    app, limiter = venue(STORAGE_URI=cluster.url)
    limiter.limit("50/minute", name="it", key=by_user)
    assert verdicts(drilled(app)) == ["ok"] * 3
    assert sum(client.dbsize() for client in cluster.clients()) == 0


def test_a_server_that_is_down_fails() -> None:
    """What is wrong is said in a line, and not as a traceback."""
    with StoreServer() as server:
        url = server.hasty_url
    app, limiter = venue(STORAGE_URI=url)
    limiter.limit("5/minute", name="it", key=by_ip)
    answer = drilled(app)
    assert answer.code == 1
    assert said(answer, "refusal", "it").startswith("FAILED: the storage did not answer (ConnectionError: ")


class _SomebodyElses:
    """A store that is none of ours, and whose clock nobody can move."""

    counts = True
    failures: tuple[type[Exception], ...] = ()

    def __init__(self) -> None:
        self._inner = MemoryStorage()
        self.peek, self.refund = self._inner.peek, self._inner.refund
        self.renew, self.reset = self._inner.renew, self._inner.reset

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Say that it must not be asked."""
        pytest.fail("a drill charged somebody else's store")


def test_somebody_else_s_store_is_left_alone() -> None:
    """Its limits are driven in memory, by the same rules."""
    app, limiter = venue(_SomebodyElses())
    limiter.limit("50/minute", name="it", key=by_user)
    assert "keys held in memory" in said(drilled(app), "memory", "it")


def test_a_key_without_expiry_is_found(valkey_client: redis.Redis) -> None:
    """It would stay on the server for good."""
    store = Noted(RedisStorage(valkey_client, ManualClock()))
    store.decide([Charge((Cell(f"it:{n}", FixedWindow(5, per=60)),)) for n in range(3)])
    assert held(store).startswith("3 keys on the server, all lapse, the last in ")
    valkey_client.persist("it:1")
    with pytest.raises(Broken, match="1 of 3 keys on the server have no expiry"):
        held(store)


def test_a_store_that_outgrows_its_bounds_is_found() -> None:
    """Which memory must not do."""
    store = MemoryStorage(5)
    store.decide([Charge((Cell(f"it:{n}", FixedWindow(5, per=60)),)) for n in range(3)])
    store.max_keys = 2
    with pytest.raises(Broken, match="3 keys are held, and 2 may be"):
        held(store)

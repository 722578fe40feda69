"""Every store that the contract binds, on a clock that stands still."""

from __future__ import annotations

import pytest

from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.several import Cluster
from tests.storage.asking import Store


@pytest.fixture(params=["memory", "redis", "cluster"])
def store(request: pytest.FixtureRequest, clock: ManualClock) -> Store:
    """An empty store: in memory, on a real server, and in a real cluster of three."""
    if request.param == "memory":
        return MemoryStorage(clock=clock)
    if request.param == "redis":
        return RedisStorage(request.getfixturevalue("valkey_client"), clock=clock)
    cluster: Cluster = request.getfixturevalue("cluster")
    cluster.empty()
    return cluster.store(clock)

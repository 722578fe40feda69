"""Every store that the contract binds, on a clock that stands still."""

from __future__ import annotations

import pytest

from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import Store


@pytest.fixture(params=["memory", "redis"])
def store(request: pytest.FixtureRequest, clock: ManualClock) -> Store:
    """An empty store, once in memory and once on a real server."""
    if request.param == "memory":
        return MemoryStorage(clock=clock)
    return RedisStorage(request.getfixturevalue("valkey_client"), clock=clock)

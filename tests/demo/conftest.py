"""The pub, with limits on and with limits off."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.demo.pub import Pub


@pytest.fixture
def pub(tmp_path: Path) -> Pub:
    """A pub whose limits count in this process."""
    return Pub(tmp_path, VENUELIMIT_STORAGE_URI="memory://")


@pytest.fixture
def open_pub(tmp_path: Path) -> Pub:
    """A pub as it comes: no storage, no limits."""
    return Pub(tmp_path)

"""What all fronts need: several addresses on one machine."""

from __future__ import annotations

import socket

import pytest

from tests.fronts.asking import OTHER
from tests.parts import Part, require


def find_addresses() -> str | None:
    """Find out whether one can connect from other loopback addresses than 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind((OTHER, 0))
        except OSError:
            return None
    return OTHER


ADDRESSES = Part(
    "further loopback address",
    find_addresses,
    "give the loopback interface 127.0.0.2, .3 and .5, such as with 'ifconfig lo0 alias 127.0.0.2'",
)


@pytest.fixture(scope="session", autouse=True)
def _addresses() -> str:
    """Every test here connects from other loopback addresses, which Linux has by itself."""
    return require(ADDRESSES)

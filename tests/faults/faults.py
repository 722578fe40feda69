"""What can go wrong with a server, for real, and how it is mended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import redis

from tests.faults.proxy import Proxy
from tests.servers import StoreServer, free_port


class Site(NamedTuple):
    """A server, and the network on the way to it.

    :param direct: whether an app goes past the network, straight to the server.
    :param silent: whether an app will wait in vain, so that it has to be quick to give up.
    """

    server: StoreServer
    proxy: Proxy
    direct: bool
    silent: bool

    @property
    def url(self) -> str:
        """Where an app finds the server."""
        hasty = self.server.hasty_url if self.direct else self.proxy.url
        seconds = 0.2 if self.silent else 10
        return f"{hasty}?socket_timeout={seconds}&socket_connect_timeout={seconds}"

    def configure(self, **settings: str) -> None:
        """Change settings of the running server."""
        with self.server.client() as client:
            for name, value in settings.items():
                client.config_set(name.replace("_", "-"), value)

    def command(self, *command: str) -> None:
        """Send one command to the server."""
        with self.server.client() as client:
            client.execute_command(*command)


Act = Callable[[Site], object]


class Fault(NamedTuple):
    """Something that goes wrong.

    :param begin: makes it so.
    :param end: mends it.
    :param direct: whether the app talks to the server without the network in between.
    :param silent: whether nothing comes back.
    :param looks: whether the server still answers who only looks.
    :param forgets: whether it still deletes.
    """

    begin: Act
    end: Act
    direct: bool = True
    silent: bool = False
    looks: bool = False
    forgets: bool = False


def _hang_up_on_clients(client: redis.Redis) -> None:
    client.client_kill_filter(_type="normal", skipme=True)


def _change_password(site: Site) -> None:
    """What an operator does: set it, and make everybody sign in again."""
    with site.server.client() as client:
        client.config_set("requirepass", "rotated")
        _hang_up_on_clients(client)


def _forget_password(site: Site) -> None:
    with site.server.client(password="rotated") as client:
        client.config_set("requirepass", "")


def _fill_up(site: Site) -> None:
    site.configure(maxmemory_policy="noeviction", maxmemory="1")


def _lose(_: bytes) -> bytes:
    return b""


def _answer(text: bytes) -> Act:
    def begin(site: Site) -> None:
        site.proxy.carry = lambda _: text

    return begin


def _answer_late(site: Site) -> None:
    def carry(data: bytes) -> bytes:
        threading.Event().wait(0.3)
        return data

    site.proxy.carry = carry


def _pass_on_again(site: Site) -> None:
    site.proxy.carry = bytes
    site.proxy.reset()


def _lose_answers(site: Site) -> None:
    site.proxy.carry = _lose


def _fall_silent(site: Site) -> None:
    site.proxy.silent = True


def _speak_again(site: Site) -> None:
    site.proxy.silent = False


def _come_back(site: Site) -> None:
    site.server.start()


FAULTS = {
    "killed": Fault(lambda site: site.server.kill(), _come_back),
    "frozen": Fault(lambda site: site.server.pause(), lambda site: site.server.resume(), silent=True),
    "refused": Fault(lambda site: site.proxy.refuse(), lambda site: site.proxy.listen(), False),
    "walled off": Fault(
        lambda site: site.proxy.wall_off(), lambda site: site.proxy.listen(), False, silent=True
    ),
    "silent": Fault(_fall_silent, _speak_again, False, silent=True),
    "answers lost": Fault(_lose_answers, _pass_on_again, False, silent=True),
    "answers late": Fault(_answer_late, _pass_on_again, False, silent=True),
    "out of memory": Fault(_fill_up, lambda site: site.configure(maxmemory="0"), looks=True, forgets=True),
    "replica": Fault(
        lambda site: site.command("REPLICAOF", "127.0.0.1", str(free_port())),
        lambda site: site.command("REPLICAOF", "NO", "ONE"),
        looks=True,
    ),
    "too few replicas": Fault(
        lambda site: site.configure(min_replicas_to_write="1"),
        lambda site: site.configure(min_replicas_to_write="0"),
        looks=True,
    ),
    "password changed": Fault(_change_password, _forget_password),
    "loading": Fault(_answer(b"-LOADING the dataset\r\n"), _pass_on_again, False),
    "cluster down": Fault(_answer(b"-CLUSTERDOWN no\r\n"), _pass_on_again, False),
    "no Redis": Fault(_answer(b"HTTP/1.1 400 Bad Request\r\n\r\n"), _pass_on_again, False),
    "half a record": Fault(_answer(b"$9\r\n1\t1 1 0 1\r\n"), _pass_on_again, False),
    "half an answer": Fault(_answer(b"$500\r\n1\t1 1"), _pass_on_again, False, silent=True),
}

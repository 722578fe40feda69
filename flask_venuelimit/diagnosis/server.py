"""What a storage says when it is asked how it is. Nothing is written to it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, TypeVar

import redis
from redis.exceptions import InvalidResponse, NoPermissionError

from ..decisions import Cell, Charge
from ..policies import SlidingWindow
from ..storage import Storage
from ..storage.clients import Line
from ..storage.redis import RedisStorage

_T = TypeVar("_T")
#: A time-out may be the machine's, which starts a process to ask; so many in a row are the server's.
_TRIES = 3
#: How many keys are tried at most, to find one for each server of a cluster.
_KEYS = 10_000
#: What servers put in front of what a command says that a script calls; Redis 6.2 names the line as well.
_LEAD = re.compile(r"^(@\w+: \d+: )?-?(ERR )?")


@dataclass
class Checkup:
    """What a storage said.

    :param failure: why it did not answer; None where it did.
    :param refused: what its user may not do, or nobody may now: a command, and what the server says to it.
    :param told: what each server tells of itself (``INFO``), by its name.
    :param unseen: why a server tells nothing of itself.
    """

    failure: Exception | None = None
    refused: dict[str, str] = field(default_factory=dict)
    told: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unseen: list[str] = field(default_factory=list)


def check_up(storage: Storage, prefix: str) -> Checkup:
    """Ask a storage how it is: to look a counter up, as requests do, and a server of Redis's kind for more.

    :param prefix: what storage keys begin with.
    """
    checkup = Checkup()
    try:
        if isinstance(storage, RedisStorage):
            for name, server, key in _servers(storage.client, prefix):
                _ask_server(storage, Line(server), key, name, checkup)
        else:
            _peek(storage, _new_key(prefix))
    except storage.failures as error:
        checkup.failure = error
    return checkup


def _ask_server(storage: RedisStorage, line: Line, key: str, name: str, checkup: Checkup) -> None:
    try:
        checkup.refused.update(_refused(line, key))
        _peek(storage, key)
    except NoPermissionError as error:
        checkup.refused[_forbidden(str(error))] = str(error)
    except redis.ResponseError:
        # what the script may not do it fails with, in words of its own
        if not checkup.refused:
            raise
    try:
        told = _patiently(lambda: line.send(key, "INFO"))
        checkup.told[name] = told if isinstance(told, dict) else {}
    except redis.ResponseError as error:
        checkup.unseen.append(str(error))


def _forbidden(words: str) -> str:
    """What a server says that its user may not use: a command, or the keys."""
    named = re.search(r"the '([\w|]+)' command", words)
    return named[1] if named else "keys of this prefix" if "key" in words else "evalsha"


def _servers(client: Any, prefix: str) -> Iterator[tuple[str, redis.Redis, str]]:
    """Each server that has counters: its name, a client of it, and a key that lies there."""
    if not hasattr(client, "get_primaries"):
        yield "", client, _new_key(prefix)
        return
    keys: dict[str, str] = {}
    nodes: dict[str, Any] = {}
    for key in (_new_key(prefix) for _ in range(_KEYS)):
        node = client.get_node_from_key(key)
        if node is not None and node.name not in keys:
            keys[node.name], nodes[node.name] = key, node
        if len(keys) >= len(client.get_primaries()):
            break
    for name, key in keys.items():
        yield name, client.get_redis_connection(nodes[name]), key


def _new_key(prefix: str) -> str:
    """A key as a limit has it, of somebody who does not exist."""
    return f"{prefix}:{{{secrets.token_urlsafe(16)}}}:doctor"


def _peek(storage: Storage, key: str) -> None:
    """Look a counter up that nobody has.

    :raises Exception: one of the storage's ``failures``.
    """
    _patiently(lambda: storage.peek([Charge((Cell(key, SlidingWindow(1, per=60)),))]))


def _refused(line: Line, key: str) -> dict[str, str]:
    """The commands that limits need and the server refuses, with its words.

    :raises NoPermissionError: the user may not even ask.
    """
    script = files(__package__).joinpath("probe.lua").read_text("utf-8")
    answers = _patiently(lambda: line.send(key, "EVAL", script, 1, key))
    try:
        texts = [each if isinstance(each, str) else bytes(each).decode() for each in answers]
        return {name: _LEAD.sub("", words.strip()) for name, words in (text.split(" ", 1) for text in texts)}
    except (TypeError, ValueError):
        raise InvalidResponse("the answer is none of the script's") from None


def _patiently(ask: Callable[[], _T]) -> _T:
    """Ask again where an answer did not come in time; nothing here changes anything when asked twice."""
    for _ in range(_TRIES - 1):
        try:
            return ask()
        except redis.TimeoutError:
            continue
    return ask()

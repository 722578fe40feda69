"""Counts in Redis or Valkey: one atomic script call, on the server's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import redis
from redis.exceptions import NoScriptError, RedisClusterException

from ..decisions import Charge, Receipt, Record
from ..errors import ConfigurationError
from .rules import new_birth
from .script import load_script

_SECOND = 1_000_000
_PLACES = ("host", "port", "path", "db")


class RedisStorage:
    """Counts in Redis 6.2 or later, or in Valkey.

    Each call is one command, whatever the number of charges. The client keeps its own time-outs and
    retries, and is asked for nothing but EVALSHA, EVAL and DEL.

    :param client: a redis-py client.
    :param clock: reads seconds, in place of the server's clock; tests pass a
        :class:`~flask_venuelimit.testing.ManualClock`. Redis's own expiry may then only come later.
    :raises ConfigurationError: ``client`` is no such client.
    """

    counts = True
    # what a cluster client raises is no RedisError
    failures: tuple[type[Exception], ...] = (redis.RedisError, RedisClusterException, OSError)

    def __init__(self, client: redis.Redis, clock: Callable[[], float] | None = None) -> None:
        self.client = _checked(client)
        self.clock = clock
        self._script = load_script()

    def __repr__(self) -> str:
        """Say where, and never by which password."""
        given = self.client.connection_pool.connection_kwargs
        place = ", ".join(f"{name}={given[name]!r}" for name in _PLACES if name in given)
        return f"RedisStorage({place})"

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit.

        See :meth:`Storage.decide`. The cells of one call have to have keys of their own.
        """
        return self._ask("decide", charges, new_birth())

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Answer what :meth:`decide` would, each charge for itself, and write nothing."""
        return self._ask("peek", charges, "")

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, once, where the counters still hold it."""
        self._tell("refund", [receipt for receipt in receipts if receipt.redeem()])

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Let the slots that these receipts hold lapse a lease from now."""
        self._tell("renew", [slots for receipt in receipts if (slots := receipt.slots())])

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters."""
        if keys:
            self._call("DEL", *keys)

    def _call(self, *command: str | int) -> Any:
        execute: Callable[..., Any] = self.client.execute_command
        return execute(*command)

    def _ask(self, mode: str, charges: Sequence[Charge], birth: str) -> list[Receipt]:
        if not charges:
            return []
        arguments: list[str | int] = []
        for charge in charges:
            arguments += _arguments(charge)
        lines = self._run(mode, charges, birth, arguments).split("\n")
        return [_receipt(charge, line) for charge, line in zip(charges, lines, strict=True)]

    def _tell(self, mode: str, receipts: Sequence[Receipt]) -> None:
        if receipts:
            arguments: list[str | int] = []
            for receipt in receipts:
                arguments += _arguments(receipt.charge, [(record.token,) for record in receipt.records])
            self._run(mode, [receipt.charge for receipt in receipts], "", arguments)

    def _run(self, mode: str, charges: Sequence[Charge], birth: str, arguments: Sequence[str | int]) -> str:
        """Call the script: EVALSHA, and EVAL if the server does not know it yet."""
        keys = [cell.key for charge in charges for cell in charge.cells]
        now = "" if self.clock is None else round(self.clock() * _SECOND)
        rest = (len(keys), *keys, mode, now, birth, len(charges), *arguments)
        try:
            answer = self._call("EVALSHA", self._script.sha, *rest)
        except NoScriptError:
            answer = self._call("EVAL", self._script.text, *rest)
        return answer.decode() if isinstance(answer, bytes) else str(answer)


def _arguments(charge: Charge, tokens: Iterable[tuple[str, ...]] = repeat(())) -> list[str | int]:
    """Spell a charge as the script reads it, each cell followed by what is in ``tokens`` for it."""
    spelt: list[str | int] = [len(charge.cells), charge.cost, int(charge.binding), int(charge.stays)]
    # repeat(()) has no end, so the two cannot be of one length
    for (_, policy), token in zip(charge.cells, tokens, strict=False):
        spelt += policy.kind, policy.span, *policy.numbers, *token
    return spelt


def _receipt(charge: Charge, line: str) -> Receipt:
    verdict, *fields = line.split("\t")
    if verdict == "error":
        return Receipt(charge, (), False, fields[0])
    return Receipt(charge, tuple(_record(field) for field in fields), verdict == "1")


def _record(field: str) -> Record:
    allowed, remaining, wait, reset, delay, token = field.split(" ")
    return Record(
        allowed == "1",
        int(remaining),
        None if wait == "-1" else int(wait),
        int(reset),
        int(delay),
        "" if token == "-" else token,
    )


def _checked(client: Any) -> redis.Redis:
    """Take a redis-py client that answers before it returns."""
    if isinstance(client, redis.Redis) and not isinstance(client, redis.client.Pipeline):
        return client
    raise ConfigurationError(
        f"storage: RedisStorage cannot use a {type(client).__module__}.{type(client).__qualname__}. Use a "
        "redis-py client such as redis.Redis(host=...), no pipeline and not the one of redis.asyncio."
    )

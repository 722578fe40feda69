"""Counts that live on one server: each call is one command, one atomic step of the script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, TypeVar

from redis.exceptions import InvalidResponse, NoScriptError

from ..decisions import Charge, Receipt, Record
from ..quantities import MOST, SECOND
from .clients import Line
from .rules import new_birth
from .script import load_script

_T = TypeVar("_T")
#: How a charge's line and a cell's verdict can begin.
_VERDICTS = ("0", "1")


class Scripted:
    """Asks the script about keys of one server.

    :param line: sends commands. It is asked for nothing but EVALSHA, EVAL and DEL.
    :param clock: reads seconds, in place of the server's clock.
    """

    def __init__(self, line: Line, clock: Callable[[], float] | None) -> None:
        self._line = line
        self._clock = clock
        self._script = load_script()

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit."""
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
            self._understood(lambda: int(self._line.send(keys[0], "DEL", *keys)))

    def _ask(self, mode: str, charges: Sequence[Charge], birth: str) -> list[Receipt]:
        if not charges:
            return []
        arguments: list[str | int] = []
        for charge in charges:
            arguments += _arguments(charge)
        answer = self._run(mode, charges, birth, arguments)
        return self._understood(lambda: _receipts(charges, answer))

    def _tell(self, mode: str, receipts: Sequence[Receipt]) -> None:
        if receipts:
            arguments: list[str | int] = []
            for receipt in receipts:
                arguments += _arguments(receipt.charge, [(record.token,) for record in receipt.records])
            answer = self._run(mode, [receipt.charge for receipt in receipts], "", arguments)
            self._understood(lambda: _nothing(answer))

    def _run(self, mode: str, charges: Sequence[Charge], birth: str, arguments: Sequence[str | int]) -> Any:
        """Call the script: EVALSHA, and EVAL if the server does not know it yet."""
        keys = [cell.key for charge in charges for cell in charge.cells]
        now = "" if self._clock is None else round(self._clock() * SECOND)
        rest = (len(keys), *keys, mode, now, birth, len(charges), *arguments)
        try:
            return self._line.send(keys[0], "EVALSHA", self._script.sha, *rest)
        except NoScriptError:
            return self._line.send(keys[0], "EVAL", self._script.text, *rest)

    def _understood(self, read: Callable[[], _T]) -> _T:
        """Read an answer.

        :raises InvalidResponse: it is none of the script's. Whatever that is, it is no server of ours, or
            one whose answers have got out of step.
        """
        try:
            return read()
        except (ValueError, TypeError) as error:
            self._line.mistrust()
            raise InvalidResponse(f"the answer is none of the script's: {error}") from None


def _arguments(charge: Charge, tokens: Iterable[tuple[str, ...]] = repeat(())) -> list[str | int]:
    """Spell a charge as the script reads it, each cell followed by what is in ``tokens`` for it."""
    # more than any policy holds is as good as one too many; of thousands of digits a client may come to grief
    cost = min(charge.cost, MOST + 1)
    spelt: list[str | int] = [len(charge.cells), cost, int(charge.binding), int(charge.stays)]
    # repeat(()) has no end, so the two cannot be of one length
    for (_, policy), token in zip(charge.cells, tokens, strict=False):
        spelt += policy.kind, policy.span, *policy.numbers, *token
    return spelt


def _text(answer: Any) -> str:
    return answer.decode() if isinstance(answer, bytes) else str(answer)


def _nothing(answer: Any) -> None:
    if _text(answer):
        raise ValueError("a text where none should be")


def _receipts(charges: Sequence[Charge], answer: Any) -> list[Receipt]:
    lines = _text(answer).split("\n")
    return [_receipt(charge, line) for charge, line in zip(charges, lines, strict=True)]


def _receipt(charge: Charge, line: str) -> Receipt:
    verdict, *fields = line.split("\t")
    if verdict == "error" and fields:
        return Receipt(charge, (), False, fields[0])
    if verdict not in _VERDICTS or len(fields) != len(charge.cells):
        raise ValueError(f"a line of {len(fields) + 1} fields")
    return Receipt(charge, tuple(_record(field) for field in fields), verdict == "1")


def _record(field: str) -> Record:
    allowed, remaining, wait, reset, delay, token = field.split(" ")
    if allowed not in _VERDICTS:
        raise ValueError("a verdict that is neither yes nor no")
    return Record(
        allowed == "1",
        int(remaining),
        None if wait == "-1" else int(wait),
        int(reset),
        int(delay),
        "" if token == "-" else token,
    )

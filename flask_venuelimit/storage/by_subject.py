"""One call a subject, where the keys of different subjects live on different servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..decisions import Cell, Charge, Receipt
from ..policies import FixedWindow
from .clients import FAILURES
from .scripted import Scripted
from .together import Point

_T = TypeVar("_T")
#: A policy that refuses everything.
_CLOSED = FixedWindow(0, per=1)


class BySubject:
    """Asks once a subject, and keeps all or none across these calls.

    All keys of a subject have one hash tag, and so live on one server (Redis Cluster specification, "Hash
    tags"). What an earlier call charged is given back once a later one refuses or fails.

    :param one: is asked about one subject at a time.
    """

    def __init__(self, one: Scripted) -> None:
        self._one = one

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Charge all of ``charges``, or none of them if a binding one does not fit; failure limits stay.

        :raises Exception: a server failed; nothing stays charged where the others can be told so.
        """
        groups = _groups(charges, _subject)
        if len(groups) == 1:
            return self._one.decide(charges)
        point = Point(self.refund)
        try:
            for group in groups:
                asked = [*group, _barrier(group)] if point.refused else group
                point.add(group, self._one.decide(asked)[: len(group)])
        except FAILURES:
            point.abandon()
            raise
        # each was asked about, also behind a barrier
        return [receipt for receipt in point.answers(charges) if receipt is not None]

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        """Look at each charge, a call a subject."""
        answers = [receipt for group in _groups(charges, _subject) for receipt in self._one.peek(group)]
        found = {id(receipt.charge): receipt for receipt in answers}
        return [found[id(charge)] for charge in charges]

    def refund(self, receipts: Sequence[Receipt]) -> None:
        """Give back what these receipts charged, a call a subject."""
        _each(self._one.refund, _groups(receipts, lambda receipt: _subject(receipt.charge)))

    def renew(self, receipts: Sequence[Receipt]) -> None:
        """Renew the slots that these receipts hold, a call a subject."""
        _each(self._one.renew, _groups(receipts, lambda receipt: _subject(receipt.charge)))

    def reset(self, keys: Sequence[str]) -> None:
        """Forget these counters, a call a subject."""
        _each(self._one.reset, _groups(keys, hash_tag))


def hash_tag(key: str) -> str:
    """What decides where a key lives: the text in its first pair of braces, else the whole key."""
    _, opened, rest = key.partition("{")
    tag, closed, _ = rest.partition("}")
    return tag if opened and closed and tag else key


def _subject(charge: Charge) -> str:
    return hash_tag(charge.cells[0].key)


def _groups(things: Iterable[_T], tag: Callable[[_T], str]) -> list[list[_T]]:
    """Put together what has the same tag, in the order in which tags come first."""
    found: dict[str, list[_T]] = {}
    for thing in things:
        found.setdefault(tag(thing), []).append(thing)
    return list(found.values())


def _barrier(group: Sequence[Charge]) -> Charge:
    """A charge that refuses the others of its call: they are looked at, and failure limits are charged."""
    key = group[0].cells[0].key
    # a key of its own that lives where the others do, under the same prefix, and that is never written
    return Charge((Cell(f"{{{key}}}" if hash_tag(key) == key else f"{key}!", _CLOSED),))


def _each(call: Callable[[list[_T]], None], groups: Iterable[list[_T]]) -> None:
    """Make each of these calls, whatever becomes of the others.

    :raises Exception: the first failure.
    """
    failures = []
    for group in groups:
        try:
            call(group)
        except FAILURES as error:
            failures.append(error)
    if failures:
        raise failures[0]

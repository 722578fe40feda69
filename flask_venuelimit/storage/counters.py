"""Counters in this process, cell by cell: what each would become, and how that is kept. It locks nothing."""

from __future__ import annotations

from typing import Any

from ..decisions import Cell, Record
from .rules import RULES, Outcome
from .shelf import CALM, EMPTY, HELD, Shelf


class Counters:
    """Exact counters, on a shelf of at most ``size`` keys."""

    def __init__(self, size: int) -> None:
        self.shelf = Shelf(size)

    def look(self, cell: Cell, now: int, cost: int = 0, birth: str = "") -> Outcome:
        """What a cell would become; nothing is written."""
        key, policy = cell
        entry = self.shelf.entries.get(key)
        state = entry.state if entry is not None and entry.kind == policy.kind else None
        return RULES[policy.kind].take(state, now, cost, birth, *policy.numbers)

    def keep(self, cell: Cell, outcome: Outcome, now: int) -> bool:
        """Write a charged cell.

        :returns: whether there was room for it.
        """
        key, policy = cell
        assert outcome.state is not None, "whatever was charged has a state"
        rank = HELD if policy.held else CALM
        return self.shelf.put(key, policy.kind, outcome.state, outcome.expires, rank, now)

    def pass_by(self, cell: Cell, outcome: Outcome, now: int) -> Record:
        """Write what a cell that was not charged has to keep all the same, and note whether it refuses.

        :returns: the verdict on the cost, and the room there is now.
        """
        key, policy = cell
        allowed, state, remaining, wait, reset, delay, _, expires = outcome
        if allowed:
            # what the cost would have made of the cell is not to be
            _, state, remaining, _, reset, _, _, expires = self.look(cell, now)
        if state is not None:
            self.shelf.put(key, policy.kind, state, expires, HELD if policy.held else CALM, now)
        if not allowed and not policy.held:
            self.shelf.refuse(key, expires if wait is None else now + wait)
        return Record(allowed, remaining, wait, reset, delay)

    def peek(self, cell: Cell, now: int, cost: int) -> Record:
        """The verdict on a cost, and the room there is now; nothing is written."""
        outcome = self.look(cell, now, cost)
        room = self.look(cell, now) if outcome.allowed else outcome
        return Record(outcome.allowed, room.remaining, outcome.wait, room.reset, outcome.delay)

    def give_back(self, cell: Cell, cost: int, token: str, now: int) -> None:
        """Undo a charge, where the counter still holds it."""
        policy = cell.policy
        entry = self.shelf.entries.get(cell.key)
        if entry is not None and entry.kind == policy.kind:
            give_back = RULES[policy.kind].give_back
            self._amend(cell, give_back(entry.state, now, cost, token, *policy.numbers), now)

    def renew(self, cell: Cell, token: str, now: int) -> None:
        """Let a slot that is still held lapse a lease from now."""
        policy = cell.policy
        entry = self.shelf.entries.get(cell.key)
        renew = RULES[policy.kind].renew
        if entry is not None and entry.kind == policy.kind and renew is not None:
            self._amend(cell, renew(entry.state, now, token, *policy.numbers), now)

    def _amend(self, cell: Cell, state: tuple[Any, ...] | None, now: int) -> None:
        if state is None:
            return
        policy = cell.policy
        room = RULES[policy.kind].take(state, now, 0, "", *policy.numbers)
        rank = EMPTY if room.remaining >= policy.quota else HELD if policy.held else CALM
        self.shelf.put(cell.key, policy.kind, state, room.expires, rank, now)

"""What a limit asks of storage, what storage answers, and what the caller sees of it.

A :class:`Charge` goes in, a :class:`Receipt` comes out, a :class:`Decision` is shown. Times inside are
whole microseconds, because memory and Redis must agree to the last one; times shown are seconds.
"""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from .policies import Policy
from .quantities import MOST, SECOND

#: What may become of a charge while storage fails.
ON_ERROR = ("allow", "local", "deny")


class Cell(NamedTuple):
    """One counter: where it lives, and the policy that rules it."""

    key: str
    policy: Policy


class Charge(NamedTuple):
    """What one limit asks: may ``cost`` be added to every one of ``cells``?

    :param cells: one a policy of the limit; it admits where all of them do.
    :param cost: a whole number, at least 1.
    :param binding: whether its refusal refuses the whole point (a shadow limit's does not).
    :param stays: whether it stays charged though another charge refuses (a failure limit's does: the
        refusal is a failure).
    :param on_error: what becomes of it while storage fails: one of :data:`ON_ERROR`.
    :param per_process: whether it is counted in this process, ahead of the shared store.
    """

    cells: tuple[Cell, ...]
    cost: int = 1
    binding: bool = True
    stays: bool = False
    on_error: str = "allow"
    per_process: bool = False


class Record(NamedTuple):
    """What one counter answered.

    :param allowed: whether the cost fitted.
    :param remaining: whole hits of cost 1 that fit now, after whatever was charged.
    :param wait: microseconds until the cost would fit, 0 when it did, None where no wait helps.
    :param reset: microseconds to the end of the window, or until a bucket is full.
    :param delay: microseconds the caller is asked to hold the request back.
    :param token: what gives this very charge back: storage's own, opaque to everybody else.
    """

    allowed: bool
    remaining: int
    wait: int | None
    reset: int
    delay: int = 0
    token: str = ""


_allowed = attrgetter("allowed")
_delay = attrgetter("delay")


class Receipt:
    """Storage's answer to one charge; it can be given back once.

    :param charge: what was asked.
    :param records: one a cell, in the order of ``charge.cells``; empty where ``error`` is set.
    :param charged: whether the cost was added.
    :param error: why this charge alone could not be decided (a key of a wrong type), or None.
    :param pause: seconds after which to try again, where the charge is denied because nobody can count.
    :ivar local: whether this process counted it in place of a failing store.
    """

    __slots__ = ("_redeemable", "allowed", "charge", "charged", "error", "local", "pause", "records")

    def __init__(
        self,
        charge: Charge,
        records: tuple[Record, ...],
        charged: bool,
        error: str | None = None,
        pause: float | None = None,
    ) -> None:
        self.charge = charge
        self.records = records
        self.charged = charged
        self.error = error
        self.pause = pause
        self.local = False
        #: Whether every cell had room, and somebody could tell.
        self.allowed = pause is None and all(map(_allowed, records))
        self._redeemable = [None] if charged else []

    def slots(self) -> Receipt | None:
        """What this charge holds only for as long as it is used, as a receipt of its own; None if nothing."""
        if not self.charged or True not in [cell.policy.held for cell in self.charge.cells]:
            return None
        pairs = zip(self.charge.cells, self.records, strict=True)
        held = [(cell, record) for cell, record in pairs if cell.policy.held]
        cells, records = zip(*held, strict=True)
        return self._part(cells, records)

    def without_slots(self) -> Receipt | None:
        """What this charge has counted besides its slots, None if nothing; redeemed with it, as one."""
        pairs = zip(self.charge.cells, self.records, strict=True)
        counted = [(cell, record) for cell, record in pairs if not cell.policy.held]
        if len(counted) == len(self.records):
            return self
        if not counted:
            return None
        cells, records = zip(*counted, strict=True)
        part = self._part(cells, records)
        part._redeemable = self._redeemable
        return part

    def _part(self, cells: tuple[Cell, ...], records: tuple[Record, ...]) -> Receipt:
        part = Receipt(self.charge._replace(cells=cells), records, self.charged)
        part.local = self.local
        return part

    @property
    def redeemed(self) -> bool:
        """Whether this charge has been given back, or is about to be."""
        return self.charged and not self._redeemable

    def redeem(self) -> bool:
        """Claim the right to give this charge back: True once, for one caller, if it was charged."""
        try:
            # popping is the one step that two threads cannot both do
            self._redeemable.pop()
        except IndexError:
            return False
        return True

    def tightest(self) -> int:
        """Index of the cell that speaks for the limit.

        Where cells refused, the one with the longest wait (None, which never ends, is the longest);
        else the one with the least room, and of equals the one that takes longest to reset.
        """
        records = self.records
        refused = [i for i, record in enumerate(records) if not record.allowed]
        if refused:
            return max(refused, key=lambda i: longest_wait(records[i].wait))
        return min(range(len(records)), key=lambda i: (records[i].remaining, -records[i].reset))


def longest_wait(wait: float | None) -> float:
    """Order waits by length, None (no wait helps) being the longest of all."""
    return float("inf") if wait is None else wait


class Decision(NamedTuple):
    """What a limit decided, as the app, the headers, the page, logs and signals show it.

    All of it comes from the one atomic step that decided; a limit of several policies shows its
    tightest.

    :param limit: the limit's name.
    :param allowed: whether the request may pass (for a shadow limit: whether it would have).
    :param quota: how much the policy holds.
    :param window: the policy's window in seconds, or None.
    :param remaining: whole hits of cost 1 that fit now.
    :param retry_after: seconds to wait; 0.0 when admitted, None where no wait helps.
    :param reset_after: seconds to the end of the window, or until a bucket is full.
    :param delay: seconds the request is asked to be held back; 0.0 but for ``LeakyBucket``.
    :param subject: whose bucket, as ``"participant:1a2b3c4d"``: the kind and eight characters of a
        digest, never the identity itself.
    :param shadow: whether the limit only watches.
    :param receipt: what :meth:`Limit.refund` needs; None where nobody counted.
    """

    limit: str
    allowed: bool
    quota: int
    window: float | None
    remaining: int
    retry_after: float | None
    reset_after: float
    delay: float
    subject: str
    shadow: bool = False
    receipt: Receipt | None = None

    def __repr__(self) -> str:
        """Show what is public; a receipt is storage's own."""
        shown = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"Decision({', '.join(each for each in shown if not each.startswith('receipt='))})"


def pause_of(decision: Decision) -> float | None:
    """Seconds to wait where a limit lets nobody pass because nobody can count; else None."""
    return None if decision.receipt is None else decision.receipt.pause


def counted(name: str, subject: str, receipt: Receipt, *, shadow: bool = False) -> Decision:
    """Make the decision that a receipt of storage amounts to."""
    records = receipt.records
    tightest = receipt.tightest() if len(records) > 1 else 0
    record = records[tightest]
    policy = receipt.charge.cells[tightest].policy
    wait = record.wait
    # each policy is waited for, also where another one speaks for the limit
    delay = max(map(_delay, records)) if receipt.allowed else 0
    return Decision(
        name,
        receipt.allowed,
        policy.quota,
        policy.window,
        record.remaining,
        None if wait is None else wait / SECOND,
        record.reset / SECOND,
        delay / SECOND,
        subject,
        shadow,
        receipt,
    )


def uncounted(name: str, subject: str, policy: Policy | None, *, shadow: bool = False) -> Decision:
    """Make the decision that stands where nobody counted: no storage, limiting off, failed open.

    :param policy: None where nothing is limited; the quota is then the largest number a header field holds.
    """
    quota = MOST if policy is None else policy.quota
    window = None if policy is None else policy.window
    return Decision(name, True, quota, window, quota, 0.0, 0.0, 0.0, subject, shadow)


def denied(name: str, subject: str, receipt: Receipt, *, shadow: bool = False) -> Decision:
    """Make the decision of a limit that lets nobody pass because nobody can count."""
    policy = receipt.charge.cells[0].policy if receipt.charge.cells else None
    quota = 0 if policy is None else policy.quota
    window = None if policy is None else policy.window
    pause = receipt.pause or 0.0
    return Decision(name, False, quota, window, 0, pause, pause, 0.0, subject, shadow, receipt)

"""How limits are charged: from who is asking and what it costs to what storage decided."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flask import Flask

from .asking import STAND_INS, Asker
from .buckets import Bucket, Cells, cells
from .callbacks import logger
from .checks import switch
from .decisions import Cell, Charge, Decision, Receipt, counted, denied, pause_of, uncounted
from .headers import Shown
from .policies import as_policies
from .refusal_log import RefusalLog
from .refusals import LimiterUnavailable, RateLimited
from .settings import ENABLED, Settings
from .signals import limit_refused, tell
from .slots import give_back
from .storage import Counting
from .storage.together import only_failures
from .subjects import Subject


class Hit(NamedTuple):
    """One limit to be charged, for whom, and how much."""

    bucket: Bucket
    subject: Subject
    cost: int


@dataclass(eq=False, slots=True)
class Entry(Shown):
    """One decision of a request, and the limit that made it."""

    bucket: Bucket = field(kw_only=True)

    @property
    def denied(self) -> bool:
        """Whether nobody could count, and the limit lets nobody pass then."""
        return pause_of(self.decision) is not None

    @property
    def slots(self) -> Receipt | None:
        """What is held only while it is used."""
        receipt = self.decision.receipt
        return None if receipt is None else receipt.slots()

    @property
    def counted(self) -> Receipt | None:
        """What may be given back when the request ends; slots are given back with its body."""
        receipt = self.decision.receipt
        return None if receipt is None else receipt.without_slots()

    @property
    def refundable(self) -> bool:
        """Whether there is a charge that the end of the request may give back."""
        receipt = self.decision.receipt
        return self.bucket.limit.terms.refund_if is not None and receipt is not None and receipt.charged


#: Seconds to wait where there is nothing to count by, and the limit lets nobody pass then.
_PAUSE = 1.0
#: Stands for policies that could not be told.
_UNTOLD: Any = object()


class Till:
    """Where one app's limits are charged.

    :param storage: what limits ask.
    :param clock: reads seconds, as storage does.
    :ivar dropped: slots of bodies that nobody closed, for the next request to give back.
    :ivar on_decided: told what has been decided, in requests and by hand, where somebody wants to know.
    """

    def __init__(self, app: Flask, settings: Settings, storage: Counting, clock: Callable[[], float]) -> None:
        self.storage = storage
        self.clock = clock
        self.dropped: deque[Receipt] = deque()
        self.on_decided: Callable[[Sequence[Decision]], None] | None = None
        self._app = app
        self._settings = settings
        self._log = RefusalLog(clock)

    @property
    def counting(self) -> bool:
        """Whether limits count now: there is storage, and ``VENUELIMIT_ENABLED`` says so."""
        enabled = self._app.config.get(ENABLED)
        return self.storage.counts and (enabled is None or switch(ENABLED, enabled))

    def charge(self, who: Asker, hits: Sequence[Hit], *, peek: bool = False) -> list[Entry]:
        """Charge limits in one storage call, or only look; limits that do not limit now are left out."""
        kept, charges = [], []
        for hit in hits:
            bucket = hit.bucket
            told = _told(who, bucket, bucket.address_cells if hit.subject.kind in STAND_INS else bucket.cells)
            if told is not None:
                base, shown = self._named(hit.subject)
                kept.append((hit, shown, told))
                charges.append(self._charge(hit, told, base))
        answers = self._answers(charges, peek=peek)
        entries = [
            _entry(hit, shown, told, receipt)
            for (hit, shown, told), receipt in zip(kept, answers, strict=True)
        ]
        if self.on_decided is not None and not peek:
            self.on_decided([entry.decision for entry in entries])
        return entries

    def refusal(
        self, decision: Decision, message: str | None = None, violated: Sequence[str] = ()
    ) -> RateLimited | LimiterUnavailable:
        """Make the exception of a refusing decision, and tell the signal's receivers.

        :param violated: the names of all limits of the point that refused.
        """
        self.tell_refused(decision)
        jitter = self._settings.retry_jitter
        pause = pause_of(decision)
        if pause is not None:
            return LimiterUnavailable(pause, decision, jitter)
        return RateLimited(decision, jitter, message, violated)

    def tell_refused(self, decision: Decision) -> None:
        """Tell the log and the signal's receivers that a limit refused, or would have."""
        self._log.refused(decision)
        tell(limit_refused, self._app, decision=decision)

    def unlimited(self, hit: Hit) -> Decision:
        """The decision of a limit that does not limit now."""
        _, shown = self._named(hit.subject)
        return uncounted(hit.bucket.name, shown, None, shadow=hit.bucket.limit.terms.shadow)

    def forget(self, who: Asker, buckets: Iterable[Bucket], subject: Subject) -> None:
        """Forget what ``subject`` used of limits, whoever stands in for whom.

        Where the policies are told at each request, those of this request.
        """
        base, _ = self._named(subject)
        ids: set[str] = set()
        for bucket in buckets:
            for plan in (bucket.cells, bucket.address_cells):
                ids.update(id_ for id_, _ in _told(who, bucket, plan) or ())
        self.storage.reset([base + id_ for id_ in sorted(ids)])

    def _named(self, subject: Subject) -> tuple[str, str]:
        """What the keys of a subject's counters begin with, and what people see of it."""
        digest = subject.digest(self._settings.salt)
        return f"{self._settings.key_prefix}:{{{digest}}}:", f"{subject.kind}:{digest[:8]}"

    def _charge(self, hit: Hit, told: Cells, base: str) -> Charge:
        """Ask for counters, the keys of which begin with ``base``."""
        terms = hit.bucket.limit.terms
        return Charge(
            tuple([Cell(base + id_, policy) for id_, policy in told]),
            hit.cost,
            not terms.shadow,
            terms.refund_if is not None,
            terms.on_failure(self._settings.on_error),
            terms.per_process,
        )

    def _answers(self, charges: list[Charge], *, peek: bool) -> Sequence[Receipt | None]:
        """What storage answers to the charges, and what becomes of those whose policies could not be told."""
        give_back(self.dropped, self.storage)
        if not charges or not self.counting:
            return [None] * len(charges)
        told = [each for each in charges if each.cells]
        if len(told) == len(charges):
            return self.storage.peek(charges) if peek else self.storage.decide(charges)
        answers = iter(self._beside_untold(charges, told, peek=peek))
        return [next(answers) if each.cells else _untold(each) for each in charges]

    def _beside_untold(
        self, charges: list[Charge], told: list[Charge], *, peek: bool
    ) -> Sequence[Receipt | None]:
        """What storage answers to those that it can be asked about, where others could not be told."""
        if not told:
            return []
        if not peek and any(map(_closes, charges)):
            return only_failures(self.storage.decide, self.storage.peek, told)
        return self.storage.peek(told) if peek else self.storage.decide(told)


def told_cost(who: Asker, name: str, tell: Callable[[], Any]) -> int:
    """What a request costs that tells itself; a cost that cannot be told is logged and taken as 1."""
    answer = who.answer(f"the cost of the limit {name!r}", tell, instead=1)
    if isinstance(answer, float) and math.isfinite(answer):
        answer = math.ceil(answer)
    if isinstance(answer, bool) or not isinstance(answer, int) or answer < 1:
        logger.error(
            "the cost of the limit %r was told as %r, which is no whole number of at least 1; 1 is taken",
            name,
            answer,
        )
        return 1
    return answer


def _told(who: Asker, bucket: Bucket, plan: Cells | Callable[[], Any]) -> Cells | None:
    """The counters to charge; None where the limit does not limit now, empty where it could not be told."""
    if not callable(plan):
        return plan
    what = f"the policy of the limit {bucket.name!r}"
    told = who.answer(what, plan, instead=_UNTOLD)
    if told is None or told is _UNTOLD:
        return None if told is None else ()
    try:
        return cells(bucket.scope, as_policies(told))
    except (TypeError, ValueError) as error:
        logger.error("%s was told as something that is none: %s", what, error)
        return ()


def _closed(each: Charge) -> bool:
    """Whether a charge's policies could not be told, and it lets nobody pass then."""
    return not each.cells and each.on_error == "deny"


def _closes(each: Charge) -> bool:
    """Whether such a charge refuses its whole point."""
    return each.binding and _closed(each)


def _untold(each: Charge) -> Receipt | None:
    """What becomes of a charge whose policies could not be told: there is nothing to count by."""
    return Receipt(each, (), False, pause=_PAUSE) if _closed(each) else None


def _entry(hit: Hit, subject: str, told: Cells, receipt: Receipt | None) -> Entry:
    """What has been decided; without a receipt, nobody counted."""
    bucket = hit.bucket
    name, shadow = bucket.name, bucket.limit.terms.shadow
    if receipt is None:
        decision = uncounted(name, subject, told[0][1] if told else None, shadow=shadow)
    elif receipt.pause is not None:
        decision = denied(name, subject, receipt, shadow=shadow)
    else:
        decision = counted(name, subject, receipt, shadow=shadow)
    return Entry(decision, False, hit.cost, told[0][0] if told else "", bucket=bucket)

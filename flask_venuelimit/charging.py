"""How limits are charged: from who is asking and what it costs to what storage decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .asking import Asker, stands_in
from .buckets import Bucket, Cells, cells
from .callbacks import logger
from .decisions import Cell, Charge, Decision, Receipt, counted, denied, uncounted
from .keys import Subject
from .policies import as_policies
from .slots import give_back
from .terms import Terms

if TYPE_CHECKING:
    from .state import AppState


class Hit(NamedTuple):
    """One limit to be charged, for whom, and how much."""

    bucket: Bucket
    subject: Subject
    cost: int


class Entry(NamedTuple):
    """One decision of a request, and what it was made of."""

    decision: Decision
    terms: Terms
    cost: int
    by_hand: bool = False

    @property
    def denied(self) -> bool:
        """Whether nobody could count, and the limit lets nobody pass then."""
        receipt = self.decision.receipt
        return receipt is not None and receipt.pause is not None

    @property
    def slots(self) -> Receipt | None:
        """What the request holds only while it runs."""
        receipt = self.decision.receipt
        return None if receipt is None or self.by_hand else receipt.slots()

    @property
    def counted(self) -> Receipt | None:
        """What may be given back when the request ends; slots are given back with its body."""
        receipt = self.decision.receipt
        return None if receipt is None else receipt.without_slots()

    @property
    def refundable(self) -> bool:
        """Whether there is a charge that the end of the request may give back."""
        receipt = self.decision.receipt
        return (
            self.terms.refund_if is not None and not self.by_hand and receipt is not None and receipt.charged
        )


#: Seconds to wait where there is nothing to count by, and the limit lets nobody pass then.
_PAUSE = 1.0
#: Stands for policies that could not be told.
_UNTOLD: Any = object()


def charge(who: Asker, hits: Sequence[Hit], *, peek: bool = False, by_hand: bool = False) -> list[Entry]:
    """Charge limits in one storage call, or only look; limits that do not limit now are left out."""
    state = who.state
    kept, charges = [], []
    for hit in hits:
        told = _cells(who, hit)
        if told is not None:
            kept.append(hit)
            charges.append(_as_charge(state, hit, told))
    answers = _answers(state, charges, peek=peek)
    entries = [
        Entry(_decision(state, hit, each, receipt), hit.bucket.limit.terms, hit.cost, by_hand)
        for hit, each, receipt in zip(kept, charges, answers, strict=True)
    ]
    if state.on_decided is not None and not peek:
        state.on_decided([entry.decision for entry in entries])
    return entries


def keys(who: Asker, bucket: Bucket, subject: Subject) -> list[str]:
    """The storage keys that hold what ``subject`` used of a limit, whoever stands in for whom.

    Where the policies are told at each request, those of this request.
    """
    told = [_cells(who, Hit(each, subject, 1)) or () for each in _both(bucket)]
    return [_base(who.state, subject) + id_ for each in told for id_, _ in each]


def cost_of(who: Asker, bucket: Bucket) -> int:
    """What a request costs; a cost that cannot be told is logged and taken as 1."""
    if isinstance(bucket.cost, int):
        return bucket.cost
    answer = who.answer(f"the cost of the limit {bucket.name!r}", bucket.cost, instead=1)
    if isinstance(answer, float) and math.isfinite(answer):
        answer = math.ceil(answer)
    if isinstance(answer, bool) or not isinstance(answer, int) or answer < 1:
        logger.error(
            "the cost of the limit %r was told as %r, which is no whole number of at least 1; 1 is taken",
            bucket.name,
            answer,
        )
        return 1
    return answer


def unlimited(state: AppState, hit: Hit) -> Decision:
    """The decision of a limit that does not limit now."""
    return uncounted(hit.bucket.name, _shown(state, hit.subject), None, shadow=hit.bucket.limit.terms.shadow)


def _both(bucket: Bucket) -> tuple[Bucket, Bucket]:
    return bucket._replace(address_cells=bucket.cells), bucket._replace(cells=bucket.address_cells)


def _cells(who: Asker, hit: Hit) -> Cells | None:
    """The counters to charge; None where the limit does not limit now, empty where it could not be told."""
    bucket = hit.bucket
    plan = bucket.address_cells if stands_in(hit.subject) else bucket.cells
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


def _as_charge(state: AppState, hit: Hit, told: Cells) -> Charge:
    terms = hit.bucket.limit.terms
    base = _base(state, hit.subject)
    return Charge(
        tuple([Cell(base + id_, policy) for id_, policy in told]),
        hit.cost,
        not terms.shadow,
        terms.refund_if is not None,
        _on_error(state, terms),
        terms.per_process,
    )


def _on_error(state: AppState, terms: Terms) -> str:
    return terms.on_error or ("deny" if terms.budget else state.settings.on_error)


def _base(state: AppState, subject: Subject) -> str:
    settings = state.settings
    return f"{settings.key_prefix}:{{{subject.digest(settings.salt)}}}:"


def _answers(state: AppState, charges: list[Charge], *, peek: bool) -> Sequence[Receipt | None]:
    """What storage answers to the charges, and what becomes of those whose policies could not be told."""
    give_back(state.dropped, state.storage)
    told = [each for each in charges if each.cells]
    if not charges or not state.counting:
        return [None] * len(charges)
    if len(told) == len(charges):
        return state.storage.peek(charges) if peek else state.storage.decide(charges)
    answers = iter(_beside_untold(state, charges, told, peek=peek))
    return [next(answers) if each.cells else _untold(each) for each in charges]


def _beside_untold(
    state: AppState, charges: list[Charge], told: list[Charge], *, peek: bool
) -> Sequence[Receipt | None]:
    """What storage answers to those that it can be asked about, where others could not be told."""
    if not told:
        return []
    if not peek and any(map(_closes, charges)):
        return _only_failures(state, told)
    return state.storage.peek(told) if peek else state.storage.decide(told)


def _only_failures(state: AppState, charges: Sequence[Charge]) -> list[Receipt | None]:
    """Charge failure limits, and look at others: the point is refused for want of a policy."""
    store = state.storage
    return [(store.decide if each.stays else store.peek)([each])[0] for each in charges]


def _closed(each: Charge) -> bool:
    """Whether a charge's policies could not be told, and it lets nobody pass then."""
    return not each.cells and each.on_error == "deny"


def _closes(each: Charge) -> bool:
    """Whether such a charge refuses its whole point."""
    return each.binding and _closed(each)


def _untold(each: Charge) -> Receipt | None:
    """What becomes of a charge whose policies could not be told: there is nothing to count by."""
    return Receipt(each, (), False, pause=_PAUSE) if _closed(each) else None


def _decision(state: AppState, hit: Hit, each: Charge, receipt: Receipt | None) -> Decision:
    name, shadow, shown = hit.bucket.name, hit.bucket.limit.terms.shadow, _shown(state, hit.subject)
    if receipt is None:
        policy = each.cells[0].policy if each.cells else None
        return uncounted(name, shown, policy, shadow=shadow)
    if receipt.pause is not None:
        return denied(name, shown, receipt, shadow=shadow)
    return counted(name, shown, receipt, shadow=shadow)


def _shown(state: AppState, subject: Subject) -> str:
    return f"{subject.kind}:{subject.digest(state.settings.salt)[:8]}"

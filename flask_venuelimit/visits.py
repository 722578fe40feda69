"""One request on its way through the limits: who it is, what was decided, what is given back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from flask import Request
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Response

from .asking import Asker, stands_in
from .callbacks import call_or_log, logger
from .coverage import Bucket, Coverage, covers_method
from .decisions import Cell, Charge, Decision, Receipt, counted, longest_wait, uncounted
from .headers import Shown, limit_state
from .keys import Stage, Subject
from .limits import Application, Cost, Limit, Stack, Terms
from .page.views import protect
from .refusals import Refusal, finish, is_redirect

if TYPE_CHECKING:
    from .state import AppState


def succeeded(response: Response) -> bool:
    """Whether a failure limiter gives its charge back: the status is under 400."""
    return response.status_code < 400


class Entry(NamedTuple):
    """One decision of a request, and what it was made of."""

    decision: Decision
    terms: Terms
    cost: int
    by_hand: bool = False

    @property
    def refundable(self) -> bool:
        """Whether there is a charge that the end of the request may give back."""
        receipt = self.decision.receipt
        return (
            self.terms.refund_if is not None and not self.by_hand and receipt is not None and receipt.charged
        )


class Visit:
    """What the limits know of one request; outside a request, of one call.

    :param request: None outside a request.
    """

    def __init__(self, state: AppState, request: Request | None, coverage: Coverage) -> None:
        self.state = state
        self.method = None if request is None else request.method
        self.who = Asker(state, request)
        self.coverage = coverage
        self.entries: list[Entry] = []
        self.refusal: Refusal | None = None
        #: What mark_failure and mark_success said last.
        self.marked: bool | None = None
        #: Whether the limit page is what is sent.
        self.shows_page = False
        self._returned: list[Entry] | None = None
        self._decided: set[Limit] = set()

    # -- deciding -------------------------------------------------------------------------------

    def decide(self, buckets: Sequence[Bucket]) -> None:
        """Decide the limits of one point in one storage call.

        :raises RateLimited: one of them refuses.
        """
        whose = self.who.subject
        asked = []
        for each in buckets:
            if each.limit not in self._decided:
                self._decided.add(each.limit)
                if self._applies(each):
                    asked.append((each, whose(each.limit.terms.key), self._cost(each.cost)))
        if not asked:
            return
        entries = self._charge(asked)
        self.entries += entries
        refused = [entry for entry in entries if not entry.decision.allowed]
        if refused:
            raise self._refuse(refused)

    def _refuse(self, refused: list[Entry]) -> Refusal:
        """The refusal of several limits is that of the one with the longest wait."""
        worst = max(refused, key=lambda entry: longest_wait(entry.decision.retry_after))
        names = [entry.decision.limit for entry in refused]
        self.refusal = self.state.refusal(worst.decision, worst.terms.message, names)
        return self.refusal

    def decide_stack(self, stack: Stack) -> None:
        """Decide directly stacked decorators where they stand, save what was decided earlier.

        :raises RateLimited: one of them refuses.
        """
        if not self.coverage.exempt:
            found = [self._at_decorator(each) for each in stack.applications if self._stands(each.limit)]
            self.decide(found)

    def _stands(self, limit: Limit) -> bool:
        undecided = limit not in self._decided and limit not in self.coverage.silent
        return undecided and (self.method is None or covers_method(limit, self.method))

    def _at_decorator(self, application: Application) -> Bucket:
        limit = application.limit
        made = self.coverage.find(limit)
        if made is None:
            made = self.coverage.meet(application)
            if self.method is not None and limit.terms.key.stage_for(self.state.declared) is Stage.FRONT:
                self.state.warn_once(
                    ("hidden", limit),
                    f"the limit {made.name!r} could be decided before the view {self.coverage.endpoint!r} "
                    "and its hooks, but a decorator without functools.wraps hides it, so it is decided where "
                    "it stands. Use functools.wraps in that decorator.",
                )
        return made

    def by_hand(self, made: Bucket, cost: int, subject: Subject, *, peek: bool) -> Decision:
        """Charge or look for one limit, whatever has been decided of it before."""
        (entry,) = self._charge([(made, subject, cost)], peek=peek, by_hand=True)
        if not peek:
            self.entries.append(entry)
        return entry.decision

    def keys(self, made: Bucket, subject: Subject) -> list[str]:
        """The storage keys that hold what ``subject`` used of a limit, whoever stands in for whom."""
        every = {*made.cells, *made.address_cells}
        charge = self._as_charge(made._replace(cells=tuple(every), address_cells=tuple(every)), subject, 1)
        return sorted({cell.key for cell in charge.cells})

    def _charge(
        self, asked: list[tuple[Bucket, Subject, int]], *, peek: bool = False, by_hand: bool = False
    ) -> list[Entry]:
        storage = self.state.storage
        charges = [self._as_charge(made, subject, cost) for made, subject, cost in asked]
        answered: Sequence[Receipt | None] = [None] * len(asked)
        if self.state.counting:
            answered = storage.peek(charges) if peek else storage.decide(charges)
        entries = []
        for (made, subject, cost), charge, receipt in zip(asked, charges, answered, strict=True):
            shown = f"{subject.kind}:{subject.digest(self.state.settings.salt)[:8]}"
            if receipt is None:
                decision = uncounted(made.name, shown, charge.cells[0].policy)
            else:
                decision = counted(made.name, shown, receipt)
            entries.append(Entry(decision, made.limit.terms, cost, by_hand))
        return entries

    def _as_charge(self, made: Bucket, subject: Subject, cost: int) -> Charge:
        settings = self.state.settings
        base = f"{settings.key_prefix}:{{{subject.digest(settings.salt)}}}:"
        cells = made.address_cells if stands_in(subject) else made.cells
        stays = made.limit.terms.refund_if is not None
        return Charge(tuple([Cell(base + id_, policy) for id_, policy in cells]), cost, True, stays)

    def _applies(self, made: Bucket) -> bool:
        unless = made.limit.terms.unless
        if unless is None:
            return True
        return not call_or_log(self.state.app, f"`unless` of the limit {made.name!r}", unless, instead=False)

    def _cost(self, cost: Cost) -> int:
        if isinstance(cost, int):
            return cost
        answer = call_or_log(self.state.app, "a cost", cost, instead=1)
        if isinstance(answer, float) and math.isfinite(answer):
            answer = math.ceil(answer)
        if isinstance(answer, bool) or not isinstance(answer, int) or answer < 1:
            logger.error("a cost answered %r, which is no whole number of at least 1; 1 is taken", answer)
            return 1
        return answer

    # -- the end --------------------------------------------------------------------------------

    def refused(self, refusal: Refusal, response: Response | None = None) -> None:
        """Note that a refusal answers this request, and with what where we rendered it."""
        self.refusal = refusal
        shown = response is not None and not is_redirect(response)
        self.shows_page = shown and response is not None and response.mimetype == "text/html"

    def leave(self, response: Response) -> None:
        """Judge the final response, and give it its header fields, whatever other hooks did."""
        if self.shows_page:
            protect(response)
        if self.refusal is not None:
            finish(response, self.refusal)
        if self.entries:
            self._returned = self._judge(response)
            # on a redirect to the limit page they would mean something else
            if self.refusal is None or not is_redirect(response):
                _put(response.headers, self._limit_state())

    def _limit_state(self) -> list[tuple[str, str]]:
        returned = [entry.decision for entry in self._returned or ()]
        shown = [
            Shown(entry.decision, _holds(returned, entry.decision), entry.cost) for entry in self.entries
        ]
        kinds, refusal = self.state.settings.headers, self.refusal
        if refusal is None:
            return limit_state(shown, kinds)
        return limit_state(shown, kinds, refusal.decision, refusal.retry_after)

    def settle(self, error: BaseException | None) -> None:
        """Give back, in one call, what the end of the request says shall be given back.

        :param error: the exception that leaves the app, or None.
        """
        if not self.entries:
            return
        if error is not None or self._returned is None:
            # no response of the app's own went out: that is a failure, whatever the view said of it
            self.marked = False
            self._returned = self._judge(Response(status=500))
        receipts = [entry.decision.receipt for entry in self._returned]
        self.state.storage.refund([receipt for receipt in receipts if receipt is not None])

    def _judge(self, response: Response) -> list[Entry]:
        """The decisions whose charge the request's end gives back."""
        due = [entry for entry in self.entries if entry.refundable]
        if not due:
            return due
        if self.refusal is not None:
            # it is the 429 it was, even where it is sent as a redirect or restyled
            response = Response(status=self.refusal.code, headers=response.headers)
        return [entry for entry in due if self._refunds(entry.terms, response)]

    def _refunds(self, terms: Terms, response: Response) -> bool:
        refund_if = terms.refund_if
        if refund_if is succeeded and self.marked is not None:
            return self.marked
        what = f"`refund_if` of the limit {terms.name!r}"
        return refund_if is not None and bool(
            call_or_log(self.state.app, what, refund_if, response, instead=False)
        )


def _holds(decisions: Sequence[Decision], decision: Decision) -> bool:
    """Whether this very decision is among them, not only an equal one."""
    return any(each is decision for each in decisions)


def _put(headers: Headers, fields: Sequence[tuple[str, str]]) -> None:
    """Set header fields; setting looks through all of them each time, adding does not."""
    if any("ratelimit" in name.lower() for name, _ in headers):
        headers.update(fields)
    else:
        for name, value in fields:
            headers.add(name, value)

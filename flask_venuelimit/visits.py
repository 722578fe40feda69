"""One request on its way through the limits: who it is, what was decided, what is given back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flask import Request
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Response

from .asking import Asker
from .buckets import Bucket
from .callbacks import call_or_log, is_true
from .charging import Entry, Hit, charge, cost_of, unlimited
from .coverage import Coverage, covers_method
from .decisions import Decision, Receipt, longest_wait
from .headers import Shown, limit_state
from .keys import Stage, Subject
from .limits import Application, Limit, Stack
from .page.views import protect
from .refusals import Refusal, finish, is_redirect
from .slots import Held
from .terms import Terms

if TYPE_CHECKING:
    from .state import AppState


def succeeded(response: Response) -> bool:
    """Whether a failure limit gives its charge back: the status is under 400."""
    return response.status_code < 400


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
        #: What a guard raised; the app may have caught it.
        self.raised: Refusal | None = None
        #: What mark_failure and mark_success said last.
        self.marked: bool | None = None
        #: Whether the limit page is what is sent.
        self.shows_page = False
        self._returned: list[Entry] | None = None
        #: Slots to give back at teardown; None until the response tells whether its body keeps them.
        self._slots: list[Receipt] | None = None
        self._decided: set[Limit] = set()
        #: No slot was taken earlier than this.
        self._began = state.clock()

    # -- deciding -------------------------------------------------------------------------------

    def decide(self, buckets: Sequence[Bucket]) -> None:
        """Decide the limits of one point in one storage call.

        :raises RateLimited: one of them refuses.
        :raises LimiterUnavailable: nobody can count, and one of them lets nobody pass then.
        """
        hits = [self._hit(each) for each in buckets if self._applies(each)]
        if hits:
            entries = charge(self.who, hits)
            self.entries += entries
            self._refuse([entry for entry in entries if not entry.decision.allowed])
            self._wait(
                [each.decision.delay for each in entries if each.decision.delay and not each.decision.shadow]
            )

    def _wait(self, delays: list[float]) -> None:
        """Hold the request back until its turn in the slowest of its queues."""
        if delays:
            time.sleep(max(delays))

    def _hit(self, bucket: Bucket) -> Hit:
        return Hit(bucket, self.who.subject(bucket.limit.terms.key), cost_of(self.who, bucket))

    def _applies(self, bucket: Bucket) -> bool:
        """Whether a limit is to be decided now: once a request, and not where ``unless`` skips it."""
        if bucket.limit in self._decided:
            return False
        self._decided.add(bucket.limit)
        unless = bucket.limit.terms.unless
        if unless is None:
            return True
        return not self.who.holds(f"`unless` of the limit {bucket.name!r}", unless)

    def _refuse(self, refused: list[Entry]) -> None:
        """Refuse for the limit with the longest wait; shadow limits only tell."""
        binding = [entry for entry in refused if not entry.decision.shadow]
        for entry in refused:
            if entry.decision.shadow:
                self.state.tell_refused(entry.decision)
        # what a limit has counted says more than what nobody could count
        binding = [entry for entry in binding if not entry.denied] or binding
        if binding:
            worst = max(binding, key=lambda entry: longest_wait(entry.decision.retry_after))
            names = [entry.decision.limit for entry in binding]
            self.refusal = self.state.refusal(worst.decision, worst.terms.message, names)
            raise self.refusal

    def decide_stack(self, stack: Stack) -> None:
        """Decide directly stacked decorators where they stand, save what was decided earlier.

        :raises Refusal: see :meth:`decide`.
        """
        if not self.coverage.exempt:
            found = [self._at_decorator(each) for each in stack.applications if self._stands(each.limit)]
            self.decide(found)

    def _stands(self, limit: Limit) -> bool:
        undecided = limit not in self._decided and limit not in self.coverage.exempt_from
        return undecided and (self.method is None or covers_method(limit, self.method))

    def _at_decorator(self, application: Application) -> Bucket:
        limit = application.limit
        bucket = self.coverage.find(limit)
        if bucket is None:
            bucket = self.coverage.meet(application)
            if self.method is not None and limit.terms.key.stage_for(self.state.declared) is Stage.FRONT:
                self.state.lookout.once(
                    ("hidden", limit),
                    f"the limit {bucket.name!r} could be decided before the view {self.coverage.endpoint!r} "
                    "and its hooks, but a decorator without functools.wraps hides it, so it is decided where "
                    "it stands. Use functools.wraps in that decorator.",
                )
        return bucket

    def by_hand(self, bucket: Bucket, cost: int, subject: Subject, *, peek: bool) -> Decision:
        """Charge or look for one limit, whatever has been decided of it before."""
        hit = Hit(bucket, subject, cost)
        entries = charge(self.who, [hit], peek=peek, by_hand=True)
        if not peek:
            self.entries += entries
        return entries[0].decision if entries else unlimited(self.state, hit)

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
        self.refusal = self.refusal or self._refused_in_a_hook(response)
        if self.refusal is not None:
            finish(response, self.refusal)
        if self.entries:
            self._returned = self._judge(response)
            self._hold_slots(response)
            # on a redirect to the limit page they would mean something else
            if self.refusal is None or not is_redirect(response):
                _put(response.headers, self._limit_state())

    def _refused_in_a_hook(self, response: Response) -> Refusal | None:
        """A guard in a hook may have refused, which nobody but the answer tells."""
        raised = self.raised
        return raised if raised is not None and response.status_code == raised.code else None

    def _hold_slots(self, response: Response) -> None:
        """Give slots back at teardown, or with the body where that is streamed after it."""
        self._slots = self._held()
        if self._slots and not _plain(response) and not self._has_no_body(response):
            body, length = response.response, response.content_length
            state = self.state
            response.response = Held(
                body, state.storage, self._slots, state.clock, self._began, length, state.dropped
            )
            self._slots = []

    def _has_no_body(self, response: Response) -> bool:
        """Whether nothing of the body is sent (RFC 9110, section 6.4.1), so that nobody would exhaust it."""
        return self.method == "HEAD" or response.status_code in (204, 304)

    def _held(self) -> list[Receipt]:
        """What the request holds only while it runs."""
        return [slot for entry in self.entries if (slot := entry.slots) is not None]

    def _limit_state(self) -> list[tuple[str, str]]:
        returned = [entry.decision for entry in self._returned or ()]
        shown = [
            Shown(entry.decision, bool(returned) and _holds(returned, entry.decision), entry.cost)
            for entry in self.entries
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
        slots = self._held() if self._slots is None else self._slots
        back = [each for entry in self._returned if (each := entry.counted) is not None] + slots
        if back:
            self.state.storage.refund(back)

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
        if refund_if is None:
            return False
        app = self.state.app
        return is_true(app, what, call_or_log(app, what, refund_if, response, instead=False))


def _plain(response: Response) -> bool:
    """Whether the body is a plain sequence, made one where it is an error's.

    Flask makes a response of an HTTPException by running it, so that the body comes as an iterator, which
    would hold the slots until somebody reads it.
    """
    known = "Content-Length" in response.headers and not response.direct_passthrough
    if known and response.status_code >= 400:
        response.make_sequence()
    return response.is_sequence


def _holds(decisions: Sequence[Decision], decision: Decision) -> bool:
    """Whether this very decision is among them, not only an equal one."""
    return any(each is decision for each in decisions)


def _put(headers: Headers, fields: Sequence[tuple[str, str]]) -> None:
    """Set header fields; setting looks through all of them each time, adding does not."""
    for name, _ in headers.to_wsgi_list():
        if "ratelimit" in name.lower():
            headers.update(fields)
            return
    for name, value in fields:
        headers.add(name, value)

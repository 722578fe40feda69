"""One request on its way through the limits: who it is, what was decided, what is given back."""

from __future__ import annotations

import time
from collections.abc import Sequence

from werkzeug.datastructures import Headers
from werkzeug.wrappers import Response

from .asking import Asker
from .buckets import Bucket
from .charging import Entry, Hit, Till, told_cost
from .coverage import Coverage, covers_method
from .decisions import Decision, Receipt, longest_wait
from .headers import limit_state
from .limits import Application, Limit, Stack
from .lookout import Lookout
from .page.views import protect
from .refusals import Refusal, finish, is_redirect
from .slots import Held
from .subjects import Subject
from .terms import Terms


def succeeded(response: Response) -> bool:
    """Whether a failure limit gives its charge back: the status is under 400."""
    return response.status_code < 400


class Visit:
    """What the limits know of one request; outside a request, of one call.

    :param method: the request's; None outside a request.
    """

    def __init__(
        self, till: Till, who: Asker, lookout: Lookout, coverage: Coverage, method: str | None
    ) -> None:
        self.who = who
        self.coverage = coverage
        #: In which context the request began, and ends; None once it has.
        self.context: int | None = None
        self.entries: list[Entry] = []
        self.refusal: Refusal | None = None
        #: What a guard raised; the app may have caught it.
        self.raised: Refusal | None = None
        #: What mark_failure and mark_success said last.
        self.marked: bool | None = None
        #: Whether the limit page is what is sent.
        self.shows_page = False
        self._till = till
        self._lookout = lookout
        self._method = method
        #: Limits that are decided, each by its ``itself``.
        self._decided: set[object] = set()
        #: Of which the end of the request may give something back.
        self._due: list[Entry] = []
        #: Whether the response has told which of it.
        self._judged = False
        #: Slots to give back at teardown; None until the response tells whether its body keeps them.
        self._slots: list[Receipt] | None = None
        #: No slot was taken earlier than this.
        self._began = till.clock()

    # -- deciding -------------------------------------------------------------------------------

    def decide(self, buckets: Sequence[Bucket]) -> None:
        """Decide the limits of one point in one storage call.

        :raises RateLimited: one of them refuses.
        :raises LimiterUnavailable: nobody can count, and one of them lets nobody pass then.
        """
        hits = [self._hit(each) for each in buckets if self._applies(each)]
        if hits:
            entries = self._till.charge(self.who, hits)
            self.entries += entries
            self._follow(entries)

    def _follow(self, entries: Sequence[Entry]) -> None:
        """Do as has been decided: refuse, or hold back until the turn in the slowest of the queues."""
        refused, delays = [], []
        for entry in entries:
            if entry.bucket.lasts:
                self._due.append(entry)
            if not entry.decision.allowed:
                refused.append(entry)
            elif entry.decision.delay and not entry.decision.shadow:
                delays.append(entry.decision.delay)
        if refused:
            self._refuse(refused)
        if delays:
            time.sleep(max(delays))

    def _hit(self, bucket: Bucket) -> Hit:
        cost = bucket.cost
        if callable(cost):
            cost = told_cost(self.who, bucket.name, cost)
        return Hit(bucket, self.who.subject(bucket.limit.terms.key), cost)

    def _applies(self, bucket: Bucket) -> bool:
        """Whether a limit is to be decided now: once a request, and not where ``unless`` skips it."""
        limit = bucket.limit.itself
        if limit in self._decided:
            return False
        self._decided.add(limit)
        unless = bucket.limit.terms.unless
        if unless is None:
            return True
        return not self.who.holds(f"`unless` of the limit {bucket.name!r}", unless)

    def _refuse(self, refused: list[Entry]) -> None:
        """Refuse for the limit with the longest wait; shadow limits only tell."""
        binding = [entry for entry in refused if not entry.decision.shadow]
        for entry in refused:
            if entry.decision.shadow:
                self._till.tell_refused(entry.decision)
        # what a limit has counted says more than what nobody could count
        binding = [entry for entry in binding if not entry.denied] or binding
        if binding:
            worst = max(binding, key=lambda entry: longest_wait(entry.decision.retry_after))
            names = [entry.decision.limit for entry in binding]
            self.refusal = self._till.refusal(worst.decision, worst.bucket.limit.terms.message, names)
            raise self.refusal

    def decide_stack(self, stack: Stack) -> None:
        """Decide directly stacked decorators where they stand, save what was decided earlier.

        :raises Refusal: see :meth:`decide`.
        """
        if not self.coverage.exempt:
            found = [self._at_decorator(each) for each in stack.applications if self._stands(each.limit)]
            if found:
                self.decide(found)

    def _stands(self, limit: Limit) -> bool:
        undecided = limit.itself not in self._decided and limit not in self.coverage.exempt_from
        return undecided and (self._method is None or covers_method(limit, self._method))

    def _at_decorator(self, application: Application) -> Bucket:
        limit = application.limit
        bucket = self.coverage.find(limit)
        if bucket is None:
            bucket = self.coverage.meet(application)
            if self._method is not None:
                self._lookout.hidden(limit, bucket.name, self.coverage.endpoint)
        return bucket

    def by_hand(self, bucket: Bucket, cost: int, subject: Subject, *, peek: bool) -> Decision:
        """Charge or look for one limit, whatever has been decided of it before."""
        hit = Hit(bucket, subject, cost)
        entries = self._till.charge(self.who, [hit], peek=peek)
        if not peek:
            self.entries += entries
        return entries[0].decision if entries else self._till.unlimited(hit)

    # -- the end --------------------------------------------------------------------------------

    def refused(self, refusal: Refusal, response: Response | None = None) -> None:
        """Note that a refusal answers this request, and with what where we rendered it."""
        self.refusal = refusal
        self.shows_page = (
            response is not None and response.mimetype == "text/html" and not is_redirect(response)
        )

    def leave(self, response: Response, kinds: Sequence[str]) -> None:
        """Judge the final response, and give it its header fields, whatever other hooks did.

        :param kinds: which kinds of limit state it gets.
        """
        if self.shows_page:
            protect(response)
        if self.raised is not None and self.raised.code == response.status_code:
            # a guard in a hook may have refused, which nobody but the answer tells
            self.refusal = self.refusal or self.raised
        if self.refusal is not None:
            finish(response, self.refusal)
        if self.entries:
            self._judged, self._slots = True, []
            if self._due:
                self._judge(response)
                self._hold_slots(response)
            self._show(response, kinds)

    def _show(self, response: Response, kinds: Sequence[str]) -> None:
        refusal = self.refusal
        if refusal is None:
            _put(response.headers, limit_state(self.entries, kinds))
        elif not is_redirect(response):
            # on a redirect to the limit page they would mean something else
            fields = limit_state(self.entries, kinds, refusal.decision, refusal.retry_after)
            _put(response.headers, fields)

    def _hold_slots(self, response: Response) -> None:
        """Give slots back at teardown, or with the body where that is streamed after it."""
        self._slots = self._held()
        if self._slots and not _plain(response) and not self._has_no_body(response):
            body, length = response.response, response.content_length
            till = self._till
            response.response = Held(
                body, till.storage, self._slots, till.clock, self._began, length, till.dropped
            )
            self._slots = []

    def _has_no_body(self, response: Response) -> bool:
        """Whether nothing of the body is sent (RFC 9110, section 6.4.1), so that nobody would exhaust it."""
        return self._method == "HEAD" or response.status_code in (204, 304)

    def _held(self) -> list[Receipt]:
        """What the request holds only while it runs."""
        return [slot for entry in self._due if (slot := entry.slots) is not None]

    def ends_with(self, context: int) -> bool:
        """Whether the request is over with a context: with its own, or with a copy that outlives it.

        A copy is torn down with the thread that has it, while the request may go on.
        """
        if self.context == context:
            self.context = None
        return self.context is None

    def settle(self, error: BaseException | None) -> None:
        """Give back, in one call, what the end of the request says shall be given back.

        :param error: the exception that leaves the app, or None.
        """
        if not self._due:
            return
        if error is not None or not self._judged:
            # no response of the app's own went out: that is a failure, whatever the view said of it
            self.marked = False
            self._judge(Response(status=500))
        slots = self._held() if self._slots is None else self._slots
        counted = [entry.counted for entry in self._due if entry.refund]
        back = [each for each in counted if each is not None] + slots
        # Flask may tear a request down in several steps, and a thread may go on after it
        self._due, self._slots, self._judged = [], None, False
        if back:
            self._till.storage.refund(back)

    def _judge(self, response: Response) -> None:
        """Note which charges the request's end gives back."""
        if self.refusal is not None:
            # it is the 429 it was, even where it is sent as a redirect or restyled
            response = Response(status=self.refusal.code, headers=response.headers)
        for entry in self._due:
            entry.refund = entry.refundable and self._refunds(entry.bucket.limit.terms, response)

    def _refunds(self, terms: Terms, response: Response) -> bool:
        refund_if = terms.refund_if
        if refund_if is succeeded and self.marked is not None:
            return self.marked
        if refund_if is None:
            return False
        return self.who.judges(f"`refund_if` of the limit {terms.name!r}", refund_if, response)


def _plain(response: Response) -> bool:
    """Whether the body is a plain sequence, made one where it is an error's.

    Flask makes a response of an HTTPException by running it, so that the body comes as an iterator, which
    would hold the slots until somebody reads it.
    """
    known = "Content-Length" in response.headers and not response.direct_passthrough
    if known and response.status_code >= 400:
        response.make_sequence()
    return response.is_sequence


def _put(headers: Headers, fields: Sequence[tuple[str, str]]) -> None:
    """Set header fields; setting looks through all of them each time, adding does not."""
    for name, _ in headers:
        if "ratelimit" in name.lower():
            headers.update(fields)
            return
    for name, value in fields:
        headers.add(name, value)

"""What a refused caller gets: a person the limit page, everybody else a 429 that a program can read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, ServiceUnavailable, TooManyRequests
from werkzeug.utils import redirect
from werkzeug.wrappers import Request
from werkzeug.wrappers import Response as BaseResponse

from .accepted import preferences
from .addresses import SHARED_KINDS
from .decisions import Decision
from .headers import whole_seconds
from .page import token, views, way_back
from .page.token import Ticket
from .settings import Settings

_PROBLEMS = "https://iana.org/assignments/http-problem-types#"
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_PROBLEM_JSON = "application/problem+json"
_PERSONS_METHODS = frozenset({"GET", "HEAD", "POST"})
_NEVER_A_PERSON = ("X-Requested-With", "HX-Request", "Sec-Purpose")


class Refusal(HTTPException):
    """What every refusal has in common. Catch :class:`RateLimited` or :class:`LimiterUnavailable`.

    :ivar decision: what the limit decided, or None where that is not known.
    :ivar retry_after: whole seconds, the very number of Retry-After, or None: no wait helps.
    """

    code: int
    decision: Decision | None
    retry_after: Any
    message: str | None
    error: ClassVar[str]
    title: ClassVar[str]
    problem_type: ClassVar[str]

    def problem(self) -> dict[str, Any]:
        """Give the JSON body (RFC 9457); ``retry_after`` is null where no wait helps."""
        body = {
            "type": _PROBLEMS + self.problem_type,
            "title": self.title,
            "status": self.code,
            "error": self.error,
            "detail": self.description,
            "retry_after": self.retry_after,
        }
        if self.decision is not None:
            body["limit"] = self.decision.limit
        return body


class _Refusal429(Refusal):
    """Where our handler for :class:`RateLimited` is registered.

    Flask looks a handler up by code first, then along the class's bases. This one comes after
    TooManyRequests, so an app's handler for 429 wins; and it has a code, so a catch-all does not.
    """

    code = 429


class _Refusal503(Refusal):
    """The same for :class:`LimiterUnavailable`."""

    code = 503


class RateLimited(TooManyRequests, _Refusal429):
    """A limit refused the request: 429.

    :param decision: the refusing decision; of several, the one with the longest wait.
    :param jitter: by how much of itself the wait may grow, ``VENUELIMIT_RETRY_JITTER``.
    :param message: the limit's own sentence, in place of the usual one.
    :param violated: the names of all limits that refused; by default the one.
    """

    description = "Too many requests. Please slow down."
    decision: Decision
    retry_after: int | None
    error = "rate_limited"
    title = "Too Many Requests"
    problem_type = "quota-exceeded"

    def __init__(
        self,
        decision: Decision,
        jitter: float = 0.0,
        message: str | None = None,
        violated: Sequence[str] = (),
    ) -> None:
        # a lazily translated text is translated here, for whoever is refused
        self.message = None if message is None else str(message)
        super().__init__(self.message, retry_after=retry_seconds(decision.retry_after, jitter))
        self.decision = decision
        self.violated = tuple(violated) or (decision.limit,)

    def problem(self) -> dict[str, Any]:
        """Give the JSON body (RFC 9457) with the names of the limits that refused."""
        return {**super().problem(), "violated-policies": list(self.violated)}


class LimiterUnavailable(ServiceUnavailable, _Refusal503):
    """Limits cannot be checked, and the limit lets nobody pass meanwhile: 503.

    :param pause: seconds until storage is asked again.
    :param decision: of the limit that denies, if it is known.
    :param jitter: by how much of itself the pause may grow.
    """

    description = "Requests cannot be checked right now. Please try again in a moment."
    decision: Decision | None
    retry_after: int | None
    error = "limiter_unavailable"
    title = "Service Unavailable"
    problem_type = "temporary-reduced-capacity"

    def __init__(self, pause: float | None, decision: Decision | None = None, jitter: float = 0.0) -> None:
        super().__init__(None, retry_after=retry_seconds(pause, jitter))
        self.decision = decision
        self.message = None


def retry_seconds(wait: float | None, jitter: float) -> int | None:
    """Turn a wait into the seconds of Retry-After: whole, rounded up, at least 1, plus jitter.

    Jitter spreads out callers who were refused together, so that they do not return together. It only
    ever adds: whoever waits that long is admitted.

    :param wait: seconds, or None, which stays None.
    :param jitter: the share of the wait that may be added, 0 to 1.
    """
    if wait is None:
        return None
    base = max(1, whole_seconds(wait))
    return base + random.randint(0, int(base * jitter))


def register_handler(app: Flask, handler: Callable[[Refusal], Any]) -> None:
    """Let ``handler`` answer refusals wherever the app has no handler for the class or its code.

    An app's (or a blueprint's) handler for :class:`RateLimited`, 429, :class:`LimiterUnavailable` or 503
    wins; one for HTTPException or Exception does not. The app's own ``abort(429)`` is not a refusal.
    """
    for marker in (_Refusal429, _Refusal503):
        app.register_error_handler(marker, handler)


def wants_page(request: Request) -> bool:
    """Tell whether this is a person navigating, to whom a page can be shown.

    Browsers say so (Fetch Metadata, W3C); of older ones ``Accept`` tells, by naming HTML and no JSON that
    it likes as much. Scripted requests, htmx's and prefetches are not: nobody would see the page.
    """
    headers = request.headers
    if request.method not in _PERSONS_METHODS or any(name in headers for name in _NEVER_A_PERSON):
        return False
    if headers.get("Purpose", "").strip().lower() == "prefetch":
        return False
    if any(name.lower().startswith("sec-fetch-") for name, _ in headers):
        return headers.get("Sec-Fetch-Mode", "").strip().lower() == "navigate"
    return _prefers_html(request)


def body_kind(request: Request) -> str:
    """Choose the body for whoever is not shown the page: ``"json"``, ``"problem"`` or ``"html"``.

    JSON, unless ``Accept`` names ``application/problem+json``, or names only HTML (wildcards name
    nothing) and htmx, which would swap the page into another, does not ask.
    """
    named = {kind for kind, q in _named(request).items() if q > 0}
    if _PROBLEM_JSON in named:
        return "problem"
    if named and named <= _HTML and "HX-Request" not in request.headers:
        return "html"
    return "json"


def render(refusal: Refusal, request: Request, settings: Settings) -> BaseResponse:
    """Answer a refused request: a redirect to the limit page, the page itself, or JSON.

    Needs an app context. :func:`finish` has to go over what comes out when all hooks have run.
    """
    person = wants_page(request)
    response: BaseResponse
    if person and settings.page_mode == "redirect" and isinstance(refusal, RateLimited):
        response = redirect(_limit_page(refusal, request, settings), 303, Response)
    else:
        response = _body("html" if person else body_kind(request), refusal, request, settings)
    finish(response, refusal)
    return response


def finish(response: BaseResponse, refusal: Refusal) -> None:
    """Give a refusal's response what it always has, whoever rendered it; doing so again does no harm.

    Exactly one Retry-After, none on a redirect (where it would mean something else, RFC 9110 section
    10.2.3) and none where no wait helps; ``Cache-Control: no-store``; what it depends on in ``Vary``.
    """
    headers = response.headers
    headers.pop("Retry-After", None)
    if refusal.retry_after is not None and not is_redirect(response):
        headers["Retry-After"] = str(refusal.retry_after)
    headers["Cache-Control"] = "no-store"
    if "*" not in response.vary:
        response.vary.update(["Accept", "Sec-Fetch-Mode"])


def is_redirect(response: BaseResponse) -> bool:
    """Tell whether a response sends the caller elsewhere, and so carries no limit state."""
    return 300 <= response.status_code < 400


def _limit_page(refusal: RateLimited, request: Request, settings: Settings) -> str:
    back = way_back.of(request)
    decision = refusal.decision
    text = token.issue(
        settings.salt, decision.limit, refusal.retry_after, back, refusal.message, _is_shared(decision)
    )
    return views.redirect_target(request, settings, text)


def _body(kind: str, refusal: Refusal, request: Request, settings: Settings) -> BaseResponse:
    if kind == "html":
        decision = refusal.decision
        name, shared = ("", None) if decision is None else (decision.limit, _is_shared(decision))
        ticket = Ticket(name, None, way_back.of(request), refusal.message, shared)
        return views.inline(request, settings, ticket, refusal.code, refusal.retry_after)
    mimetype = _PROBLEM_JSON if kind == "problem" else "application/json"
    response = Response(json.dumps(refusal.problem()), refusal.code, mimetype=mimetype)
    if "HX-Request" in request.headers:
        # htmx 4 swaps whatever comes into the page, unless the page says otherwise for the status
        response.headers["HX-Reswap"] = "none"
    return response


def _is_shared(decision: Decision) -> bool:
    """Whether the limit counts an address, and so everybody behind it, and not one person."""
    return decision.subject.rpartition(":")[0] in SHARED_KINDS


def _prefers_html(request: Request) -> bool:
    named = _named(request)
    html = max((q for kind, q in named.items() if kind in _HTML), default=0)
    return html > max((q for kind, q in named.items() if _is_json(kind)), default=0)


def _named(request: Request) -> dict[str, float]:
    """The media types ``Accept`` names, without parameters and wildcards, with the best q of each."""
    named: dict[str, float] = {}
    for kind, q in preferences(request.headers.get("Accept", "")):
        if "*" not in kind:
            named[kind] = max(q, named.get(kind, 0))
    return named


def _is_json(kind: str) -> bool:
    return kind == "application/json" or kind.endswith("+json")

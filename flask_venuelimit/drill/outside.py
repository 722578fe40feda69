"""A drill of a running server, from outside: one caller, over HTTP, who really waits."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import SplitResult, urljoin, urlsplit

from .answers import BROWSER, PROGRAM, Answer, check_page, check_program, check_redirect
from .findings import FAILED, MEMORY, NOT_DRIVEN, OK, RECOVERY, REFUSAL, Broken, Finding, Undriven

USER_AGENT = "flask-venuelimit-drill"
#: Seconds that a server has for an answer, and bytes of it that are read.
_PATIENCE, _MOST = 30, 1_000_000
#: With a hint below this, the wait may be over before a browser's request is there.
_UNHURRIED = 3


def rehearse_at(
    url: str,
    *,
    requests: int = 200,
    max_wait: float = 120,
    headers: Mapping[str, str] | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> Iterator[Finding]:
    """Send GET requests to a running server until one is refused, look at that, wait, and come back.

    There is never more than one request under way, and the User-Agent says what it is. The view does run:
    choose a URL that may be asked so often.

    :param url: ``http://`` or ``https://``; no redirect is followed but to the limit page.
    :param requests: how many are sent at most until one has to be refused.
    :param max_wait: seconds; a longer Retry-After is not waited for.
    :param headers: sent along, such as the cookie of somebody whose limit it is about.
    :param wait: waits so many seconds.
    :raises ValueError: the URL, a number or a header cannot be kept.
    """
    if requests < 1 or not max_wait >= 0:
        raise ValueError(
            f"requests is {requests} and max_wait {max_wait}. Use at least 1, and 0 or more seconds."
        )
    visitor = _Visitor(_parsed(url), dict(headers or {}))
    refused: list[tuple[Answer, float]] = []

    def refusal() -> str:
        refused.append(_refused(visitor, requests))
        return _looked_at(visitor, refused[0][0])

    def recovery() -> str:
        if not refused:
            raise Undriven("nobody was refused")
        return _recovered(visitor, *refused[0], max_wait, wait)

    yield _checked(url, REFUSAL, refusal)
    yield _checked(url, RECOVERY, recovery)
    yield Finding(url, MEMORY, NOT_DRIVEN, "what a server holds cannot be seen from outside")


def _checked(url: str, check: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(url, check, OK, look())
    except Broken as broken:
        return Finding(url, check, FAILED, str(broken))
    except Undriven as undriven:
        return Finding(url, check, NOT_DRIVEN, str(undriven))


def _parsed(url: str) -> SplitResult:
    parts = urlsplit(url)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or "@" in parts.netloc
        or not url.isprintable()
    ):
        raise ValueError(f"the URL is {url!r}. Use one such as http://127.0.0.1:5000/scores.")
    # a port that is none raises here, in the place of a traceback later
    parts.port  # noqa: B018
    return parts


class _Visitor:
    """One caller of a server, a connection a request."""

    def __init__(self, parts: SplitResult, headers: Mapping[str, str]) -> None:
        self._parts = parts
        self._headers = headers

    def ask(self, headers: Mapping[str, str] = PROGRAM, where: str = "") -> Answer:
        """Send one request, follow nothing.

        :param where: another path of the same server, with its query.
        :raises Broken: the server cannot be asked.
        """
        parts = self._parts
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        assert parts.hostname, "the URL was looked at"
        connection = kind(parts.hostname, parts.port, timeout=_PATIENCE)
        target = where or f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        try:
            connection.request("GET", target, headers={"User-Agent": USER_AGENT, **self._headers, **headers})
            response = connection.getresponse()
            return Answer(response.status, tuple(response.getheaders()), response.read(_MOST))
        except (OSError, http.client.HTTPException) as error:
            raise Broken(f"the server cannot be asked ({type(error).__name__}: {error})") from None
        finally:
            connection.close()

    def at_home(self, location: str) -> str | None:
        """The path and query that a Location leads to; None where that is another server's."""
        leads = urlsplit(urljoin(self._parts.geturl(), location))
        if (leads.scheme, leads.netloc) != (self._parts.scheme, self._parts.netloc):
            return None
        return f"{leads.path or '/'}{'?' if leads.query else ''}{leads.query}"


def _refused(visitor: _Visitor, requests: int) -> tuple[Answer, float]:
    """The first refusal, and when it came, by the monotonic clock."""
    answer = None
    for _ in range(requests):
        answer = visitor.ask()
        if answer.status == 429 or _disguised(answer):
            return answer, time.monotonic()
        if answer.status >= 500:
            raise Broken(f"the server answers {answer.status}; whom it would refuse cannot be shown")
    left = answer.field("RateLimit") if answer else ""
    told = f"; the last answer says RateLimit: {left}" if left else ""
    raise Broken(f"{requests} requests, and none was refused{told}. Raise --requests, or choose another URL")


def _disguised(answer: Answer) -> bool:
    """Whether a refusal came as a success: nothing is left, until the very Retry-After."""
    hint = answer.field("Retry-After")
    return answer.status < 400 and hint != "" and f";r=0;t={hint}," in f"{answer.field('RateLimit')},"


def _looked_at(visitor: _Visitor, answer: Answer) -> str:
    seen = check_program(answer)
    hint = answer.hint
    if hint is not None and hint < _UNHURRIED:
        return f"{seen}; too short a wait to come as a browser too"
    browser = visitor.ask(BROWSER)
    if browser.status < 300:
        raise Broken(
            f"right after that a browser is answered {browser.status}: its refusal looks like success, or "
            "workers count each for itself, as on memory://"
        )
    if not 300 <= browser.status < 400:
        return f"{seen}; a browser: {check_page(browser, hint is not None)}"
    page = visitor.at_home(check_redirect(browser))
    if page is None:
        return f"{seen}; a browser: {browser.status} to another server"
    ends = check_page(visitor.ask(BROWSER, page), hint is not None)
    return f"{seen}; a browser: {browser.status} to {page.partition('?')[0]}, {ends}"


def _recovered(
    visitor: _Visitor, answer: Answer, at: float, max_wait: float, wait: Callable[[float], None]
) -> str:
    hint = answer.hint
    if hint is None:
        raise Undriven("no wait helps, so there is no hint to honour")
    if hint > max_wait:
        raise Undriven(f"Retry-After is {hint} s, longer than --max-wait {max_wait:g}")
    wait(max(0.0, at + hint - time.monotonic()))
    after = visitor.ask()
    if after.status == 429 or _disguised(after):
        raise Broken(f"refused again after the {hint} s of the hint, unless others share its bucket")
    if after.status >= 500:
        raise Broken(f"after the {hint} s of the hint the server answers {after.status}")
    return f"let in after the {hint} s of the hint ({after.status}); what a crowd does, one cannot show"

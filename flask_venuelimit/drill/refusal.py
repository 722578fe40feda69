"""The first thing a drill shows: the refusal is structured and carries a hint."""

from __future__ import annotations

from ..headers import whole_seconds
from .answers import BROWSER, Answer, check_page, check_program, check_redirect
from .callers import Callers
from .findings import Broken

_WHO = 1


def refuse(callers: Callers) -> str:
    """Use a limit up, and look at what is sent to a program and to a browser.

    :returns: what was seen.
    :raises Broken: it is not what is promised.
    """
    callers.use_up(_WHO)
    lane, settings = callers.lane, callers.settings
    if lane.terms.shadow:
        return _watched(callers.ask(_WHO), lane.status)
    answer = callers.ask(_WHO)
    seen = check_program(answer, lane.terms.name, settings.headers)
    _check_hint(answer.hint, callers.look(_WHO).retry_after, settings.retry_jitter)
    return f"{seen}; a browser: {_browser(callers, answer.hint is not None)}"


def _watched(answer: Answer, status: int) -> str:
    if answer.status != status:
        raise Broken(f"a shadow limit has to let pass, and this is answered {answer.status}")
    return "over the limit, and let pass: it only watches"


def _check_hint(hint: int | None, wait: float | None, jitter: float) -> None:
    """Hold the hint against the arithmetic that refused: at least that, and at most its jitter more."""
    if wait is None:
        if hint is not None:
            raise Broken(f"Retry-After is {hint}, and no wait helps")
        return
    least = max(1, whole_seconds(wait))
    if hint is None or not least <= hint <= least + int(least * jitter):
        said = "there is no Retry-After" if hint is None else f"Retry-After is {hint}"
        raise Broken(f"{said}, and the limit admits again in {least} s")


def _browser(callers: Callers, hint: bool) -> str:
    answer = callers.ask(_WHO, BROWSER)
    if not 300 <= answer.status < 400:
        return check_page(answer, hint)
    where = check_redirect(answer)
    page = callers.settings.page_path
    if not where.startswith(page):
        return f"{answer.status} to {where}, the app's own"
    return f"{answer.status} to {page}, {check_page(callers.ask(_WHO, BROWSER, where), hint)}"

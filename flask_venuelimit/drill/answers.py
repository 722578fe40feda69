"""What a refused caller is sent, by a stand-in or by a server out there, held against what is promised."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..headers import sf_string
from ..refusals import RateLimited
from .findings import Broken

#: What a program and a browser send to tell what they are.
PROGRAM = {"Accept": "application/json"}
BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", "Sec-Fetch-Mode": "navigate"}

#: What the extension's own body tells besides status, wait and type.
_TOLD = {"title": str, "error": str, "detail": str, "limit": str, "violated-policies": list}


class Answer(NamedTuple):
    """A response, whoever sent it.

    :param fields: header fields as they came, a name that came twice standing there twice.
    """

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes

    def every(self, name: str) -> list[str]:
        """All values that a field came with."""
        return [value for known, value in self.fields if known.lower() == name.lower()]

    def field(self, name: str) -> str:
        """A field's value, with commas between several; empty where there is none."""
        return ", ".join(self.every(name))

    @property
    def kind(self) -> str:
        """The media type of the body, without parameters."""
        return self.field("Content-Type").partition(";")[0].strip().lower()

    @property
    def hint(self) -> int | None:
        """The seconds of Retry-After; None where there is none.

        :raises Broken: there are several, or it is no whole number of at least 1.
        """
        values = self.every("Retry-After")
        if not values:
            return None
        if len(values) > 1 or not values[0].isascii() or not values[0].isdecimal() or int(values[0]) < 1:
            raise Broken(f"Retry-After is {', '.join(values)!r}, where one whole number from 1 on should be")
        return int(values[0])


def check_program(answer: Answer, limit: str | None = None, kinds: Iterable[str] = ()) -> str:
    """Hold what a program was refused with against what is promised.

    :param limit: the name of the limit that refused, where it is known.
    :param kinds: which limit state has to be there; what is there has to be right in any case.
    :returns: what it is, in words.
    :raises Broken: it is something else.
    """
    _check_status(answer)
    hint = answer.hint
    _check_stored(answer)
    told = _check_body(answer, hint, limit)
    name = limit or (told or {}).get("limit")
    if isinstance(name, str):
        _check_state(answer, name, hint, kinds)
    wait = "no Retry-After, since no wait helps" if hint is None else f"Retry-After {hint}"
    whose = answer.kind or "no type" if told else f"the app's own {answer.kind or 'body without a type'}"
    return f"429, {wait}, {whose}"


def check_page(answer: Answer, hint: bool) -> str:
    """Hold a page that a browser ends at against what is promised; it may be the app's own.

    :param hint: whether a wait helps.
    :raises Broken: the status is another, or there is no hint.
    """
    _check_status(answer)
    if hint and answer.hint is None:
        raise Broken("a browser's 429 has no Retry-After")
    return f"429, {answer.kind or 'no type'}"


def check_redirect(answer: Answer) -> str:
    """Hold a redirect to the limit page against what is promised.

    :returns: where it leads.
    :raises Broken: it is none, or carries what would mean something else there.
    """
    where = answer.field("Location")
    if not where:
        raise Broken(f"a browser's {answer.status} has no Location")
    if answer.hint is not None:
        raise Broken("a browser's redirect has a Retry-After, which there would speak of the page")
    _check_stored(answer)
    return where


def _check_status(answer: Answer) -> None:
    if answer.status == 429:
        return
    taken = "; a client takes that for success" if answer.status < 400 else ""
    raise Broken(f"a refused caller is answered {answer.status} instead of 429{taken}")


def _check_stored(answer: Answer) -> None:
    if "no-store" not in answer.field("Cache-Control").lower():
        raise Broken("the refusal may be cached: its Cache-Control is not no-store")


def _check_body(answer: Answer, hint: int | None, limit: str | None) -> dict[str, Any] | None:
    """What the body tells where it is the extension's own; None where the app wrote it."""
    told = _told(answer)
    if told is not None and told.get("retry_after", hint) != hint:
        raise Broken(f"the body's retry_after is {told['retry_after']!r}, and Retry-After is {hint}")
    if told is not None and str(told.get("type")).endswith(f"#{RateLimited.problem_type}"):
        _check_told(told, limit)
        return told
    if hint is None and limit is None:
        raise Broken("there is no Retry-After, and nothing says that no wait helps")
    return None


def _check_told(told: dict[str, Any], limit: str | None) -> None:
    lacking = [name for name, kind in _TOLD.items() if not isinstance(told.get(name), kind) or not told[name]]
    if lacking or told.get("status") != 429 or "retry_after" not in told:
        raise Broken(f"the body lacks what is promised: {json.dumps(told)}")
    if told["limit"] not in told["violated-policies"] or limit not in (None, told["limit"]):
        raise Broken(f"the body names another limit: {json.dumps(told)}")


def _told(answer: Answer) -> dict[str, Any] | None:
    if answer.kind != "application/json" and not answer.kind.endswith("+json"):
        return None
    try:
        told = json.loads(answer.body)
    except ValueError:
        raise Broken(f"the body says that it is {answer.kind}, and is not") from None
    return told if isinstance(told, dict) else None


def _check_state(answer: Answer, limit: str, hint: int | None, kinds: Iterable[str]) -> None:
    """Hold the limit state against the refusal: nothing is left, until Retry-After."""
    wait, until = ("", "") if hint is None else (str(hint), f";t={hint}")
    expected = {
        "draft": {"RateLimit": f"{sf_string(limit)};r=0{until}"},
        "trio": {"RateLimit-Remaining": "0", "RateLimit-Reset": wait},
        "x": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": wait},
    }
    for kind, fields in expected.items():
        for name, value in fields.items():
            found = answer.field(name)
            listed = f"{value}," in f"{found}," if kind == "draft" else value == found
            if (found or kind in kinds) and not listed:
                raise Broken(f"{name} is {found!r}, and the refusal says {value!r}")

"""What strangers send and what callbacks answer in bad faith or by mistake: no request fails of it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from werkzeug.routing import Rule

from flask_venuelimit import FixedWindow, Limit, Subject, VenueLimit, by_ip
from tests.acceptance.callers import CHROME_PAGE, Refused, caller, left, statuses, whose_bucket


class Enumerated(str, enum.Enum):
    """Texts as enumerations have them."""

    RED = "red"


class Unspeakable(str):
    """A text that cannot be read."""

    def __str__(self) -> str:
        raise RuntimeError


class Neither:
    """An answer that is neither true nor false, as a database column is."""

    def __bool__(self) -> bool:
        raise TypeError("neither true nor false")


# -- what callbacks answer -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, 5, "", "two\nlines", "caf\u00e9"])
def test_a_subject_without_a_kind_is_nobody(
    app: Flask, limiter: VenueLimit, warnings: list[str], kind: Any
) -> None:
    """A kind is shown in logs: where it is no word the key knew nobody, and the request passes."""
    whose = whose_bucket(app, limiter, lambda: Subject(kind, "x"))
    assert statuses(caller(app), "/", 1) == [200]
    assert whose().startswith("ip:")
    assert len(warnings) == 1


@pytest.mark.parametrize(
    "answer",
    [Unspeakable("x"), 10**5000, "\ud800", ("a", "\x00"), "x" * 100_000],
    ids=["unspeakable", "huge", "surrogate", "null", "long"],
)
def test_an_odd_name_fails_no_request(app: Flask, limiter: VenueLimit, answer: Any) -> None:
    """Whatever text or number a key names somebody by, the request is counted and answered."""
    whose_bucket(app, limiter, lambda: answer)
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_an_enumerated_text_is_that_text(app: Flask, limiter: VenueLimit) -> None:
    """A member of an enumeration of texts shares the bucket of the text it is equal to."""
    answers: list[Any] = [Enumerated.RED, "red"]
    whose_bucket(app, limiter, answers.pop)
    assert statuses(caller(app), "/", 2) == [200, 429]


@pytest.mark.parametrize("role", ["unless", "refund_if", "exempt_if"])
def test_an_answer_that_is_neither_true_nor_false_is_logged(
    app: Flask, limiter: VenueLimit, warnings: list[str], role: str
) -> None:
    """A predicate that answers with what has no truth counts as false, and fails no request."""
    terms: dict[str, Callable[..., Any]] = {} if role == "exempt_if" else {role: lambda *_: Neither()}
    if not terms:
        limiter.exempt_if(lambda: Neither())
    limit = limiter.limit(FixedWindow(2, 60), name="it", key=by_ip, **terms)  # type: ignore[arg-type]
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert (statuses(caller(app), "/", 1), left(limit)) == ([200], 1)
    assert warnings
    assert role in warnings[0]


def test_a_predicate_that_answers_with_a_promise_exempts_nobody(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """What still has to be awaited is no answer, and not true because it is something."""

    class Promise:
        def __await__(self) -> Any:
            yield

    limiter.exempt_if(lambda: Promise())
    app.add_url_rule("/", "home", limiter.limit("1/minute", name="it", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert warnings


# -- methods -------------------------------------------------------------------------------------


def test_invented_methods_share_one_bucket(app: Flask, limiter: VenueLimit) -> None:
    """A route that lets any method pass gives a method that nobody knows no bucket of its own."""
    limiter.limit(FixedWindow(2, 60), name="it", key=by_ip, per_method=True).everywhere()
    app.url_map.add(Rule("/", endpoint="home"))
    app.view_functions["home"] = lambda: "ok"
    seen = [statuses(caller(app), "/", 1, method=method) for method in ("AAA", "BBB", "GET", "CCC", "POST")]
    assert seen == [[200], [200], [429], [429], [200]]


def test_invented_methods_leave_nothing_behind(app: Flask, limiter: VenueLimit) -> None:
    """What is worked out for a route once is not worked out and kept for each word a stranger sends."""
    limiter.limit("99/minute", name="it", key=by_ip).everywhere()
    app.url_map.add(Rule("/", endpoint="home"))
    app.view_functions["home"] = lambda: "ok"
    for n in range(50):
        statuses(caller(app), "/", 1, method=f"M{n}")
    assert len(app.extensions["venuelimit"]._coverage) == 1


def test_a_limit_may_name_a_method_of_its_own(app: Flask, limiter: VenueLimit) -> None:
    """``methods={"PURGE"}`` covers PURGE, also where a route names no methods and where nothing matches."""
    limiter.limit("1/minute", name="it", key=by_ip, methods={"PURGE"}).everywhere()
    app.url_map.add(Rule("/", endpoint="home"))
    app.view_functions["home"] = lambda: "ok"
    assert statuses(caller(app), "/", 2, method="BAN") == [200, 200]
    assert statuses(caller(app), "/", 2, method="PURGE") == [200, 429]


# -- the limit page ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["t=\xff\xfe", "t=\xed\xa0\x80", "\xff", "t=%ff&t=%00", "t=" + "." * 9_000])
def test_no_query_breaks_the_page(app: Flask, closed: Limit, query: str) -> None:
    """A token of bytes that are no text, as a server may pass them on, gives the plain page."""
    answer = caller(app).get("/too-many-requests", environ_overrides={"QUERY_STRING": query})
    assert (answer.status_code, answer.headers["X-Robots-Tag"]) == (200, "noindex, nofollow")


@pytest.mark.parametrize(
    "path", ["page.css", "/page.css", "/", "/static", "/static/", "x", "/static/page.css/"]
)
def test_a_path_that_looks_like_the_page_s_is_the_app_s(app: Flask, closed: Limit, path: str) -> None:
    """Only the page and its assets are exempt, not what begins and ends like them."""
    app.add_url_rule("/<path:any>", "any", lambda any: "mine")
    assert statuses(caller(app), f"/too-many-requests{path}", 2) == [200, 429]


@pytest.mark.parametrize(
    "value", ["\xff\xfe", "text/html;q=nan, */*;q=-1", "," * 5_000, 'a/b;c="' + "\\\\" * 5_000]
)
@pytest.mark.parametrize(
    "field",
    ["Accept", "Accept-Language", "Authorization", "Cookie", "Sec-Fetch-Mode", "Purpose", "Forwarded"],
)
def test_no_header_breaks_a_refusal(app: Flask, refused: Refused, field: str, value: str) -> None:
    """Whatever a header field holds, the second request is refused, and by 429 or the way to the page."""
    answer = refused(**{"Accept": CHROME_PAGE, field.replace("-", "_"): value})
    assert answer.status_code in (303, 429)
    if answer.status_code == 303:
        assert caller(app).get(answer.headers["Location"], headers={field: value}).status_code == 429

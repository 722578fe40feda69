"""``flask venuelimit drill --url``: a running server, from outside, in real time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from flask import Flask, request

from flask_venuelimit import FixedWindow, RateLimited, TokenBucket, VenueLimit, by_bearer, by_ip
from flask_venuelimit.drill.outside import rehearse_at
from tests.commands.drilling import drilled, venue
from tests.commands.terminal import Typed
from tests.servers import run_app, run_gunicorn

Wsgi = Callable[..., Iterable[bytes]]


@pytest.fixture
def served() -> tuple[Flask, VenueLimit]:
    """An app that has its storage in memory; the drill's own app, which it must not touch, is another."""
    return venue()


def at(app: Flask, path: str, *words: str) -> Typed:
    """Serve an app, and drill it at its URL; what was said comes without the URL."""
    with run_app(app) as url:
        answer = drilled(venue()[0], "--url", url + path, *words)
    return Typed(answer.code, answer.text.replace(f"{url}{path}: ", ""))


def put(app: Flask, limiter: VenueLimit, policy: Any, **terms: Any) -> None:
    """Limit the view at ``/``."""
    limit = limiter.limit(policy, name="it", **{"key": by_ip, **terms})
    app.add_url_rule("/", "home", limit(lambda: "ok"))


def test_a_server_refuses_and_lets_in_again(served: tuple[Flask, VenueLimit]) -> None:
    """The wait of the hint is really waited; memory cannot be seen from there."""
    put(*served, FixedWindow(3, per=1))
    answer = at(served[0], "/")
    assert answer.code == 0
    assert [line for line in answer.lines if not line.startswith("waiting")] == [
        "ok refusal 429, Retry-After 1, application/json; too short a wait to come as a browser too",
        "ok recovery let in after the 1 s of the hint (200); what a crowd does, one cannot show",
        "not driven memory what a server holds cannot be seen from outside",
        "",
        "3 checks: 2 ok, 1 not driven, 0 FAILED",
    ]


def test_gunicorn_is_drilled_as_well() -> None:
    """As whatever speaks HTTP."""
    with run_gunicorn("tests.commands.served:app") as server:
        answer = drilled(venue()[0], "--url", f"http://{server.address}/", "--max-wait", "0.5")
    assert answer.code == 0
    assert " 429, Retry-After 7" in answer.lines[0]
    assert "longer than --max-wait 0.5" in answer.lines[1]


def test_a_browser_s_way_is_followed(served: tuple[Flask, VenueLimit]) -> None:
    """To the limit page, where it ends in a 429; and a long wait is not waited."""
    put(*served, "3/minute")
    answer = at(served[0], "/", "--max-wait", "5")
    assert answer.code == 0
    assert answer.lines[0].endswith("; a browser: 303 to /too-many-requests, 429, text/html")
    assert "longer than --max-wait 5" in answer.lines[1]
    assert answer.lines[1].startswith("not driven recovery Retry-After is ")


def test_who_asks_says_so_and_comes_alone(served: tuple[Flask, VenueLimit]) -> None:
    """One request after the other, under a name that can be found in a log, and no more than needed."""
    app, limiter = served
    seen: list[str] = []
    app.before_request(lambda: seen.append(request.headers["User-Agent"]))
    put(app, limiter, "3/minute", key=lambda: "everybody")
    at(app, "/", "--max-wait", "0")
    assert seen == ["flask-venuelimit-drill"] * 5


def test_a_caller_may_be_somebody(served: tuple[Flask, VenueLimit]) -> None:
    """By the headers they send: a cookie, a token."""
    put(*served, "3/minute", key=by_bearer, per_address="1000/minute")
    words = ("--max-wait", "0", "--requests", "9")
    assert at(served[0], "/", *words, "--header", "Authorization: Bearer abc").code == 0
    assert at(served[0], "/", *words).code == 1


def test_a_server_that_never_refuses_fails(served: tuple[Flask, VenueLimit]) -> None:
    """After so many requests; the server says how much is left."""
    put(*served, "30/minute")
    answer = at(served[0], "/", "--requests", "4")
    assert answer.code == 1
    assert answer.lines[0].startswith(
        'FAILED refusal 4 requests, and none was refused; the last answer says RateLimit: "it";r=26;t='
    )
    assert answer.lines[1] == "not driven recovery nobody was refused"


def test_no_hint_is_right_where_no_wait_helps(served: tuple[Flask, VenueLimit]) -> None:
    """The body says so."""
    put(*served, "0/minute")
    answer = at(served[0], "/")
    assert answer.code == 0
    assert "no Retry-After, since no wait helps" in answer.lines[0]
    assert answer.lines[1].startswith("not driven recovery no wait helps")


def test_a_refusal_that_looks_like_success_fails(served: tuple[Flask, VenueLimit]) -> None:
    """An error handler that answers 200: a client would never slow down."""
    put(*served, "3/minute")
    served[0].register_error_handler(429, lambda _: "slow down")
    answer = at(served[0], "/", "--max-wait", "0")
    assert answer.code == 1
    assert answer.lines[0].endswith("answered 200 instead of 429; a client takes that for success")


def test_a_browser_s_refusal_that_looks_like_success_fails(served: tuple[Flask, VenueLimit]) -> None:
    """So does a worker that counts for itself, and has not refused yet."""
    put(*served, "3/minute")

    def handler(error: RateLimited) -> Any:
        return "slow down" if "Sec-Fetch-Mode" in request.headers else (error.problem(), 429)

    served[0].register_error_handler(RateLimited, handler)
    answer = at(served[0], "/", "--max-wait", "0")
    assert answer.code == 1
    assert "right after that a browser is answered 200: its refusal looks like success" in answer.lines[0]


def without(name: str, app: Wsgi) -> Wsgi:
    """Take a header field off every response, as a proxy may."""

    def dropping(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        def begin(status: str, fields: list[tuple[str, str]], *rest: Any) -> Any:
            return start(status, [field for field in fields if field[0] != name], *rest)

        return app(environ, begin)

    return dropping


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("Retry-After", "the body's retry_after is "),
        ("Cache-Control", "the refusal may be cached: its Cache-Control is not no-store"),
    ],
)
def test_what_is_lost_on_the_way_is_missed(
    served: tuple[Flask, VenueLimit], name: str, complaint: str
) -> None:
    """Middleware and proxies are part of what is drilled here."""
    put(*served, "3/minute")
    served[0].wsgi_app = without(name, served[0].wsgi_app)  # type: ignore[method-assign]
    answer = at(served[0], "/", "--max-wait", "0")
    assert answer.code == 1
    assert answer.lines[0].startswith(f"FAILED refusal {complaint}")


def test_a_hint_that_is_too_short_fails(served: tuple[Flask, VenueLimit]) -> None:
    """Whoever honours it is refused again."""
    app, limiter = served
    put(app, limiter, "3/minute")
    inner = without("Retry-After", app.wsgi_app)

    def hasty(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        def begin(status: str, fields: list[tuple[str, str]], *rest: Any) -> Any:
            kept = [(name, value) for name, value in fields if "ratelimit" not in name.lower()]
            return start(status, [*kept, ("Retry-After", "1")], *rest)

        return inner(environ, begin)

    app.register_error_handler(429, lambda _: ("slow down", 429))
    app.wsgi_app = hasty  # type: ignore[assignment, method-assign]
    answer = at(app, "/")
    assert answer.code == 1
    assert (
        "FAILED recovery refused again after the 1 s of the hint, unless others share its bucket"
        in answer.lines
    )


def test_a_server_that_cannot_be_asked_fails(served: tuple[Flask, VenueLimit]) -> None:
    """Refused connections, and errors of the server's own."""
    with run_app(served[0]) as url:
        pass
    answer = drilled(served[0], "--url", url)
    assert answer.code == 1
    assert "the server cannot be asked (ConnectionRefusedError: " in answer.lines[0]
    served[0].add_url_rule("/", "broken", lambda: ("broken", 500))
    assert "the server answers 500; whom it would refuse cannot be shown" in at(served[0], "/").lines[0]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--url", "pub.example"], "the URL is 'pub.example'. Use one such as http://127.0.0.1:5000/scores."),
        (["--url", "ftp://pub.example/"], "the URL is 'ftp://pub.example/'. Use one such as "),
        (["--url", "http://a:b@pub.example/"], "Use one such as "),
        (["--url", "http://pub.example:99999/"], "Port out of range"),
        (["--url", "http://pub.example/", "--requests", "0"], "Use at least 1, and 0 or more seconds."),
        (["--url", "http://pub.example/", "--max-wait", "nan"], "Use at least 1, and 0 or more seconds."),
        (["--url", "http://pub.example/", "--header", "Cookie"], "Use a name and a value, such as "),
    ],
)
def test_what_was_mistyped_is_explained(words: list[str], complaint: str) -> None:
    """In a sentence, before anything is sent."""
    answer = drilled(venue()[0], *words)
    assert answer.code == 2
    assert complaint in answer.text


def test_a_wait_is_counted_from_the_refusal(served: tuple[Flask, VenueLimit]) -> None:
    """Not from when all of it had been looked at; and somebody else may do the waiting."""
    put(*served, TokenBucket(2, rate=1, per=30))
    waited: list[float] = []
    with run_app(served[0]) as url:
        found = list(rehearse_at(url, wait=waited.append))
    assert [each.verdict for each in found] == ["ok", "FAILED", "not driven"]
    assert 25 < waited[0] < 33.01

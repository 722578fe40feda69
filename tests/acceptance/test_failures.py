"""Limits that count failures only: charged at the door, given back to whoever succeeded."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask, Response, redirect, request

from flask_venuelimit import FixedWindow, RateLimited, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import NAVIGATING, C, caller, left, room, statuses


@pytest.mark.parametrize("status", [200, 204, 302, 304, 399])
def test_a_success_gives_its_charge_back(app: Flask, login: Any, status: int) -> None:
    """Whatever is answered under 400 costs nothing, and the next request finds that done."""
    assert statuses(caller(app), f"/{status}", 10) == [status] * 10
    assert left(login) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
def test_a_failure_stays_charged(app: Flask, login: Any, status: int) -> None:
    """From 400 on it is a failure, and the fourth within a minute does not reach the view."""
    assert statuses(caller(app), f"/{status}", 3) == [status] * 3
    assert left(login) == 0
    assert caller(app).get("/200").status_code == 429


def test_one_success_gives_back_one_charge(app: Flask, limiter: VenueLimit) -> None:
    """Four wrong and one right, again and again: the right one does not wipe the wrong ones out."""
    app.add_url_rule("/<int:s>", "login", limiter.failures("5/minute", name="f")(lambda s: ("", s)))
    client = caller(app)
    seen = [client.get(f"/{status}").status_code for status in [401, 401, 401, 401, 200] * 2]
    assert seen == [401, 401, 401, 401, 200, 401, 429, 429, 429, 429]


def test_a_success_is_shown_as_refunded(app: Flask, login: Any) -> None:
    """The header of a success counts the charge that is given back; that of a failure does not."""
    client = caller(app)
    rooms = [room(client.get(f"/{status}"), "failed-logins") for status in (200, 401, 200, 401, 200)]
    assert rooms == [3, 2, 2, 1, 1]


def test_the_final_status_decides(app: Flask, login: Any) -> None:
    """What an after-request hook makes of the answer is what counts."""

    @app.after_request
    def all_is_well(response: Response) -> Response:
        response.status_code = 200
        return response

    assert statuses(caller(app), "/401", 9) == [200] * 9
    assert left(login) == 3


def test_an_error_handler_s_status_decides(app: Flask, limiter: VenueLimit) -> None:
    """An error that is answered as a page with status 200 is no failure; one answered 400 is."""
    app.register_error_handler(LookupError, lambda error: ("no such game", 200))
    app.register_error_handler(KeyError, lambda error: ("no such key", 400))

    limit = limiter.failures("3/minute", name="f")

    @app.get("/raise/<kind>")
    @limit
    def raising(kind: str) -> str:
        raise KeyError if kind == "key" else LookupError

    assert [caller(app).get(f"/raise/{kind}").status_code for kind in ("key", "other", "key")] == [
        400,
        200,
        400,
    ]
    assert left(limit) == 1


def test_an_exception_that_leaves_the_app_is_a_failure(app: Flask, login: Any) -> None:
    """A crash stays charged, whether Flask answers 500 or lets the exception out."""
    app.add_url_rule("/crash", "crash", login(lambda: 1 // 0))
    assert caller(app).get("/crash").status_code == 500
    app.testing = True
    with pytest.raises(ZeroDivisionError):
        caller(app).get("/crash")
    assert left(login) == 1


def test_mark_failure_charges_a_200(app: Flask, limiter: VenueLimit) -> None:
    """A login form that answers 200 with the form again says itself that the password was wrong."""

    @app.post("/login")
    @limiter.failures("2/minute", name="failed-logins")
    def login() -> str:
        if request.form["password"] != "right":
            limiter.mark_failure()
        return "the form again"

    client = caller(app)
    seen = [
        client.post("/login", data={"password": p}).status_code for p in ("right", "w", "right", "w", "w")
    ]
    assert seen == [200, 200, 200, 200, 429]


def test_mark_success_refunds_a_404(app: Flask, limiter: VenueLimit) -> None:
    """A view may say that its 404 is no failure."""
    limit = limiter.failures("2/minute", name="f")

    @app.get("/")
    @limit
    def found_nothing() -> tuple[str, int]:
        limiter.mark_success()
        return "", 404

    assert statuses(caller(app), "/", 5) == [404] * 5
    assert left(limit) == 2


def test_the_last_mark_counts(app: Flask, limiter: VenueLimit) -> None:
    """Who marks twice means the later one."""
    limit = limiter.failures("5/minute", name="f")

    @app.get("/")
    @limit
    def home() -> str:
        limiter.mark_success()
        limiter.mark_failure()
        return "ok"

    caller(app).get("/")
    assert left(limit) == 4


def test_a_mark_is_for_its_own_request(app: Flask, login: Any, limiter: VenueLimit) -> None:
    """The next request is judged by its own status again."""
    app.add_url_rule("/marked", "marked", login(lambda: str(limiter.mark_failure())))  # type: ignore[func-returns-value]
    statuses(caller(app), "/marked", 1)
    statuses(caller(app), "/200", 5)
    assert left(login) == 2


def test_marking_outside_a_request_does_nothing(limiter: VenueLimit) -> None:
    """A helper that marks can be used in a job."""
    limiter.mark_failure()
    limiter.mark_success()
    assert limiter.decisions == []


# -- refusals ------------------------------------------------------------------------------------


def test_a_refusal_is_a_failure(app: Flask, limiter: VenueLimit) -> None:
    """A failure limit that admitted stays charged where another limit of its point refuses."""
    limit = limiter.failures("9/minute", name="f")
    app.add_url_rule("/", "home", limit(limiter.limit("1/minute", name="one", key=by_ip)(lambda: "ok")))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert left(limit) == 6


def test_a_refusal_at_a_later_point_is_a_failure(app: Flask, limiter: VenueLimit) -> None:
    """The same holds where the failure limit was decided at the front, and the other at the view."""
    limit = limiter.failures("9/minute", name="f")
    app.add_url_rule("/", "home", limit(limiter.limit("1/minute", name="one", key=lambda: 1)(lambda: "ok")))
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert left(limit) == 6


@pytest.mark.parametrize("key", [by_ip, lambda: 1])
def test_a_refusal_sent_as_a_redirect_is_a_failure(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A browser sent to the limit page by 303 was refused all the same."""
    limit = limiter.failures("9/minute", name="f")
    app.add_url_rule("/", "home", limit(limiter.limit("1/minute", name="one", key=key)(lambda: "ok")))
    assert statuses(caller(app), "/", 3, headers=NAVIGATING) == [200, 303, 303]
    assert left(limit) == 7


@pytest.mark.parametrize("answer", [("sorry", 200), redirect("/sorry", 303)])
@pytest.mark.parametrize("handled", [429, RateLimited])
def test_a_restyled_refusal_neither_refunds_nor_charges(
    app: Flask, limiter: VenueLimit, clock: ManualClock, answer: Any, handled: Any
) -> None:
    """A handler that makes 200 or 303 of a failure limit's refusal changes nothing about the count."""
    limit = limiter.failures(FixedWindow(2, 60), name="f")
    app.add_url_rule("/<int:status>", "login", limit(lambda status: ("", status)))
    app.register_error_handler(handled, lambda error: answer)
    client = caller(app)
    assert statuses(client, "/401", 2) == [401, 401]
    assert set(statuses(client, "/401", 9)) <= {200, 303}
    assert limit.peek(subject=C).remaining == 0
    clock.advance(60)
    assert statuses(client, "/401", 2) == [401, 401]


def test_a_restyled_refusal_by_another_limit_is_a_failure(app: Flask, limiter: VenueLimit) -> None:
    """A failure limit stays charged though the app answers another limit's refusal with 200."""
    limit = limiter.failures("9/minute", name="f")
    app.add_url_rule("/", "home", limit(limiter.limit("1/minute", name="one", key=by_ip)(lambda: "ok")))
    app.register_error_handler(429, lambda error: ("sorry", 200))
    assert statuses(caller(app), "/", 3) == [200, 200, 200]
    assert left(limit) == 7


def test_a_guard_s_refusal_is_a_failure(app: Flask, limiter: VenueLimit) -> None:
    """RateLimited raised by hand in a view, and restyled to 200, keeps the failure limit's charge."""
    limit, inner = limiter.failures("9/minute", name="f"), limiter.limit("0/minute", name="inner")

    @app.get("/")
    @limit
    def home() -> str:
        with inner.guard():
            return "ok"

    app.register_error_handler(RateLimited, lambda error: ("sorry", 200))
    assert statuses(caller(app), "/", 2) == [200, 200]
    assert left(limit) == 7

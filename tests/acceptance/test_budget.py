"""``budget=True``: a limit that guards spending, closed where nobody can count."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    ConfigurationError,
    FixedWindow,
    Limit,
    LimiterUnavailable,
    MemoryStorage,
    VenueLimit,
    by_ip,
)
from tests.acceptance.callers import NAVIGATING, A, C, caller, left, message, statuses
from tests.servers import StoreServer, free_port, wait_until


@pytest.fixture
def checkout(app: Flask, server: StoreServer) -> Limit:
    """A budget of two a minute on ``/``, over a server that can be killed."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    limiter = VenueLimit(app)
    limit = limiter.limit(FixedWindow(2, 60), name="checkout", key=by_ip, budget=True)
    app.add_url_rule("/", "home", limit(lambda: "paid"), methods=["GET", "POST"])
    return limit


# -- no storage ----------------------------------------------------------------------------------


def test_without_storage_budgets_are_open_and_named(app: Flask, warnings: list[str]) -> None:
    """The one warning at the start says which budgets declared by then nobody guards."""
    limiter = VenueLimit()
    for name in ("checkout", "sms"):
        limiter.limit("5/minute", name=name, key=by_ip, budget=True)
    limiter.limit("5/minute", name="polls", key=by_ip)
    limiter.init_app(app)
    limiter.limit("5/minute", name="later", key=by_ip, budget=True)
    (warning,) = warnings
    assert "'checkout', 'sms'" in warning
    assert "polls" not in warning
    assert "later" not in warning


def test_without_storage_a_budget_without_a_name_is_told_of_too(app: Flask, warnings: list[str]) -> None:
    """It is told by what it holds, as it has no name to be told by."""
    limiter = VenueLimit()
    limiter.limit("5/minute", key=by_ip, budget=True)
    limiter.init_app(app)
    (warning,) = warnings
    assert "budget" in warning
    assert "5/minute" in warning
    assert "None" not in warning


def test_without_budgets_none_are_mentioned(app: Flask, warnings: list[str]) -> None:
    """An app without spending is not frightened."""
    limiter = VenueLimit()
    limiter.limit("5/minute", name="polls", key=by_ip)
    limiter.init_app(app)
    assert ["budget" in warning for warning in warnings] == [False]


def test_without_storage_a_budget_admits(app: Flask) -> None:
    """A fresh clone runs, checkout included."""
    limiter = VenueLimit(app)
    limit = limiter.limit(FixedWindow(0, 60), name="checkout", key=by_ip, budget=True)
    app.add_url_rule("/", "home", limit(lambda: "paid"))
    assert statuses(caller(app), "/", 3) == [200] * 3


# -- storage fails -------------------------------------------------------------------------------


def test_a_budget_is_a_limit_like_any_other_while_storage_answers(app: Flask, checkout: Limit) -> None:
    """Two pass, the third is told to slow down."""
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


def test_a_budget_is_closed_while_storage_is_down(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """Nobody can count, so nobody may spend: 503, and a program can read why."""
    server.kill()
    answer = caller(app).get("/", headers={"Accept": "*/*"})
    wait = int(answer.headers["Retry-After"])
    assert (answer.status_code, answer.mimetype, wait >= 1) == (503, "application/json", True)
    assert answer.get_json() == {
        "type": "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        "title": "Service Unavailable",
        "status": 503,
        "error": "limiter_unavailable",
        "detail": "Requests cannot be checked right now. Please try again in a moment.",
        "retry_after": wait,
        "limit": "checkout",
    }


def test_the_view_does_not_run_while_storage_is_down(app: Flask, server: StoreServer) -> None:
    """What must not be spent is not spent: the refusal comes before the view."""
    spent: list[int] = []
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    limiter = VenueLimit(app)
    pay = limiter.limit("5/minute", key=lambda: "somebody", budget=True)(lambda: str(spent.append(1)))  # type: ignore[func-returns-value]
    app.add_url_rule("/", "home", pay)
    server.kill()
    assert (statuses(caller(app), "/", 2), spent) == ([503, 503], [])


def test_nobody_may_keep_that_answer(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """It is never cached, and depends on who asks."""
    server.kill()
    answer = caller(app).get("/")
    assert answer.headers["Cache-Control"] == "no-store"
    assert {"Accept", "Sec-Fetch-Mode"} <= set(answer.vary)
    assert len(answer.headers.getlist("Retry-After")) == 1


@pytest.mark.parametrize("mode", ["redirect", "inline"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_person_is_shown_the_page_inline(app: Flask, server: StoreServer, mode: str, method: str) -> None:
    """Whatever the page mode: 503 and the page at the URL asked for, no redirect."""
    app.config.update(VENUELIMIT_STORAGE_URI=server.url, VENUELIMIT_PAGE_MODE=mode)
    limit = VenueLimit(app).limit("5/minute", name="checkout", key=by_ip, budget=True)
    app.add_url_rule("/", "home", limit(lambda: "paid"), methods=["GET", "POST"])
    server.kill()
    answer = caller(app).open("/", method=method, headers=NAVIGATING)
    assert (answer.status_code, answer.mimetype) == (503, "text/html")
    assert "503" in answer.text
    assert (answer.headers["X-Robots-Tag"], answer.headers["Cache-Control"]) == (
        "noindex, nofollow",
        "no-store",
    )
    assert int(answer.headers["Retry-After"]) >= 1


def test_problem_json_is_sent_to_whoever_names_it(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """Bodies are chosen as for a refusal."""
    server.kill()
    answer = caller(app).get("/", headers={"Accept": "application/problem+json"})
    assert (answer.status_code, answer.mimetype) == (503, "application/problem+json")


def test_a_budget_is_closed_from_the_start_if_the_server_is_down(app: Flask, warnings: list[str]) -> None:
    """The app starts; its first request is turned away, and that is told once."""
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis://127.0.0.1:{free_port()}"
    limit = VenueLimit(app).limit("5/minute", name="checkout", key=by_ip, budget=True)
    app.add_url_rule("/", "home", limit(lambda: "paid"))
    assert statuses(caller(app), "/", 3) == [503] * 3
    assert len(warnings) == 1


def test_a_budget_opens_again_with_the_server(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """No restart is needed, and what was turned away was not charged."""
    server.kill()
    statuses(caller(app), "/", 3)
    server.start()
    wait_until(lambda: caller(app, A).get("/").status_code == 200, what="the budget is open")
    assert statuses(caller(app), "/", 3) == [200, 200, 429]


# -- handlers, by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize("what", [503, LimiterUnavailable])
def test_an_app_s_handler_renders_it(app: Flask, checkout: Limit, server: StoreServer, what: Any) -> None:
    """One for 503 or for the class is used, and the hint is added to what it answers."""

    def answer(error: LimiterUnavailable) -> tuple[str, int]:
        assert error.decision is not None
        return f"closed: {error.decision.limit}, {error.retry_after}", 503

    app.register_error_handler(what, answer)
    server.kill()
    answered = caller(app).get("/")
    wait = answered.headers["Retry-After"]
    assert (answered.status_code, answered.text) == (503, f"closed: checkout, {wait}")
    assert answered.headers["Cache-Control"] == "no-store"


def test_a_catch_all_does_not_make_it_a_500(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """A handler for every exception is not meant for refusals."""
    app.register_error_handler(Exception, lambda error: ("oh no", 500))
    server.kill()
    assert caller(app).get("/").get_json()["error"] == "limiter_unavailable"


def test_the_app_s_own_503_is_left_alone(app: Flask, checkout: Limit) -> None:
    """``abort(503)`` is the app's, body, hint and all."""
    app.add_url_rule("/own", "own", lambda: app.aborter(503))
    answer = caller(app).get("/own")
    assert (answer.status_code, answer.mimetype) == (503, "text/html")
    assert "Retry-After" not in answer.headers


def test_by_hand_a_budget_tells_and_a_guard_raises(checkout: Limit, server: StoreServer) -> None:
    """``hit`` and ``peek`` never raise; a guard does not let its block run."""
    server.kill()
    for decision in (checkout.hit(subject=C), checkout.peek(subject=C)):
        assert (decision.allowed, decision.remaining) == (False, 0)
        assert decision.retry_after is not None
        assert decision.retry_after > 0
        checkout.refund(decision)
    with pytest.raises(LimiterUnavailable) as caught, checkout.guard(subject=C):
        pytest.fail("the block ran")
    assert caught.value.retry_after is not None
    assert caught.value.retry_after >= 1


def test_a_guard_in_a_view_is_answered_503(app: Flask, checkout: Limit, server: StoreServer) -> None:
    """As if the limit had stood on the view."""

    @app.get("/guarded")
    def guarded() -> str:
        with checkout.guard():
            return "paid"

    server.kill()
    answer = caller(app).get("/guarded")
    assert (answer.status_code, answer.get_json()["limit"]) == (503, "checkout")
    assert answer.headers["Cache-Control"] == "no-store"


# -- what may be changed -------------------------------------------------------------------------


@pytest.mark.parametrize(("own", "status"), [(None, 503), ("deny", 503), ("allow", 200), ("local", 200)])
def test_only_the_budget_s_own_on_error_opens_it(
    app: Flask, server: StoreServer, own: str | None, status: int
) -> None:
    """The app's ``VENUELIMIT_ON_ERROR`` does not: a budget says for itself what it risks."""
    app.config.update(VENUELIMIT_STORAGE_URI=server.url, VENUELIMIT_ON_ERROR="allow")
    limit = VenueLimit(app).limit("5/minute", key=by_ip, budget=True, on_error=own)
    app.add_url_rule("/", "home", limit(lambda: "paid"))
    server.kill()
    assert statuses(caller(app), "/", 1) == [status]


def test_an_app_may_not_change_a_budget_s_numbers(app: Flask) -> None:
    """``VENUELIMIT_LIMITS`` that names a budget is an error at the first request, not a larger budget."""
    app.config["VENUELIMIT_LIMITS"] = {"checkout": "500/minute"}
    limiter = VenueLimit(app, storage=MemoryStorage())
    limiter.limit("5/minute", name="checkout", key=by_ip, budget=True).everywhere()
    app.testing = True
    assert message(caller(app).get, "/") == (
        "VENUELIMIT_LIMITS changes 'checkout', which is a budget: its numbers guard spending, and are "
        "changed in code alone. Take it out of the setting."
    )
    with pytest.raises(ConfigurationError):
        caller(app).get("/")


def test_a_budget_that_was_refunded_may_be_spent(app: Flask, checkout: Limit) -> None:
    """A payment that fell through is given back by hand."""
    checkout.refund(checkout.hit(2, subject=C))
    assert left(checkout) == 2
    assert statuses(caller(app), "/", 3) == [200, 200, 429]

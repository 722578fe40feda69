"""Apps as they are found: contexts inside contexts, views of every sort, factories that run for each test."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from flask import Blueprint, Flask, copy_current_request_context, request
from flask.sessions import SessionInterface, SessionMixin

from flask_venuelimit import Concurrency, FixedWindow, Limit, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import NAVIGATING, C, caller, items, left, message, statuses


def venue(limiter: VenueLimit, name: str = "venue") -> Flask:
    """An app of its own under a limiter, with a store of its own."""
    app = Flask(name, template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://", VENUELIMIT_RETRY_JITTER=0)
    limiter.init_app(app)
    return app


# -- contexts ------------------------------------------------------------------------------------


def _two_apps() -> tuple[Limit, VenueLimit, Flask, Flask]:
    limiter = VenueLimit()
    limit = limiter.limit(FixedWindow(5, 60), name="it", key=by_ip)
    return limit, limiter, venue(limiter, "asked"), venue(limiter, "other")


def test_another_app_s_context_inside_a_request_counts_in_that_app() -> None:
    """A view that pushes the context of another app charges by hand there, and not where it was asked."""
    limit, _, asked, other = _two_apps()

    @asked.get("/")
    def home() -> str:
        with other.app_context():
            limit.hit(subject=C)
        return "ok"

    assert statuses(caller(asked), "/", 2) == [200, 200]
    with asked.app_context():
        assert left(limit) == 5
    with other.app_context():
        assert left(limit) == 3


def test_another_app_s_context_inside_a_request_knows_no_request() -> None:
    """Whose request it is says the request: another app has no decisions and marks nothing in it."""
    limit, limiter, asked, other = _two_apps()

    @asked.get("/")
    @limiter.failures("5/minute", name="failures")
    def home() -> str:
        with other.app_context():
            limiter.mark_failure()
            return str((limiter.decisions, limiter.client_address(), limit.hit().subject[:17]))

    answer = caller(asked).get("/")
    assert answer.text == "([], None, 'no-request-scope:')"
    assert answer.headers["RateLimit"] == '"failures";r=5;t=60'


def test_a_thread_that_a_view_hands_its_context_ends_no_request(app: Flask, limiter: VenueLimit) -> None:
    """Flask tears the copy down when the thread is done, while the request goes on."""
    slots = limiter.limit(Concurrency(1), name="slots", key=by_ip).everywhere()
    failures = limiter.failures("3/minute", name="failures").everywhere()

    @app.get("/")
    def home() -> str:
        thread = Thread(target=copy_current_request_context(lambda: None))
        thread.start()
        thread.join()
        return f"{slots.peek().remaining} slots, {failures.peek().remaining} failures"

    assert caller(app).get("/").text == "0 slots, 2 failures"
    assert [limit.peek(subject=C).remaining for limit in (slots, failures)] == [1, 3]


def test_a_thread_that_outlives_its_request_gives_back_what_it_took(app: Flask, limiter: VenueLimit) -> None:
    """A limited function may run with a copy of the context after the response has left."""
    slots = limiter.limit(Concurrency(2), name="slots", key=by_ip)
    failures = limiter.failures("3/minute", name="failures").everywhere()
    seen, threads = list[int](), list[Thread]()
    work = slots(lambda: seen.append(slots.peek().remaining))

    @app.get("/")
    def home() -> str:
        threads.append(Thread(target=copy_current_request_context(work)))
        return "ok"

    assert caller(app).get("/").text == "ok"
    threads[0].start()
    threads[0].join(20)
    assert (seen, [limit.peek(subject=C).remaining for limit in (slots, failures)]) == ([1], [2, 3])


def test_a_context_that_is_only_pushed_is_no_first_request(app: Flask, warnings: list[str]) -> None:
    """Building a URL before the views are there says nothing about limits that cover nothing yet."""
    limiter = VenueLimit(app, storage=MemoryStorage())
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    forgotten = limiter.limit("5/minute", name="forgotten", key=by_ip)
    with app.test_request_context():
        pass
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    statuses(caller(app), "/", 2)
    assert len(warnings) == 1
    assert repr(forgotten.name) in warnings[0]


# -- factories -----------------------------------------------------------------------------------


def _factory(limiter: VenueLimit) -> Flask:
    """An app as factories make it: all that it declares it declares again each time."""
    app, bp = venue(limiter), Blueprint("quiz", __name__)
    limiter.limit(FixedWindow(9, 60), key=by_ip).everywhere()
    limiter.exempt_if(lambda: False)
    bp.add_url_rule("/quiz", "play", limiter.limit("5/minute", name="quiz", key=by_ip)(lambda: "ok"))
    limiter.limit("7/minute", key=by_ip)(bp)
    app.add_url_rule("/", "home", lambda: "ok")
    app.register_blueprint(bp)
    return app


def test_a_limit_without_a_name_is_everywhere_once_however_often_a_factory_runs() -> None:
    """The fifth app a factory makes has the limits of the first."""
    limiter = VenueLimit()
    apps = [_factory(limiter) for _ in range(5)]
    seen = [list(items(caller(app).get(path), "RateLimit")) for app in apps for path in ("/", "/quiz")]
    assert seen == [["home"], ["quiz", "quiz.play", "quiz.play#2"]] * 5


def test_who_is_exempt_from_a_limit_that_a_factory_declares_is_exempt_in_each_app() -> None:
    """It makes no difference which run of the factory the limit at hand comes from."""
    limiter, seen = VenueLimit(), []
    for _ in range(3):
        app = venue(limiter)
        limit = limiter.limit(FixedWindow(1, 60), key=by_ip)
        limit.everywhere()
        app.add_url_rule("/", "home", limit.exempt(lambda: "ok"))
        app.add_url_rule("/limited", "limited", lambda: "ok")
        seen.append((statuses(caller(app), "/", 2), statuses(caller(app), "/limited", 2)))
    assert seen == [([200, 200], [200, 429])] * 3


def test_a_predicate_that_a_factory_declares_again_is_asked_once() -> None:
    """``exempt_if`` in a factory is one predicate, and each request asks it once."""
    limiter, asked = VenueLimit(), list[int]()
    apps = [venue(limiter) for _ in range(3)]
    for app in apps:
        limiter.exempt_if(lambda: asked.append(1))
        app.add_url_rule("/", "home", limiter.limit("5/minute", key=by_ip)(lambda: "ok"))
    statuses(caller(apps[0]), "/", 1)
    assert asked == [1]


def test_an_app_that_is_gone_is_gone() -> None:
    """A limiter that lives in a module keeps none of the apps that tests made, nor their views."""
    limiter = VenueLimit()
    apps = [_factory(limiter) for _ in range(3)]
    for app in apps:
        statuses(caller(app), "/quiz", 1)
    kept: list[weakref.ref[Any]] = [weakref.ref(app) for app in apps[:2]]
    kept += [weakref.ref(app.view_functions["quiz.play"]) for app in apps[:2]]
    del apps[:2], app
    gc.collect()
    assert [ref() for ref in kept] == [None] * 4
    assert limiter.limit("3/minute", name="by hand").hit().remaining == 2


def test_a_key_that_is_not_ready_when_it_is_declared_again_is_told_as_different() -> None:
    """A key that leans on what a factory defines later is no crash, but a declaration that differs."""
    limiter = VenueLimit()

    def create() -> None:
        limiter.limit("5/minute", name="it", key=lambda: later)
        later = "somebody"

    create()
    assert "declared twice, and differently" in message(create)


def _that_has_served() -> Flask:
    app = Flask("late", static_folder=None)
    app.add_url_rule("/", "home", lambda: "ok")
    statuses(caller(app), "/", 1)
    return app


def _with_a_blueprint_of_the_name() -> Flask:
    app = Flask("taken", static_folder=None)
    app.add_url_rule("/", "home", lambda: "ok")
    app.register_blueprint(Blueprint("venuelimit", __name__))
    return app


@pytest.mark.parametrize("make", [_that_has_served, _with_a_blueprint_of_the_name])
def test_an_app_that_cannot_be_given_a_limiter_stays_as_it_was(make: Callable[[], Flask]) -> None:
    """Where Flask refuses what init_app asks for, no half of a limiter is left on the app."""
    app, limiter = make(), VenueLimit(storage=MemoryStorage())
    app.secret_key = "s"
    limit = limiter.limit(FixedWindow(0, 60), name="it", key=by_ip).everywhere()
    with pytest.raises((AssertionError, ValueError), match=r"setup method|already registered"):
        limiter.init_app(app)
    assert statuses(caller(app), "/", 2) == [200, 200]
    assert limit.hit().allowed


# -- views and sessions of every sort ------------------------------------------------------------


class Desk:
    """Views as methods of an object, and an object as a view."""

    __slots__ = ()

    def index(self) -> str:
        return "ok"

    def methods(self) -> list[str]:
        return []

    def __call__(self) -> str:
        return "ok"


@pytest.mark.parametrize("make", [lambda desk: desk.index, lambda desk: desk])
def test_a_view_that_takes_no_attributes_can_be_exempt(
    app: Flask, limiter: VenueLimit, make: Callable[[Desk], Any]
) -> None:
    """A bound method and an object with slots are views like others, and another one is not exempt."""
    limiter.limit(FixedWindow(1, 60), name="it", key=by_ip).everywhere()
    desk, other = Desk(), Desk()
    limiter.exempt(make(desk))
    app.add_url_rule("/", "home", make(desk), methods=["GET"])
    app.add_url_rule("/other", "other", make(other), methods=["GET"])
    assert statuses(caller(app), "/", 3) + statuses(caller(app), "/other", 2) == [200, 200, 200, 200, 429]


def test_a_view_may_have_methods_of_another_sort(app: Flask, limiter: VenueLimit) -> None:
    """An object that serves RPC and has ``methods()`` is no class-based view, and is limited all the same."""
    limiter.limit(FixedWindow(1, 60), name="it", key=by_ip).everywhere()
    app.add_url_rule("/", "home", Desk(), methods=["GET"])
    assert statuses(caller(app), "/", 2) == [200, 429]


class Plain(dict[str, Any]):
    """A session that does not say whether it was read."""


class Fixed(Plain, SessionMixin):
    """A session that always says the same."""

    @property
    def accessed(self) -> bool:  # type: ignore[override]
        return False


@pytest.mark.parametrize("kind", [Plain, Fixed])
def test_a_session_of_the_app_s_own_kind_names_people(
    app: Flask, limiter: VenueLimit, warnings: list[str], kind: type[Plain]
) -> None:
    """A server-side session need not keep count of being read to tell who the participant is."""

    class Sessions(SessionInterface):
        def open_session(self, app: Flask, request: Any) -> Any:
            return kind(participant_id=request.args["who"])

        def save_session(self, *_: Any) -> None:
            """Nothing is kept."""

    app.session_interface = Sessions()
    app.add_url_rule("/", "home", limiter.limit("1/minute", name="it")(lambda: "ok"))
    assert [statuses(caller(app), f"/?who={who}", 2) for who in "ab"] == [[200, 429]] * 2
    assert warnings == []


# -- by hand -------------------------------------------------------------------------------------


def test_limits_without_a_name_share_no_bucket_by_hand(app: Flask, limiter: VenueLimit) -> None:
    """Three limits without a name are three counts: the view's own, and two that are asked in it."""
    one, two = limiter.limit("5/minute", key=by_ip), limiter.limit("50/minute", key=by_ip)

    @app.get("/")
    @limiter.limit("9/minute", key=by_ip)
    def home() -> list[int]:
        return [one.hit().remaining, two.hit().remaining, limiter.decisions[0].remaining]

    assert [caller(app).get("/").json for _ in range(2)] == [[4, 49, 8], [3, 48, 7]]
    assert [limit.hit().remaining for limit in (one, two, one)] == [4, 49, 3]


# -- what is said --------------------------------------------------------------------------------


class Lazy:
    """A text that is translated when it is read, as Flask-Babel makes them."""

    def __str__(self) -> str:
        return f"Slow down at {request.path}."

    __html__ = __str__


def test_a_message_may_be_translated_for_whoever_is_refused(app: Flask, limiter: VenueLimit) -> None:
    """A lazily translated message is read in the request it refuses, for programs and for the page."""
    lazy: Any = Lazy()
    limit = limiter.limit(FixedWindow(0, 60), name="it", key=by_ip, message=lazy)
    app.add_url_rule("/here", "here", limit(lambda: "ok"))
    answer = caller(app).get("/here").json
    assert answer is not None
    assert answer["detail"] == "Slow down at /here."
    assert "Slow down at /here." in caller(app).get("/here", headers=NAVIGATING, follow_redirects=True).text


@pytest.mark.parametrize("method", ["M-SEARCH", "version-control"])
def test_any_method_that_http_can_spell_can_be_limited(app: Flask, limiter: VenueLimit, method: str) -> None:
    """Methods are tokens (RFC 9110), not words of letters alone."""
    limiter.limit(FixedWindow(1, 60), name="it", key=by_ip, methods={method}).everywhere()
    app.add_url_rule("/", "home", lambda: "ok", methods=["GET", method])
    assert statuses(caller(app), "/", 2) + statuses(caller(app), "/", 2, method=method) == [
        200,
        200,
        200,
        429,
    ]


@pytest.mark.parametrize("of", ["app", "blueprint", "nested"])
def test_a_teardown_function_that_raises_keeps_no_charge(app: Flask, limiter: VenueLimit, of: str) -> None:
    """Whatever an app's own teardown does, a success has its charge back and a slot is free again."""
    slots = limiter.limit(Concurrency(1), name="slots", key=by_ip).everywhere()
    failures = limiter.failures("1/minute", name="failures").everywhere()
    outer, inner = Blueprint("outer", __name__), Blueprint("inner", __name__)
    inner.add_url_rule("/", "home", lambda: "ok")

    @{"app": app, "blueprint": outer, "nested": inner}[of].teardown_request
    def broken(error: BaseException | None) -> None:
        raise RuntimeError("torn")

    outer.register_blueprint(inner)
    app.register_blueprint(outer)
    with pytest.raises(RuntimeError, match="torn"):
        caller(app).get("/")
    assert [limit.peek(subject=C).remaining for limit in (slots, failures)] == [1, 1]

"""Many at once: real threads, over a real server."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask

from flask_venuelimit import FixedWindow, SlidingWindow, TokenBucket, VenueLimit, by_ip
from tests.acceptance.callers import caller, statuses
from tests.servers import run_app, wait_until


def get(address: str, path: str, times: int = 1) -> list[int]:
    """The status codes of so many requests over one connection."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=20)
    seen = []
    for _ in range(times):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        seen.append(response.status)
    connection.close()
    return seen


def at_once(count: int, work: Callable[[], list[int]]) -> Counter[int]:
    """What ``count`` threads that start together are answered."""
    together = threading.Barrier(count)

    def start() -> list[int]:
        together.wait(20)
        return work()

    with ThreadPoolExecutor(count) as pool:
        return Counter(
            status for seen in [pool.submit(start) for _ in range(count)] for status in seen.result()
        )


def test_ten_wrong_passwords_at_once_are_three_guesses(app: Flask, limiter: VenueLimit) -> None:
    """All ten are in before the first is out: three reach the view, seven get 429."""
    out, inside = threading.Event(), []

    @app.get("/login")
    @limiter.failures(FixedWindow(3, 60), name="failed-logins")
    def login() -> tuple[str, int]:
        inside.append(1)
        out.wait(20)
        return "wrong", 401

    with run_app(app) as address, ThreadPoolExecutor(10) as pool:
        guesses = [pool.submit(get, address, "/login") for _ in range(10)]
        wait_until(lambda: sum(guess.done() for guess in guesses) == 7, what="seven are refused")
        assert len(inside) == 3
        out.set()
        assert Counter(guess.result()[0] for guess in guesses) == {401: 3, 429: 7}


@pytest.mark.parametrize(
    "policy", [FixedWindow(20, 60), SlidingWindow(20, 60), TokenBucket(20, 1), ["20/minute", "30/hour"]]
)
def test_eight_threads_get_exactly_the_limit(app: Flask, limiter: VenueLimit, policy: Any) -> None:
    """Eighty requests at once, twenty allowed: twenty pass, not one more or less."""
    app.add_url_rule("/", "home", limiter.limit(policy, key=by_ip)(lambda: "ok"))
    with run_app(app) as address:
        assert at_once(8, lambda: get(address, "/", 10)) == {200: 20, 429: 60}


def test_all_or_none_holds_under_threads(app: Flask, limiter: VenueLimit) -> None:
    """What one of two limits refuses is never charged to the other, whoever interleaves."""
    wide = limiter.limit("100/minute", name="wide", key=by_ip)
    narrow = limiter.limit("20/minute", name="narrow", key=by_ip)
    app.add_url_rule("/", "home", wide(narrow(lambda: "ok")))
    seen = at_once(8, lambda: statuses(caller(app), "/", 10))
    assert seen == {200: 20, 429: 60}
    assert wide.peek(subject="198.51.100.7").remaining == 80


def test_successes_at_once_leave_a_failure_limit_full(app: Flask, limiter: VenueLimit) -> None:
    """Every charge is given back once, whoever interleaves."""
    limit = limiter.failures("100/minute", name="f")
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert at_once(8, lambda: statuses(caller(app), "/", 10)) == {200: 80}
    assert limit.peek(subject="198.51.100.7").remaining == 100


def test_one_decision_is_refunded_once_by_many(app: Flask, limiter: VenueLimit) -> None:
    """Eight threads that refund one decision give one charge back."""
    limit = limiter.limit("9/minute", name="it", key=by_ip)
    decision, *_ = [limit.hit(subject="198.51.100.7") for _ in range(5)]

    def refund() -> list[int]:
        limit.refund(decision)
        return []

    at_once(8, refund)
    assert limit.peek(subject="198.51.100.7").remaining == 5


def test_first_requests_at_once_are_warned_about_once(
    app: Flask, limiter: VenueLimit, warnings: list[str]
) -> None:
    """A race at the start of a threaded server does not repeat what is said once."""
    limiter.limit("5/minute", name="forgotten")
    at_once(8, lambda: statuses(caller(app), "/", 2))
    assert len(warnings) == 1


class Slow:
    """A view that, while it is worked out what covers it, waits until it is told to go on."""

    def __init__(self) -> None:
        self.looks, self.looked, self.go_on = 0, threading.Event(), threading.Event()

    def __call__(self) -> str:
        """Answer."""
        return "ok"

    @property
    def __wrapped__(self) -> None:
        """Nothing, but the second look, after the limits of the whole app are known, takes its time."""
        self.looks += 1
        if self.looks == 2:
            self.looked.set()
            assert self.go_on.wait(20)


def test_a_limit_that_is_declared_while_it_is_worked_out_what_covers_a_view_holds(
    app: Flask, limiter: VenueLimit
) -> None:
    """What was worked out without it, for a request of before, is not kept."""
    view = Slow()
    app.add_url_rule("/", "home", view)
    with ThreadPoolExecutor(1) as pool:
        earlier = pool.submit(statuses, caller(app), "/", 1)
        assert view.looked.wait(20)
        limiter.limit(FixedWindow(1, 60), name="late", key=by_ip).everywhere()
        assert statuses(caller(app), "/elsewhere", 2) == [404, 429]
        view.go_on.set()
        assert earlier.result(20) == [200]
    assert statuses(caller(app), "/", 1) == [429]

"""Limit state under fifty requests at once: each response shows what its own deciding step left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPMessage
from typing import Any
from urllib.parse import urlsplit

import http_sf
import pytest
from flask import Flask

from flask_venuelimit import (
    Concurrency,
    FixedWindow,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
    VenueLimit,
    by_ip,
)
from tests.acceptance.callers import caller
from tests.servers import run_app

MANY = 50
AWKWARD = ['the "big" one', "back\\slash", 'both \\" of them', "a;b=1, c", "(it)", "\\"]


def at_once(app: Flask, path: str = "/") -> list[HTTPMessage]:
    """The header fields of fifty responses over fifty connections to a real server, sent together."""
    together = threading.Barrier(MANY)

    def ask() -> HTTPMessage:
        connection = HTTPConnection(urlsplit(address).netloc, timeout=30)
        connection.connect()
        together.wait(30)
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.headers

    with run_app(app) as address, ThreadPoolExecutor(MANY) as pool:
        return [asked.result() for asked in [pool.submit(ask) for _ in range(MANY)]]


def structured(fields: Any, name: str, kind: str = "list") -> Any:
    """A header field as an RFC 9651 parser reads it."""
    parsed: Any = http_sf.parse(fields[name].encode(), tltype=kind)
    return {item: dict(parameters) for item, parameters in parsed} if kind == "list" else parsed[0]


def remaining(answers: list[HTTPMessage], limit: str) -> list[int]:
    """What each response shows as left of a limit, in order of size."""
    return sorted(structured(each, "RateLimit")[limit]["r"] for each in answers)


@pytest.mark.parametrize(
    "policy",
    [FixedWindow(60, 60), SlidingWindow(60, 60), SlidingLog(60, 60), TokenBucket(60, rate=1, per=60)],
    ids=repr,
)
def test_fifty_at_once_each_show_a_number_of_their_own(app: Flask, limiter: VenueLimit, policy: Any) -> None:
    """59 down to 10, none twice, in both dialects: nobody asks the storage again for a header field."""
    app.add_url_rule("/", "home", limiter.limit(policy, name="it", key=by_ip)(lambda: "ok"))
    answers = at_once(app)
    assert remaining(answers, "it") == list(range(10, 60))
    for each in answers:
        assert structured(each, "RateLimit-Remaining", "item") == structured(each, "RateLimit")["it"]["r"]


def test_refused_ones_among_them_show_no_room(app: Flask, limiter: VenueLimit) -> None:
    """Twenty pass with 19 to 0 left; thirty are refused, with the hint as their time."""
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(20, 60), name="it", key=by_ip)(lambda: "ok"))
    answers = at_once(app)
    assert remaining(answers, "it") == [0] * 30 + list(range(20))
    refused = [each for each in answers if each["Retry-After"]]
    assert [structured(each, "RateLimit")["it"]["t"] for each in refused] == [60] * 30
    assert [each["RateLimit-Reset"] for each in refused] == [each["Retry-After"] for each in refused]


def test_charges_that_come_back_show_as_back_each_from_its_own_record(
    app: Flask, limiter: VenueLimit
) -> None:
    """All fifty are charged before the first is given back: 10 to 59 left in storage, 11 to 60 shown."""
    inside = threading.Barrier(MANY)
    limit = limiter.failures(FixedWindow(60, 60), name="it")
    app.add_url_rule("/", "home", limit(lambda: str(inside.wait(30))))
    assert remaining(at_once(app), "it") == list(range(11, 61))
    assert limit.peek(subject="127.0.0.1").remaining == 60


def test_several_limits_of_one_step_are_told_of_one_moment(app: Flask, limiter: VenueLimit) -> None:
    """Two limits of one point move together, and no response mixes two moments."""
    wide = limiter.limit(FixedWindow(90, 60), name="wide", key=by_ip)
    app.add_url_rule(
        "/", "home", wide(limiter.limit(FixedWindow(60, 60), name="narrow", key=by_ip)(lambda: "ok"))
    )
    shown = [structured(each, "RateLimit") for each in at_once(app)]
    assert {each["wide"]["r"] - each["narrow"]["r"] for each in shown} == {30}
    assert sorted(each["narrow"]["r"] for each in shown) == list(range(10, 60))


def test_slots_taken_at_once_are_each_counted(app: Flask, limiter: VenueLimit) -> None:
    """Fifty under way at once leave 49 to 0, and the unit says what is counted."""
    inside = threading.Barrier(MANY)
    limit = limiter.limit(Concurrency(MANY), name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: str(inside.wait(30))))
    answers = at_once(app)
    assert remaining(answers, "it") == list(range(MANY))
    assert structured(answers[0], "RateLimit-Policy") == {"it": {"q": MANY, "qu": "concurrent-requests"}}


@pytest.mark.parametrize("name", AWKWARD)
def test_a_name_of_quotes_and_backslashes_arrives_as_it_is(
    app: Flask, limiter: VenueLimit, name: str
) -> None:
    """Both lists parse, beside another limit, admitted and refused, and JSON says the same name."""
    view = limiter.limit(FixedWindow(1, 60), name=name, key=by_ip)(lambda: "ok")
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="plain", key=by_ip)(view))
    admitted, refused = (caller(app).get("/") for _ in range(2))
    for answer in (admitted, refused):
        assert set(structured(answer.headers, "RateLimit")) == {name, "plain"}
        assert set(structured(answer.headers, "RateLimit-Policy")) == {name, "plain"}
    assert refused.get_json()["violated-policies"] == [name]


@pytest.mark.parametrize("point", ["admitted", "refused", "given back"])
def test_every_field_of_each_dialect_is_a_structured_field(
    app: Flask, limiter: VenueLimit, point: str
) -> None:
    """Lists for the draft, integers for the trio, whatever was decided."""
    make: Callable[..., Any] = limiter.failures if point == "given back" else limiter.limit
    quota = 0 if point == "refused" else 5
    limit = make([FixedWindow(quota, 0.5), FixedWindow(quota, 3600)], name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    fields = caller(app).get("/").headers
    assert structured(fields, "RateLimit-Policy")["it"]["q"] == quota
    assert structured(fields, "RateLimit")["it"]["r"] == {"admitted": 4, "refused": 0, "given back": 5}[point]
    assert structured(fields, "RateLimit-Limit", "item") == quota

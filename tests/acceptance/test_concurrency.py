"""``Concurrency``: a slot is held until the answer is out, whatever sort of answer it is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask, Response, send_file
from werkzeug.test import EnvironBuilder

from flask_venuelimit import Concurrency, Limit, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, left, statuses
from tests.acceptance.decorators import known_late
from tests.acceptance.streams import ANSWERS, STREAMS, add_answers, add_stream, chunks, started
from tests.servers import run_app, wait_until


@pytest.fixture
def one(app: Flask, limiter: VenueLimit, tmp_path: Path) -> Limit:
    """One request at a time of every sort of answer, ``/plain``, ``/generator``, ``/file`` and so on."""
    limit = limiter.limit(Concurrency(1), name="slots", key=by_ip)
    add_answers(app, limit, tmp_path)
    return limit


# -- held and given back -------------------------------------------------------------------------


@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_slot_is_held_while_the_view_runs(app: Flask, limiter: VenueLimit, key: Any) -> None:
    """A second request meanwhile is refused; afterwards there is room again."""
    limit = limiter.limit(Concurrency(1), name="slots", key=key)
    app.add_url_rule("/inner", "inner", limit(lambda: "ok"))
    app.add_url_rule("/", "home", limit(lambda: str(statuses(caller(app), "/inner", 2))))
    assert caller(app).get("/").text == "[429, 429]"
    assert statuses(caller(app), "/inner", 2) == [200, 200]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", [*ANSWERS, *STREAMS])
def test_every_sort_of_answer_gives_its_slot_back(app: Flask, one: Limit, path: str, method: str) -> None:
    """Three in turn pass, of one at a time, and the slot is free after the last."""
    seen = statuses(caller(app), f"/{path}", 3, method=method, buffered=True)
    assert (seen, left(one)) == ([ANSWERS.get(path, 200)] * 3, 1)


@pytest.mark.parametrize("path", ANSWERS)
def test_a_plain_answer_gives_it_back_before_its_body_is_read(app: Flask, one: Limit, path: str) -> None:
    """At teardown: whoever reads slowly, or never, holds nothing."""
    answer = caller(app).get(f"/{path}")
    assert (answer.status_code, left(one)) == (ANSWERS[path], 1)
    answer.close()


# not where Flask keeps the context until the generator is closed
@pytest.mark.parametrize("path", [path for path in STREAMS if path != "context"])
def test_what_has_no_body_holds_nothing(app: Flask, one: Limit, path: str) -> None:
    """HEAD, and a file that has not changed: free before anybody looks for an end that never comes."""
    answers = [caller(app).head(f"/{path}") for _ in range(3)]
    unchanged = {"If-None-Match": answers[0].headers.get("ETag", "")}
    if unchanged["If-None-Match"]:
        answers += [caller(app).get(f"/{path}", headers=unchanged) for _ in range(3)]
    assert [answer.status_code for answer in answers] == ([200] * 3 + [304] * 3)[: len(answers)]
    assert left(one) == 1
    for answer in answers:
        answer.close()


def test_the_last_byte_gives_the_slot_back(app: Flask, one: Limit, tmp_path: Path) -> None:
    """Where the length is known: a small file that was read whole holds nothing until it is closed."""
    (tmp_path / "small.txt").write_text("x" * 100)
    app.add_url_rule("/small", "small", one(lambda: send_file(tmp_path / "small.txt")))
    answer = caller(app).get("/small")
    assert (answer.content_length, left(one)) == (100, 1)
    answer.close()


@pytest.mark.parametrize("path", STREAMS)
def test_a_streamed_answer_holds_its_slot_between_two_chunks(app: Flask, one: Limit, path: str) -> None:
    """A second request is refused while chunks remain, and passes after the last."""
    answer = started(app, path)
    body = chunks(answer)
    assert len(next(body)) > 0
    assert statuses(caller(app), "/plain", 2) == [429, 429]
    assert len(b"".join(body)) > 0
    assert statuses(caller(app), "/plain", 2) == [200, 200]
    answer.close()
    assert left(one) == 1


@pytest.mark.parametrize("path", STREAMS)
def test_a_caller_who_leaves_gives_the_slot_back(app: Flask, one: Limit, path: str) -> None:
    """A server closes the body of a response that nobody reads to its end (PEP 3333)."""
    answer = started(app, path)
    assert left(one) == 0
    answer.close()
    assert left(one) == 1
    assert statuses(caller(app), "/plain", 2) == [200, 200]


@pytest.mark.parametrize("path", STREAMS)
def test_a_body_that_nobody_begins_gives_it_back(app: Flask, one: Limit, path: str) -> None:
    """Closed before the first chunk, as where the caller is gone by then."""
    environ = EnvironBuilder(f"/{path}", environ_base={"REMOTE_ADDR": C}).get_environ()
    body: Any = app.wsgi_app(environ, lambda *_: lambda _: None)
    assert left(one) == 0
    body.close()
    assert left(one) == 1


def test_a_body_that_breaks_off_gives_it_back(app: Flask, one: Limit) -> None:
    """An exception after the first chunk ends the request, and its slot."""
    add_stream(app, one, None, lambda: 1 // 0)
    answer = started(app, "stream")
    assert left(one) == 0
    with pytest.raises(ZeroDivisionError):
        b"".join(chunks(answer))
    assert left(one) == 1
    answer.close()


def test_a_body_that_breaks_at_once_gives_it_back(app: Flask, one: Limit) -> None:
    """The same before anything was sent."""
    add_stream(app, one, lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        caller(app).get("/stream")
    assert left(one) == 1


@pytest.mark.parametrize("testing", [True, False])
def test_a_view_that_raises_gives_it_back(app: Flask, one: Limit, testing: bool) -> None:
    """Whether Flask answers 500 or lets the exception out."""
    app.testing = testing
    app.add_url_rule("/crash", "crash", one(lambda: str(1 // 0)))
    if testing:
        with pytest.raises(ZeroDivisionError):
            caller(app).get("/crash")
    else:
        assert statuses(caller(app), "/crash", 3) == [500] * 3
    assert left(one) == 1


@pytest.mark.parametrize("hook", ["before", "after"])
def test_a_hook_that_raises_gives_it_back(app: Flask, one: Limit, hook: str) -> None:
    """Of an app's own hooks none stands in the way."""

    def fail(*_: Any) -> Any:
        raise LookupError

    (app.before_request if hook == "before" else app.after_request)(fail)
    assert statuses(caller(app), "/plain", 2) + statuses(caller(app), "/generator", 2) == [500] * 4
    assert left(one) == 1


def test_a_hook_that_answers_gives_it_back(app: Flask, one: Limit) -> None:
    """An auth gate in front of the view: the slot of a FRONT limit was taken, and is free again."""
    app.before_request(lambda: ("who are you?", 401))
    assert statuses(caller(app), "/plain", 3) == [401] * 3
    assert left(one) == 1


def test_a_hook_that_replaces_the_stream_gives_it_back(app: Flask, one: Limit) -> None:
    """What is sent in the end tells when the slot is free: here a plain answer."""
    app.after_request(lambda response: Response("instead"))
    assert caller(app).get("/generator").text == "instead"
    assert left(one) == 1


def test_a_hook_that_wraps_the_stream_keeps_it_held(app: Flask, one: Limit) -> None:
    """An app that puts its own generator around the body streams as before."""

    @app.after_request
    def wrap(response: Response) -> Response:
        inner: Any = response.response
        response.response = (chunk for chunk in inner)
        return response

    answer = started(app, "generator")
    assert left(one) == 0
    answer.close()
    assert left(one) == 1


def test_who_is_refused_later_gives_it_back(app: Flask, limiter: VenueLimit, one: Limit) -> None:
    """A slot of the front is not kept by a request that the decorator refuses."""
    view = limiter.limit("0/minute", name="closed", key=known_late)
    app.add_url_rule("/", "home", one(view(lambda: "ok")))
    assert statuses(caller(app), "/", 3) == [429] * 3
    assert left(one) == 1


def test_an_async_view_holds_and_gives_back(app: Flask, one: Limit) -> None:
    """A coroutine view is a view."""

    async def home() -> str:
        return str(left(one))

    app.add_url_rule("/", "home", one(home))
    assert [caller(app).get("/").text for _ in range(2)] == ["0", "0"]
    assert left(one) == 1


def test_a_client_that_keeps_its_context_holds_nothing_over(app: Flask, one: Limit) -> None:
    """In a test's ``with client:`` a request ends when the next one begins."""
    with caller(app) as client:
        assert statuses(client, "/plain", 3) == [200] * 3
    assert left(one) == 1


def test_static_files_take_no_slot(app: Flask, limiter: VenueLimit, tmp_path: Path) -> None:
    """Assets are exempt from the start: a page with ten of them is one request."""
    (tmp_path / "app.js").write_text("1" * 20_000)
    app.static_folder = str(tmp_path)
    app.add_url_rule("/static/<path:filename>", "static", app.send_static_file)
    limit = limiter.limit(Concurrency(1), name="slots", key=by_ip).everywhere()
    answer = started(app, "static/app.js")
    assert (answer.status_code, left(limit)) == (200, 1)
    answer.close()


@pytest.mark.parametrize("path", STREAMS)
def test_a_refund_leaves_the_slot_to_the_body(
    app: Flask, limiter: VenueLimit, tmp_path: Path, path: str
) -> None:
    """One at a time and three failures a minute, as one limit: a success is given back, not yet its slot."""
    limit = limiter.failures([Concurrency(1), "3/minute"], name="both")
    add_answers(app, limit, tmp_path)
    answer = started(app, path)
    assert statuses(caller(app), "/plain", 2) == [429, 429]
    answer.close()
    assert statuses(caller(app), "/plain", 5) == [200] * 5


# -- given back once -----------------------------------------------------------------------------


@pytest.mark.parametrize("path", STREAMS)
def test_a_slot_is_given_back_once(app: Flask, limiter: VenueLimit, tmp_path: Path, path: str) -> None:
    """Ended, closed and closed again: the other slot stays with whoever holds it."""
    two = limiter.limit(Concurrency(2), name="two", key=by_ip)
    add_answers(app, two, tmp_path)
    other, answer = started(app, path), started(app, path)
    assert left(two) == 0
    b"".join(chunks(answer))
    answer.close()
    answer.close()
    assert left(two) == 1
    other.close()
    assert left(two) == 2


# -- over a real server --------------------------------------------------------------------------


def test_a_caller_who_hangs_up_gives_the_slot_back(app: Flask, limiter: VenueLimit) -> None:
    """The connection is cut in the middle of a body without end: the server notices, and closes it."""
    limit = limiter.limit(Concurrency(1), name="slots", key=by_ip)

    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    app.add_url_rule("/", "home", limit(lambda: Response(endless())))
    with run_app(app) as address, socket.create_connection(urlsplit(address).netloc.split(":")) as caller:  # type: ignore[arg-type]
        caller.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert caller.recv(9) == b"HTTP/1.1 "
        assert limit.peek(subject="127.0.0.1").remaining == 0
        caller.close()
        wait_until(lambda: limit.peek(subject="127.0.0.1").remaining == 1, what="the slot is free")


def test_of_eight_at_once_three_are_inside(app: Flask, limiter: VenueLimit) -> None:
    """Five are refused while three are at work, and all three slots are free afterwards."""
    limit = limiter.limit(Concurrency(3), name="slots", key=by_ip)
    inside, out = [], Event()

    @app.get("/")
    @limit
    def home() -> str:
        inside.append(1)
        out.wait(20)
        return "ok"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(statuses, caller(app), "/", 1) for _ in range(8)]
        wait_until(lambda: len(inside) == 3, what="three are inside")
        wait_until(lambda: sum(each.done() for each in asked) == 5, what="five are refused")
        assert (len(inside), left(limit)) == (3, 0)
        out.set()
        assert sorted(each.result()[0] for each in asked) == [200] * 3 + [429] * 5
    assert left(limit) == 3

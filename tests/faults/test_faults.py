"""Whatever goes wrong with the server, at whichever step: no 500, one line, nothing charged twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import click
from flask import Flask

from flask_venuelimit import Concurrency, FixedWindow, Limit, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import NAVIGATING, A, C, caller, statuses
from tests.commands.terminal import typed
from tests.faults.faults import Fault, Site


def test_requests_pass_uncounted_and_it_is_told_once(
    app: Flask,
    limit: Limit,
    site: Site,
    fault: Fault,
    told: list[str],
    logged: Callable[[], list[int]],
    counts_again: Callable[[], None],
) -> None:
    """One line and one signal when it begins, one when it has ended; no request is refused or fails."""
    assert "RateLimit" in caller(app).get("/").headers
    fault.begin(site)
    answers = [caller(app).get("/") for _ in range(20)]
    assert {(answer.status_code, "RateLimit" in answer.headers) for answer in answers} == {(200, False)}
    assert (told, logged()) == (["failed"], [logging.ERROR])
    fault.end(site)
    counts_again()
    assert (told, logged()) == (["failed", "recovered"], [logging.ERROR, logging.WARNING])


def test_nothing_is_charged_twice(
    app: Flask, limit: Limit, site: Site, fault: Fault, counts_again: Callable[[], None]
) -> None:
    """Whether the server has counted the request whose answer it owes is unknown; it is never two."""
    limit.peek(subject=C)
    fault.begin(site)
    statuses(caller(app, A), "/", 5)
    fault.end(site)
    counts_again()
    assert limit.peek(subject=A).remaining >= 999


def test_a_refund_or_a_probe_that_fails_changes_no_answer(
    app: Flask,
    limiter: VenueLimit,
    limit: Limit,
    site: Site,
    fault: Fault,
    clock: ManualClock,
    counts_again: Callable[[], None],
) -> None:
    """It begins within a request, and every later one finds out for itself that it goes on."""
    failures = limiter.failures(FixedWindow(9, per=9999), name="f")
    app.add_url_rule("/begin", "begin", failures(lambda: str(fault.begin(site))))
    app.add_url_rule("/fails", "fails", failures(lambda: ("", 401)))
    assert statuses(caller(app), "/begin", 1) == [200]
    for _ in range(2):
        clock.advance(30)
        assert [*statuses(caller(app), "/", 1), *statuses(caller(app), "/fails", 1)] == [200, 401]
    fault.end(site)
    counts_again()
    statuses(caller(app), "/fails", 1)
    assert 5 <= failures.peek(subject=C).remaining <= 8


def test_a_body_is_streamed_to_its_end(
    app: Flask,
    limiter: VenueLimit,
    limit: Limit,
    site: Site,
    fault: Fault,
    clock: ManualClock,
    counts_again: Callable[[], None],
) -> None:
    """The lease cannot be renewed nor the slot given back; both wait for nobody, and the slot lapses."""
    slots = limiter.limit(Concurrency(2, lease=20), name="slots", key=by_ip)

    def body() -> Iterator[bytes]:
        yield b"one"
        fault.begin(site)
        for _ in range(2):
            clock.advance(10)
            yield b"more"

    app.add_url_rule("/stream", "stream", slots(body))
    assert caller(app).get("/stream").data == b"onemoremore"
    fault.end(site)
    counts_again()
    assert [slots.hit(subject=C).allowed for _ in range(3)] == [True, True, False]


def test_a_limit_that_denies_says_when_to_come_back(
    app: Flask, limiter: VenueLimit, limit: Limit, site: Site, fault: Fault
) -> None:
    """503, to programs and to people, and the limit page goes on being shown."""
    strict = limiter.limit(FixedWindow(1, per=60), name="strict", key=by_ip, on_error="deny")
    app.add_url_rule("/strict", "strict", strict(lambda: "ok"))
    page = [caller(app).get("/strict", headers=NAVIGATING) for _ in range(2)][1].location
    fault.begin(site)
    limit.hit(subject=C)
    answer = caller(app, A).get("/strict")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.get_json()["error"] == "limiter_unavailable"
    assert caller(app, A).get("/strict", headers=NAVIGATING).mimetype == "text/html"
    assert caller(app).get(page).status_code == 429


def test_the_command_line_says_what_it_cannot_know(
    app: Flask, limit: Limit, site: Site, fault: Fault, counts_again: Callable[[], None]
) -> None:
    """No traceback: what could not be told is told as such, with an exit code, until the server is back."""
    limit.hit(subject=C)
    fault.begin(site)
    seen = typed(app, "status", "--ip", C)
    assert (seen.code, seen.lines[1]) == _read(fault.looks, "it 999 of 1000 left all of it in 60 s")
    emptied = typed(app, "reset", "--ip", C)
    assert (emptied.code, emptied.lines[1]) == _read(fault.forgets, "it 1000 of 1000 left")
    fault.end(site)
    counts_again()
    assert typed(app, "status", "--ip", A).lines[1:] == ["it 1000 of 1000 left"]


def _read(answered: bool, line: str) -> tuple[int, str]:
    """How a command ends, and what it says of the limit."""
    return (0, line) if answered else (1, "it unknown storage could not tell")


def test_a_command_of_the_apps_own_ends_as_it_would(
    app: Flask, limit: Limit, site: Site, fault: Fault
) -> None:
    """Out of any request, what is asked by hand raises nothing."""

    @app.cli.command("clean-up")
    def clean_up() -> None:
        with limit.guard(subject=C) as decision:
            limit.reset(C)
        limit.refund(decision)
        click.echo("done")

    fault.begin(site)
    result = app.test_cli_runner().invoke(args=["clean-up"])
    assert (result.exit_code, result.exception) == (0, None)
    assert result.output.endswith("done\n")


def test_by_hand_nothing_raises(limit: Limit, site: Site, fault: Fault) -> None:
    """Hit, peek, refund, reset and guard, first of all and after all."""
    charged = [limit.hit(subject=C) for _ in range(2)]
    fault.begin(site)
    limit.refund(charged[0])
    limit.refund(charged[1])
    limit.reset(C)
    decisions = [limit.hit(subject=C), limit.peek(subject=C)]
    with limit.guard(subject=C) as guarded:
        decisions.append(guarded)
    assert [(each.allowed, each.remaining, each.retry_after) for each in decisions] == [(True, 1000, 0.0)] * 3

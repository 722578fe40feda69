"""Refusals in the log: the first of a key and window, then how many more there were."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from flask import Flask

from flask_venuelimit import (
    Concurrency,
    FixedWindow,
    Limit,
    LimiterUnavailable,
    RateLimited,
    SlidingWindow,
    VenueLimit,
    by_ip,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, statuses

Lines = Callable[[], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    """What is said at INFO, since it was last asked; a digest is shown as eight x."""
    caplog.set_level(logging.INFO, "flask_venuelimit")

    def lines() -> list[str]:
        said = [record for record in caplog.records if record.levelno == logging.INFO]
        caplog.clear()
        digests = {word.rstrip(":").partition(":")[2] for each in said for word in each.getMessage().split()}
        texts = [each.getMessage() for each in said]
        for digest in digests - {""}:
            assert len(digest) == 8
            texts = [text.replace(digest, "x" * 8) for text in texts]
        return texts

    return lines


def test_the_first_refusal_says_who_and_for_how_long(
    app: Flask, closed: Limit, lines: Lines, clock: ManualClock
) -> None:
    """The limit, the subject by its kind and eight characters, what is left of how much, and the wait."""
    caller(app).get("/")
    clock.advance(47.5)
    caller(app).get("/")
    assert lines() == ["limit 'everything' refused ip:xxxxxxxx: 0 of 1 per 60 s left, retry after 13 s"]


def test_what_is_admitted_is_not_told(app: Flask, closed: Limit, lines: Lines) -> None:
    """The log is about refusals."""
    assert (statuses(caller(app), "/", 1), lines()) == ([200], [])


def test_further_refusals_only_count(app: Flask, closed: Limit, lines: Lines, clock: ManualClock) -> None:
    """They are summed up at the first refusal after the window, which begins the next one."""
    statuses(caller(app), "/", 43)
    assert len(lines()) == 1
    clock.advance(60)
    assert statuses(caller(app), "/", 2) == [200, 429]
    assert lines() == [
        "limit 'everything' refused ip:xxxxxxxx 41 more times in 60 s",
        "limit 'everything' refused ip:xxxxxxxx: 0 of 1 per 60 s left, retry after 60 s",
    ]


def test_a_single_refusal_needs_no_summary(
    app: Flask, closed: Limit, lines: Lines, clock: ManualClock
) -> None:
    """Where there were no more, no more is said."""
    for _ in range(2):
        statuses(caller(app), "/", 2)
        clock.advance(60)
    assert [line.partition(": ")[1:] for line in lines()] == [
        (": ", "0 of 1 per 60 s left, retry after 60 s")
    ] * 2


def test_each_subject_has_its_first_line(app: Flask, closed: Limit, lines: Lines) -> None:
    """A flood of one does not hide another."""
    statuses(caller(app), "/", 5)
    statuses(caller(app, A), "/", 2)
    assert len(lines()) == 2


def test_each_limit_has_its_first_line(app: Flask, limiter: VenueLimit, lines: Lines) -> None:
    """One who runs into two limits is told of for both."""
    for name in ("one", "two"):
        limit = limiter.limit("1/minute", name=name, key=by_ip)
        app.add_url_rule(f"/{name}", name, limit(lambda: "ok"))
    for _ in range(4):
        statuses(caller(app), "/one", 1)
        statuses(caller(app), "/two", 1)
    assert [line.split()[1] for line in lines()] == ["'one'", "'two'"]


def test_somebody_s_summary_is_told_at_another_s_refusal(
    app: Flask, closed: Limit, lines: Lines, clock: ManualClock
) -> None:
    """There is no timer: whoever is refused next brings the sums of windows that are over."""
    statuses(caller(app), "/", 3)
    clock.advance(7200)
    statuses(caller(app, A), "/", 2)
    assert [line.partition(" ip:xxxxxxxx")[2] for line in lines()] == [
        ": 0 of 1 per 60 s left, retry after 60 s",
        " 1 more time in 60 s",
        ": 0 of 1 per 60 s left, retry after 60 s",
    ]


def test_a_shadow_limit_would_have_refused(
    app: Flask, limiter: VenueLimit, lines: Lines, clock: ManualClock
) -> None:
    """Both lines say that nobody was refused."""
    limiter.limit(FixedWindow(1, 60), name="watched", key=by_ip, shadow=True).everywhere()
    statuses(caller(app), "/", 3)
    clock.advance(61)
    statuses(caller(app), "/", 2)
    assert [line.partition(" ip:")[0] for line in lines()] == ["limit 'watched' would have refused"] * 3


def test_nothing_a_client_sends_is_in_a_line(app: Flask, limiter: VenueLimit, lines: Lines) -> None:
    """Neither a path nor a method nor a header; an endpoint's own odd characters are percent-encoded."""
    limit = limiter.limit("1/minute", key=by_ip)
    app.add_url_rule("/<path:where>", "any\nwhere", limit(lambda where: where), methods=["GET", "PUT"])
    for path in ("/forged%0D/line", "/forged/?line=forged"):
        caller(app).get(path, headers={"X-Forwarded-For": "forged", "Authorization": "Bearer forged"})
    (line,) = lines()
    assert line.startswith("limit 'any%0Awhere' refused ip:xxxxxxxx: ")
    assert not {"forged", "\n", "GET"} & {line, *line.split()}


def test_a_limit_that_is_closed_says_that_no_wait_helps(
    app: Flask, limiter: VenueLimit, lines: Lines
) -> None:
    """As its answer does, which has no Retry-After."""
    limiter.limit(SlidingWindow(0, 0.5), name="closed", key=by_ip).everywhere()
    caller(app).get("/")
    assert lines() == ["limit 'closed' refused ip:xxxxxxxx: 0 of 0 per 0.5 s left, no wait helps"]


def test_windows_under_a_second_are_summed_up_each_second(
    app: Flask, limiter: VenueLimit, lines: Lines, clock: ManualClock
) -> None:
    """A line each millisecond would be a flood of its own."""
    limiter.limit(FixedWindow(0, 0.001), name="closed", key=by_ip).everywhere()
    for _ in range(8):
        caller(app).get("/")
        clock.advance(0.25)
    assert [line.partition(" ip:xxxxxxxx")[2] for line in lines()] == [
        ": 0 of 0 per 0.001 s left, no wait helps",
        " 3 more times in 1 s",
        ": 0 of 0 per 0.001 s left, no wait helps",
    ]


def test_what_has_no_window_is_summed_up_each_minute(
    app: Flask, limiter: VenueLimit, lines: Lines, clock: ManualClock
) -> None:
    """A Concurrency limit refuses by hand too, where it is asked to raise."""
    slots = limiter.limit(Concurrency(0), name="slots", key=by_ip)
    for seconds in (0, 59, 1):
        clock.advance(seconds)
        with app.app_context(), pytest.raises(RateLimited), slots.guard(subject=C):
            pass
    assert lines() == [
        "limit 'slots' refused ip:xxxxxxxx: 0 of 0 at once left, no wait helps",
        "limit 'slots' refused ip:xxxxxxxx 1 more time in 60 s",
        "limit 'slots' refused ip:xxxxxxxx: 0 of 0 at once left, no wait helps",
    ]


def test_where_nobody_can_count_the_line_says_so(app: Flask, lines: Lines) -> None:
    """A budget is closed while storage fails, and that is no one's overuse."""
    app.config["VENUELIMIT_STORAGE_URI"] = "redis://localhost:1"
    budget = VenueLimit(app).limit("5/minute", name="checkout", key=by_ip, budget=True)
    with pytest.raises(LimiterUnavailable), budget.guard(subject=C):
        pass
    assert lines() == ["limit 'checkout' refused ip:xxxxxxxx: nobody can count, retry after 1 s"]

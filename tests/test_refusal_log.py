"""The room that keeps the log short: bounded, and right under threads, forks and odd clocks."""

from __future__ import annotations

import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_venuelimit import Decision
from flask_venuelimit.refusal_log import RefusalLog
from flask_venuelimit.testing import ManualClock


def refusal(number: int, window: float = 60.0) -> Decision:
    """What refuses the so-manieth subject."""
    return Decision("it", False, 1, window, 0, 5.0, 5.0, 0.0, f"ip:{number:08}")


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged."""
    caplog.set_level(logging.INFO, "flask_venuelimit")
    return caplog


def summaries(told: pytest.LogCaptureFixture) -> list[tuple[int, int, str]]:
    """Whose further refusals were summed up, how many there were, and in how many seconds."""
    shape = re.compile(r"limit 'it' refused ip:(\d{8}) (\d+) more times? in (\S+) s")
    found = map(shape.fullmatch, told.messages)
    return [(int(match[1]), int(match[2]), match[3]) for match in found if match]


def test_only_so_many_subjects_are_known(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """The one whose window ends first makes room, and what it had is told."""
    log = RefusalLog(clock, most=3)
    for number in (0, 0, 0, 1, 1, 2):
        log.refused(refusal(number))
    clock.advance(12)
    log.refused(refusal(3))
    assert summaries(told) == [(0, 2, "12")]
    assert len(log._runs) == len(log._queue) == 3


def test_a_flood_of_subjects_stays_in_bounds(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """However many come, with whatever windows, and whichever way the clock goes."""
    log = RefusalLog(clock, most=50)
    for number in range(2000):
        clock.advance(-30 if number % 100 == 0 else 1)
        log.refused(refusal(number * 7 % 90, window=1 + number * 13 % 600))
    assert len(log._runs) <= len(log._queue) <= 50


def test_no_refusal_has_to_tell_of_everybody(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """After a flood has ended its sums are told a few at a time, none twice and none left out."""
    log = RefusalLog(clock)
    for number in range(2, 102):
        log.refused(refusal(number))
        log.refused(refusal(number))
    clock.advance(60)
    seen = []
    for _ in range(20):
        before = len(told.messages)
        log.refused(refusal(1))
        seen.append(len(told.messages) - before)
    assert max(seen) <= 9
    assert sorted(summaries(told)) == sorted((number, 1, "60") for number in range(2, 102))


def test_threads_lose_no_refusal(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """What was told and what was summed up is all there was."""
    log = RefusalLog(clock)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: log.refused(refusal(number % 5)), range(4000)))
    assert len(told.messages) == 5
    clock.advance(60)
    log.refused(refusal(9))
    assert sum(further for _, further, _ in summaries(told)) == 4000 - 5


def test_a_clock_that_is_set_back_silences_nobody(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """The window counts as over, and is summed up once."""
    log = RefusalLog(clock)
    clock.advance(5000)
    for _ in range(3):
        log.refused(refusal(1))
    clock.advance(-4000)
    log.refused(refusal(1))
    assert summaries(told) == [(1, 2, "60")]
    clock.advance(4100)
    log.refused(refusal(2))
    assert len(told.messages) == 4


def test_where_info_is_off_nothing_is_kept(clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    """It costs one question, and no memory."""
    caplog.set_level(logging.WARNING, "flask_venuelimit")
    log = RefusalLog(clock)
    log.refused(refusal(1))
    assert (caplog.records, log._runs, log._queue) == ([], {}, [])


def test_a_handler_may_be_refused_itself(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """A line is written with nothing locked: a handler that asks a limit does not wait for itself."""
    log = RefusalLog(clock)

    class Asking(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log.refused(refusal(1))

    handler = Asking()
    logging.getLogger("flask_venuelimit").addHandler(handler)
    log.refused(refusal(1))
    logging.getLogger("flask_venuelimit").removeHandler(handler)
    assert [run.further for run in log._runs.values()] == [1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_begins_anew(clock: ManualClock, told: pytest.LogCaptureFixture) -> None:
    """A lock that another thread held is free there, and the parent's refusals are the parent's to tell."""
    log = RefusalLog(clock)
    log.refused(refusal(1))
    with log._lock:
        child = os.fork()
        if child == 0:
            log.refused(refusal(1))
            os._exit([run.further for run in log._runs.values()] != [0])
    assert os.waitpid(child, 0)[1] == 0

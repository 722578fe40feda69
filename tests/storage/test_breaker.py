"""When a failing store is asked again: after a pause that grows, by one request alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from flask_venuelimit.storage.breaker import LONGEST, Breaker
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import forking, in_child

DOWN = OSError("down")


@pytest.fixture
def breaker(clock: ManualClock) -> Breaker:
    """A breaker on a clock that stands still, whose store has not failed yet."""
    return Breaker(clock)


def fail(breaker: Breaker) -> int:
    """Let one request fail, and give the pause that follows, of which no half second has passed."""
    ticket = breaker.admit()
    assert ticket is not None
    breaker.failed(ticket, DOWN)
    return round(breaker.remaining())


def probe(breaker: Breaker, clock: ManualClock) -> int:
    """Wait the pause out, and take the ticket of the request that probes."""
    clock.advance(LONGEST)
    ticket = breaker.admit()
    assert ticket is not None
    return ticket


def test_everybody_asks_a_store_that_answers(breaker: Breaker) -> None:
    """Closed, it stands in nobody's way."""
    assert all(breaker.admit() is not None for _ in range(10))
    assert (breaker.open, breaker.remaining(), breaker.error) == (False, 0.0, None)


def test_after_a_failure_nobody_asks_for_a_second(breaker: Breaker, clock: ManualClock) -> None:
    """The pause is a second, and then one request may ask."""
    assert fail(breaker) == 1
    clock.advance(0.999)
    assert breaker.admit() is None
    clock.advance(0.001)
    assert breaker.admit() is not None


def test_the_pause_doubles_up_to_thirty_seconds(breaker: Breaker, clock: ManualClock) -> None:
    """Each probe that fails makes the next pause twice as long."""
    pauses = []
    for _ in range(8):
        clock.advance(LONGEST)
        pauses.append(fail(breaker))
    assert pauses == [1, 2, 4, 8, 16, 30, 30, LONGEST]


def test_one_request_probes(breaker: Breaker, clock: ManualClock) -> None:
    """While it is on its way, nobody else asks, however long it takes."""
    fail(breaker)
    probe(breaker, clock)
    clock.advance(3600)
    assert [breaker.admit() for _ in range(5)] == [None] * 5


def test_of_many_threads_one_probes(breaker: Breaker, clock: ManualClock) -> None:
    """Those that arrive at the very end of the pause do not all ask."""
    fail(breaker)
    clock.advance(1)
    gate = threading.Barrier(16)
    with ThreadPoolExecutor(16) as pool:
        tickets = list(pool.map(lambda _: gate.wait() >= 0 and breaker.admit(), range(16)))
    assert sum(ticket is not None for ticket in tickets) == 1


def test_an_answered_probe_lets_everybody_ask(breaker: Breaker, clock: ManualClock) -> None:
    """And the next failure pauses for a second again."""
    for _ in range(3):
        clock.advance(LONGEST)
        fail(breaker)
    breaker.answered(probe(breaker, clock))
    assert (breaker.open, breaker.error, breaker.admit() is not None) == (False, None, True)
    assert fail(breaker) == 1


def test_a_probe_that_tells_nothing_lets_another_one_probe(breaker: Breaker, clock: ManualClock) -> None:
    """A request that is killed while it probes does not keep the store out for good."""
    fail(breaker)
    breaker.abandoned(probe(breaker, clock))
    assert breaker.admit() is not None
    assert breaker.admit() is None


def test_failures_of_one_moment_are_one_failure(breaker: Breaker) -> None:
    """Requests that were on their way when it failed do not make the pause longer."""
    tickets = [breaker.admit() for _ in range(10)]
    for ticket in tickets:
        assert ticket is not None
        breaker.failed(ticket, DOWN)
    assert round(breaker.remaining()) == 1


def test_an_answer_that_was_on_its_way_closes_nothing(breaker: Breaker, clock: ManualClock) -> None:
    """Only the probe says that the store is back; what was asked earlier says nothing of it."""
    slow = breaker.admit()
    assert slow is not None
    fail(breaker)
    breaker.answered(slow)
    assert breaker.open
    probing = probe(breaker, clock)
    breaker.answered(slow)
    assert breaker.open
    breaker.answered(probing)
    assert not breaker.open


def test_a_failure_from_before_an_outage_is_none_after_it(breaker: Breaker, clock: ManualClock) -> None:
    """A request that waited through the whole outage does not begin another one."""
    slow = breaker.admit()
    assert slow is not None
    fail(breaker)
    probing = probe(breaker, clock)
    breaker.failed(slow, DOWN)
    assert breaker.admit() is None
    breaker.answered(probing)
    breaker.failed(slow, DOWN)
    assert not breaker.open


def test_a_clock_that_stands_still_ends_pauses_all_the_same(clock: ManualClock) -> None:
    """The process's own clock counts as well, and a given clock that steps back changes nothing."""
    breaker = Breaker(clock)
    fail(breaker)
    clock.advance(-3600)
    assert 0 < breaker.remaining() <= 1


@forking
def test_a_child_probes_for_itself(breaker: Breaker, clock: ManualClock) -> None:
    """Forked while a thread of the parent probes and holds the lock, a child waits for neither."""
    fail(breaker)
    probe(breaker, clock)
    with breaker.lock, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(in_child, lambda: breaker.open and breaker.admit() is not None)
        assert answer.result(10)

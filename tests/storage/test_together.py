"""All or none across stores that are asked one after the other."""

from __future__ import annotations

import pytest

from flask_venuelimit.decisions import Receipt
from flask_venuelimit.policies import FixedWindow
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.together import Point
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import charge, remaining

TEN, NONE = FixedWindow(10, per=60), FixedWindow(0, per=60)
HIT, FAILURE = charge(TEN, 2, "hit"), charge(TEN, 2, "failure", stays=True)
REFUSED = charge(NONE, key="refused")


@pytest.fixture
def first(clock: ManualClock) -> MemoryStorage:
    """A store that is asked first, and told what is to be given back."""
    return MemoryStorage(clock=clock)


@pytest.fixture
def then(clock: ManualClock) -> MemoryStorage:
    """Another store."""
    return MemoryStorage(clock=clock)


@pytest.fixture
def point(first: MemoryStorage) -> Point:
    """A point that nobody has answered to yet."""
    return Point(first.refund)


def left(store: MemoryStorage) -> list[int]:
    """What remains for hits, and for failures."""
    return [remaining(store, TEN, key) for key in ("hit", "failure")]


def test_what_fits_everywhere_stays_charged(point: Point, first: MemoryStorage, then: MemoryStorage) -> None:
    """The answers are the stores' own, in the order they are asked for."""
    point.ask(first.decide, [HIT])
    point.ask(then.decide, [FAILURE])
    answers = point.answers([FAILURE, HIT])
    assert [(each.charge, each.charged) for each in answers if each] == [(FAILURE, True), (HIT, True)]
    assert (left(first), left(then), point.refused) == ([8, 10], [10, 8], False)


def test_a_refusal_gives_back_what_was_charged_before_it(
    point: Point, first: MemoryStorage, then: MemoryStorage
) -> None:
    """Save failure limits: the refusal is a failure."""
    point.ask(first.decide, [HIT, FAILURE])
    point.ask(then.decide, [REFUSED])
    assert (left(first), point.refused) == ([10, 8], True)


def test_what_was_given_back_reads_as_if_never_charged(
    point: Point, first: MemoryStorage, then: MemoryStorage
) -> None:
    """It still would fit, has its room again, and nothing by which to be given back once more."""
    point.ask(first.decide, [HIT])
    point.ask(then.decide, [REFUSED])
    (told,) = point.answers([HIT])
    assert told is not None
    assert (told.allowed, told.charged, told.redeem()) == (True, False, False)
    assert (told.records[0].remaining, told.records[0].token) == (10, "")


def test_what_was_only_looked_at_reads_as_it_did(
    point: Point, first: MemoryStorage, then: MemoryStorage
) -> None:
    """Nothing is added to the room of what was never charged."""
    first.decide([HIT])
    (looked,) = first.peek([HIT])
    point.add([HIT], [looked])
    point.ask(then.decide, [REFUSED])
    assert (point.answers([HIT]), left(first)) == ([looked], [8, 10])


def test_after_a_refusal_failure_limits_alone_are_charged(
    point: Point, first: MemoryStorage, then: MemoryStorage
) -> None:
    """Nothing else is asked for: nobody has counted it."""
    point.ask(first.decide, [REFUSED])
    point.ask(then.decide, [HIT, FAILURE])
    hit, failure = point.answers([HIT, FAILURE])
    assert (hit, failure is not None and failure.charged, left(then)) == (None, True, [10, 8])


def test_a_store_is_not_asked_for_nothing(point: Point, first: MemoryStorage) -> None:
    """Once the point is refused, one without failure limits is spared the call."""
    point.ask(first.decide, [REFUSED])
    point.ask(lambda charges: pytest.fail(f"asked for {charges}"), [HIT])
    assert point.answers([HIT]) == [None]


def test_a_second_refusal_gives_nothing_back(point: Point, first: MemoryStorage, then: MemoryStorage) -> None:
    """A failure limit that is full changes nothing any more."""
    point.ask(first.decide, [REFUSED])
    point.ask(first.decide, [FAILURE])
    point.ask(then.decide, [charge(NONE, key="full", stays=True)])
    assert left(first) == [10, 8]


def test_a_shadow_limit_refuses_no_point(point: Point, first: MemoryStorage, then: MemoryStorage) -> None:
    """What is charged beside it stays charged."""
    point.ask(first.decide, [HIT])
    point.ask(then.decide, [charge(NONE, key="shadow", binding=False)])
    assert (point.refused, left(first)) == (False, [8, 10])


def test_a_later_answer_takes_the_place_of_an_earlier_one(point: Point, first: MemoryStorage) -> None:
    """As after a look, or where a counter could not be read and nobody counts in its place."""
    point.add([HIT, FAILURE], first.peek([HIT, FAILURE]))
    point.ask(first.decide, [HIT])
    point.add([FAILURE], [None])
    hit, failure = point.answers([HIT, FAILURE])
    assert (hit is not None and hit.charged, failure) == (True, None)


def test_an_abandoned_point_gives_back_everything(
    point: Point, first: MemoryStorage, then: MemoryStorage
) -> None:
    """Failure limits too, whether or not a refusal has given back the others."""
    point.ask(first.decide, [HIT, FAILURE])
    point.abandon()
    point.ask(first.decide, [HIT, FAILURE])
    point.ask(then.decide, [REFUSED])
    point.abandon()
    assert left(first) == [10, 10]


def test_a_refund_that_fails_keeps_none_from_the_others(first: MemoryStorage, then: MemoryStorage) -> None:
    """Whoever then abandons the point gives back what the refusing store has charged as well."""
    tried: list[list[Receipt]] = []

    def refund(receipts: list[Receipt]) -> None:
        tried.append(receipts)
        if len(tried) == 1:
            raise ConnectionError
        then.refund(receipts)

    point = Point(refund)
    point.ask(first.decide, [HIT])
    with pytest.raises(ConnectionError):
        point.ask(then.decide, [REFUSED, FAILURE])
    point.abandon()
    assert left(then) == [10, 10]

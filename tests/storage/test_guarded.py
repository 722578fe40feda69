"""A store whose failures stay where they are: told once, paid for once, never charged twice."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from flask_venuelimit.decisions import Charge, Receipt
from flask_venuelimit.policies import FixedWindow
from flask_venuelimit.storage.guarded import Guarded
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import charge, forking, in_child

FIVE = charge(FixedWindow(5, per=60))
_A = TypeVar("_A")
_T = TypeVar("_T")
STEPS = ["decide", "peek", "refund", "renew", "reset"]


class Moody(MemoryStorage):
    """A store that answers, or fails before or after it has done what it was asked."""

    failures: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.before: BaseException | None = None
        self.after: BaseException | None = None
        self.asked = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def decide(self, charges: Sequence[Charge]) -> list[Receipt]:
        return self._do(super().decide, charges)

    def peek(self, charges: Sequence[Charge]) -> list[Receipt]:
        return self._do(super().peek, charges)

    def refund(self, receipts: Sequence[Receipt]) -> None:
        self._do(super().refund, receipts)

    def renew(self, receipts: Sequence[Receipt]) -> None:
        self._do(super().renew, receipts)

    def reset(self, keys: Sequence[str]) -> None:
        self._do(super().reset, keys)

    def _do(self, call: Callable[[_A], _T], argument: _A) -> _T:
        self.asked += 1
        self.meanwhile()
        if self.before is not None:
            raise self.before
        answer = call(argument)
        if self.after is not None:
            raise self.after
        return answer


@pytest.fixture
def store(clock: ManualClock) -> Moody:
    """A store in a good mood, on a clock that stands still."""
    return Moody(clock)


@pytest.fixture
def told() -> list[object]:
    """What the app was told, in order."""
    return []


def guard(store: Moody, told: list[object]) -> Guarded:
    """Put a guard in front of a store."""

    def recovered() -> None:
        told.append("recovered")

    return Guarded(store, MemoryStorage(clock=store.clock), told.append, recovered, store.clock)


@pytest.fixture
def guarded(store: Moody, told: list[object]) -> Guarded:
    """A guard that writes down what it tells."""
    return guard(store, told)


def step(guarded: Guarded, name: str, receipt: Receipt | None) -> object:
    """Take one of the steps of a request."""
    given: Any = {"decide": [FIVE], "peek": [FIVE], "reset": ["k"]}.get(name, [receipt])
    return getattr(guarded, name)(given)


def charged(guarded: Guarded) -> Receipt:
    """Charge one."""
    (receipt,) = guarded.decide([FIVE])
    assert receipt is not None
    return receipt


def used(store: Moody) -> int:
    """How much is charged in the store, whatever its mood."""
    return 5 - MemoryStorage.peek(store, [FIVE])[0].records[0].remaining


@pytest.mark.parametrize("name", STEPS)
def test_a_failure_raises_at_no_step(guarded: Guarded, store: Moody, told: list[object], name: str) -> None:
    """It is told once; the answer is that nobody counted."""
    receipt = charged(guarded)
    store.before = error = OSError("down")
    assert step(guarded, name, receipt) in (None, [None])
    assert told == [error]


def test_after_a_failure_no_step_asks(guarded: Guarded, store: Moody, told: list[object]) -> None:
    """The wait is paid once: a thousand steps later the store has been asked once."""
    receipt = charged(guarded)
    store.before, store.asked = OSError("down"), 0
    for _ in range(200):
        for name in STEPS:
            step(guarded, name, receipt)
    assert (store.asked, len(told)) == (1, 1)


@pytest.mark.parametrize("name", STEPS)
def test_any_step_notices_the_recovery(
    guarded: Guarded, store: Moody, told: list[object], clock: ManualClock, name: str
) -> None:
    """When the pause is over, whatever is asked next finds out; it is told once."""
    receipt = charged(guarded)
    store.before = error = OSError("down")
    step(guarded, "decide", None)
    store.before = None
    clock.advance(1)
    for _ in range(3):
        step(guarded, name, receipt)
    assert told == [error, "recovered"]


def test_many_threads_are_told_of_one_failure(
    guarded: Guarded, store: Moody, told: list[object], clock: ManualClock
) -> None:
    """All were on their way when it failed, and all see it come back."""
    store.before, gate = OSError("down"), threading.Barrier(16)
    store.meanwhile = gate.wait
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(lambda _: guarded.decide([FIVE]), range(16))) == [[None]] * 16
        store.before, store.meanwhile = None, lambda: None
        clock.advance(1)
        list(pool.map(lambda _: guarded.decide([FIVE]), range(64)))
    assert told == [told[0], "recovered"]


def test_an_answer_that_was_on_its_way_recovers_nothing(
    guarded: Guarded, store: Moody, told: list[object]
) -> None:
    """A request that was asked before the failure and answered after it does not say that all is well."""

    def fail_first() -> None:
        store.meanwhile, store.before = lambda: None, OSError("down")
        guarded.decide([FIVE])
        store.before = None

    store.meanwhile = fail_first
    assert guarded.decide([FIVE]) != [None]
    assert (len(told), guarded.decide([FIVE])) == (1, [None])


def test_apps_that_share_a_store_share_its_breaker(store: Moody, clock: ManualClock) -> None:
    """The second app does not wait for what the first one knows, and each is told for itself."""
    first_told: list[object] = []
    second_told: list[object] = []
    first, second = guard(store, first_told), guard(store, second_told)
    store.before, store.asked = OSError("down"), 0
    answers = [*first.decide([FIVE]), *second.decide([FIVE])]
    assert (answers, store.asked, first_told) == ([None, None], 1, second_told)
    store.before = None
    clock.advance(1)
    second.decide([FIVE])
    first.decide([FIVE])
    assert first_told == second_told == [first_told[0], "recovered"]


def test_a_charge_whose_answer_was_lost_is_not_tried_again(guarded: Guarded, store: Moody) -> None:
    """The store counted it and died: it is one, and nobody gives it back unseen."""
    store.after = OSError("answer lost")
    assert guarded.decide([FIVE]) == [None]
    assert used(store) == 1


def test_a_refund_whose_answer_was_lost_is_not_given_twice(
    guarded: Guarded, store: Moody, clock: ManualClock
) -> None:
    """Two are charged, one is given back however often it is asked for."""
    receipt, _ = charged(guarded), charged(guarded)
    store.after = OSError("answer lost")
    guarded.refund([receipt])
    store.after = None
    clock.advance(1)
    guarded.refund([receipt])
    assert used(store) == 1


def test_a_refund_that_was_not_tried_can_be_later(guarded: Guarded, store: Moody, clock: ManualClock) -> None:
    """While the store is known to be down nothing is asked of it, so nothing is used up."""
    receipt = charged(guarded)
    store.before = OSError("down")
    guarded.decide([FIVE])
    guarded.refund([receipt])
    store.before = None
    clock.advance(1)
    guarded.refund([receipt])
    assert used(store) == 0


def test_what_nobody_counted_is_given_back_nowhere(
    guarded: Guarded, store: Moody, clock: ManualClock
) -> None:
    """Counted here in its place, it is given back here."""
    local = FIVE._replace(on_error="local")
    store.before = OSError("down")
    (here,) = guarded.decide([local])
    assert here is not None
    store.before = None
    clock.advance(1)
    charged(guarded)
    guarded.refund([here])
    assert used(store) == 1


def test_a_mistake_in_the_code_is_no_failure(guarded: Guarded, store: Moody, told: list[object]) -> None:
    """What is none of the store's failures is raised, and nobody is told that the store is down."""
    store.before = TypeError("a bug")
    with pytest.raises(TypeError):
        guarded.decide([FIVE])
    store.before = None
    assert (told, guarded.decide([FIVE]) != [None]) == ([], True)


def test_a_probe_that_is_killed_leaves_room_for_another(
    guarded: Guarded, store: Moody, told: list[object], clock: ManualClock
) -> None:
    """A worker's time-out in the middle of the probe does not keep the store out for good."""
    store.before = OSError("down")
    guarded.decide([FIVE])
    clock.advance(1)
    store.before = SystemExit()
    with pytest.raises(SystemExit):
        guarded.decide([FIVE])
    store.before = None
    assert guarded.decide([FIVE]) != [None]
    assert told[-1] == "recovered"


def test_a_receiver_that_raises_fails_no_request(
    store: Moody, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """An alarm that cannot be sent is logged; the request that noticed goes on."""

    def alarm(*error: object) -> None:
        raise RuntimeError("no network")

    guarded = Guarded(store, MemoryStorage(), alarm, alarm, clock)
    store.before = OSError("down")
    assert guarded.decide([FIVE]) == [None]
    store.before = None
    clock.advance(1)
    assert guarded.decide([FIVE]) != [None]
    assert [record.levelno for record in caplog.records] == [
        logging.ERROR,
        logging.ERROR,
        logging.WARNING,
        logging.ERROR,
    ]


def test_a_failure_keeps_no_request_alive(guarded: Guarded, store: Moody) -> None:
    """What the store failed with is kept for the outage; the request that met it is not."""

    class Body:
        pass

    def request() -> weakref.ref[Body]:
        body = Body()
        guarded.decide([FIVE])
        return weakref.ref(body)

    store.before = OSError("down")
    store.before.__context__ = OSError("a cause")
    body = request()
    store.before = None
    gc.collect()
    assert (guarded.breaker.error is not None, body()) == (True, None)


def test_a_slot_that_is_given_back_by_the_collector_blocks_nobody(guarded: Guarded, store: Moody) -> None:
    """A body may be collected at any moment, even while a thread is noting a failure."""
    receipt = charged(guarded)
    with guarded.breaker.lock:
        store.before = OSError("down")
        guarded.refund([receipt])
    assert guarded.breaker.open


@forking
def test_a_child_of_a_failing_parent_asks_for_itself(guarded: Guarded, store: Moody) -> None:
    """It knows of the failure, waits for no lock of its parent's, and probes once the pause is over."""
    store.before = OSError("down")
    guarded.decide([FIVE])
    clock: Any = store.clock

    def child() -> bool:
        store.before = None
        known = guarded.decide([FIVE]) == [None]
        clock.advance(1)
        return known and guarded.decide([FIVE]) != [None]

    with guarded.breaker.lock, ThreadPoolExecutor(1) as pool:
        assert pool.submit(in_child, child).result(10)

"""A queue tells each request how long to wait for its turn, and refuses who would wait too long."""

from __future__ import annotations

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import FixedWindow, LeakyBucket
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import SECOND, Store, ask, charge, hit, look

#: A turn each half second, waited for up to two.
QUEUE = LeakyBucket(2, max_delay=2)


def test_each_turn_lies_apart_from_the_last(store: Store) -> None:
    """Who comes at once is told 0, 0.5, 1 and so on, up to the longest delay; the next one is refused."""
    delays = [hit(store, QUEUE).delay for _ in range(5)]
    assert delays == [0, 500_000, 1_000_000, 1_500_000, 2_000_000]
    assert hit(store, QUEUE) == (False, 0, 500_000, 2_500_000, 0, "")


def test_a_queue_drains_as_time_passes(store: Store, clock: ManualClock) -> None:
    """The delay is what is left of the queue; once it is empty there is none, and nothing is saved up."""
    for _ in range(3):
        hit(store, QUEUE)
    clock.advance(1.2)
    assert hit(store, QUEUE).delay == 300_000
    clock.advance(60)
    assert [hit(store, QUEUE).delay for _ in range(2)] == [0, 500_000]


def test_the_last_turn_of_a_cost_decides(store: Store) -> None:
    """A cost of 3 takes three turns, and begins at the third."""
    assert hit(store, QUEUE, 3).delay == 1_000_000
    assert hit(store, QUEUE, 2).delay == 2_000_000
    assert hit(store, QUEUE, 3).wait == 1_500_000


def test_a_delay_is_rounded_up_to_a_microsecond(store: Store) -> None:
    """Nobody is called before their turn, and turns stay exact."""
    thirds = LeakyBucket(3, max_delay=1)
    assert [hit(store, thirds).delay for _ in range(4)] == [0, 333_334, 666_667, SECOND]


def test_a_peek_tells_the_delay(store: Store) -> None:
    """As the next hit would be told it, and takes no turn."""
    hit(store, QUEUE, 2)
    assert [look(store, QUEUE).delay for _ in range(2)] == [1_000_000] * 2
    assert hit(store, QUEUE).delay == 1_000_000


def test_without_a_delay_it_spaces_requests(store: Store, clock: ManualClock) -> None:
    """max_delay 0: one at a time, a turn apart, and nobody waits."""
    policy = LeakyBucket(2)
    admitted = []
    for _ in range(20):
        admitted.append(hit(store, policy))
        clock.advance(0.25)
    assert [record.allowed for record in admitted] == [True, False] * 10
    assert {record.delay for record in admitted} == {0}


def test_what_another_limit_refused_takes_no_turn(store: Store) -> None:
    """All or none: the queue is as long as before, and the verdict tells what the delay would have been."""
    hit(store, QUEUE)
    queued, _ = store.decide([charge(QUEUE), charge(FixedWindow(0, per=60), key="no")])
    assert (queued.charged, queued.records[0].allowed, queued.records[0].delay) == (False, True, 500_000)
    assert hit(store, QUEUE).delay == 500_000


def test_a_turn_given_back_makes_the_next_ones_earlier(store: Store) -> None:
    """Those who are waiting keep the time they were told; who comes now is told an earlier one."""
    receipts = [ask(store, QUEUE) for _ in range(3)]
    store.refund(receipts[:1])
    assert hit(store, QUEUE).delay == 1_000_000


def test_an_empty_queue_takes_nothing_back(store: Store, clock: ManualClock) -> None:
    """A turn that has passed, with all behind it, cannot be given to somebody else."""
    early = ask(store, QUEUE)
    clock.advance(0.5)
    hit(store, QUEUE, 2)
    store.refund([early])
    assert hit(store, QUEUE).delay == 1_000_000


def test_a_changed_rate_keeps_the_turns_queued(store: Store) -> None:
    """Three in front are three in front; their turns then lie as far apart as the new rate says."""
    hit(store, QUEUE, 3)
    assert hit(store, LeakyBucket(1, max_delay=9)).delay == 3 * SECOND


def test_turns_ahead_of_a_clock_set_back_are_waited_for(store: Store, clock: ManualClock) -> None:
    """A clock a second back makes the same turns a second later, and no two requests share one."""
    hit(store, QUEUE, 2)
    clock.advance(-1)
    assert hit(store, QUEUE).delay == 2 * SECOND
    assert hit(store, QUEUE).wait == SECOND // 2


def test_a_queue_and_a_window_agree_or_nobody_waits(store: Store) -> None:
    """A limit of both delays only whom the window lets pass."""
    both = Charge((Cell("{k}queue", QUEUE), Cell("{k}window", FixedWindow(2, per=60))))
    answers = [store.decide([both])[0] for _ in range(3)]
    assert [answer.charged for answer in answers] == [True, True, False]
    assert look(store, QUEUE, key="{k}queue").delay == SECOND

"""A sketch counts in the memory it was given, may count too much, and never counts too little."""

from __future__ import annotations

import random
import sys
import tracemalloc
from array import array
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import FixedWindow, Policy, SlidingWindow
from flask_venuelimit.storage.sketch import DEPTH, SketchStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import POLICIES, SECOND, ask, charge, forking, hit, hits, in_child, look, remaining

TEN = FixedWindow(10, per=60)
SLIDING = SlidingWindow(10, per=60)
SEED = b"the same at each run"


@pytest.fixture
def sketch(clock: ManualClock) -> SketchStorage:
    """A sketch of a tenth of a mebibyte."""
    return SketchStorage(0.1, clock=clock, seed=SEED)


def test_a_window_begins_and_ends_with_the_clocks(sketch: SketchStorage, clock: ManualClock) -> None:
    """Windows lie end to end on the clock, whenever a key's first hit comes."""
    clock.advance(50)
    assert hits(sketch, TEN, 12) == 10
    assert hit(sketch, TEN) == (False, 0, 10 * SECOND, 10 * SECOND, 0, "")
    clock.advance(9.999999)
    assert not hit(sketch, TEN).allowed
    clock.advance(0.000001)
    assert hit(sketch, TEN).remaining == 9


def test_a_sliding_window_fades(sketch: SketchStorage, clock: ManualClock) -> None:
    """The last window's hits count as far as it still reaches, and the wait is to when there is room."""
    hit(sketch, SLIDING, 10)
    clock.advance(75)
    assert remaining(sketch, SLIDING) == 2
    assert look(sketch, SLIDING, 4).wait == 9 * SECOND
    clock.advance(9)
    assert hit(sketch, SLIDING, 4).allowed
    clock.advance(96)
    assert remaining(sketch, SLIDING) == 10


@pytest.mark.parametrize("policy", [TEN, SLIDING], ids=str)
def test_who_is_alone_waits_as_long_as_need_be(
    sketch: SketchStorage, clock: ManualClock, policy: Policy
) -> None:
    """Waiting so long admits, and a microsecond less does not, at whatever time a hit was refused."""
    for _ in range(40):
        record = hit(sketch, policy, 3)
        if not record.allowed:
            assert record.wait is not None
            clock.advance((record.wait - 1) / SECOND)
            assert not look(sketch, policy, 3).allowed
            clock.advance(0.000001)
            assert hit(sketch, policy, 3).allowed
        clock.advance(3.7)


@given(
    seed=st.binary(min_size=1, max_size=8),
    course=st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 4), st.sampled_from([0, 0, 0.4, 7, 61])), max_size=80
    ),
)
def test_nothing_is_ever_counted_too_little(seed: bytes, course: list[tuple[int, int, float]]) -> None:
    """Sixty keys in rows of sixteen counters: each is left at most what it truly has, at all times."""
    clock = ManualClock()
    store = SketchStorage(0.001, clock=clock, seed=seed)
    counted: Counter[tuple[int, int]] = Counter()
    for key, cost, later in course:
        clock.advance(later)
        turn, elapsed = divmod(Fraction(clock()).limit_denominator(100), 60)
        true = counted[key, turn] + counted[key, turn - 1] * (1 - elapsed / 60)
        assert remaining(store, SLIDING, f"{key}") <= 10 - true
        if hit(store, SLIDING, cost, f"{key}").allowed:
            counted[key, int(turn)] += cost


def test_the_error_is_within_its_bound(clock: ManualClock) -> None:
    """Of 20,000 hits by 5,000 keys, hardly one key in fifty is charged more than 2.718 / width of them."""
    store = SketchStorage(0.25, clock=clock, seed=SEED)
    chance, plenty = random.Random(1), FixedWindow(10**9, per=60)
    true = Counter(f"{int(chance.paretovariate(0.7)) % 5_000}" for _ in range(20_000))
    for key, count in true.items():
        hit(store, plenty, count, key)
    bound = 2.718 * 20_000 / store.width
    over = [plenty.limit - remaining(store, plenty, key) - count for key, count in true.items()]
    assert min(over) >= 0
    assert sum(error > bound for error in over) / len(over) < 2.718**-DEPTH


def test_a_flood_takes_no_memory(clock: ManualClock) -> None:
    """Whatever arrives, by whatever keys, the store holds the bytes it took when it was made."""
    tracemalloc.start()
    try:
        store = SketchStorage(1, clock=clock, seed=SEED)
        for number in range(2_000):
            hit(store, SLIDING, key=f"{number}")
        before, _ = tracemalloc.get_traced_memory()
        for number in range(12_000):
            hit(store, SLIDING, key=f"{number} more")
            clock.advance(0.01)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 10_000
    assert peak < 2**20


@pytest.mark.parametrize("mebibytes", [0.001, 0.01, 0.3, 1, 8])
def test_it_takes_what_was_asked_for(mebibytes: float) -> None:
    """The tables take seven eighths of it, and the keys beside them have 1,280 bytes each of the rest."""
    store = SketchStorage(mebibytes)
    size = sys.getsizeof(store._sketched.sketch._counters) - sys.getsizeof(array("I"))
    assert size == int(mebibytes * 2**20 * 7 / 8) // 4 * 4
    assert store.max_keys == max(1, int(mebibytes * 2**17 / 1_280))
    assert store.width * 2 * DEPTH * 4 <= size


def test_more_windows_share_the_memory(sketch: SketchStorage) -> None:
    """Each further length of window halves the rows at most, and no count is lost by it."""
    counts = {f"{number}": 1 + number % 9 for number in range(300)}
    for key, cost in counts.items():
        hit(sketch, TEN, cost, key)
    widths = []
    for length in range(1, 20):
        hit(sketch, SlidingWindow(10, per=1_000 + length), 3, "k")
        widths.append(sketch.width)
        assert remaining(sketch, SlidingWindow(10, per=1_000 + length)) <= 7
    assert widths[:8] == [1432, 716, 716, 358, 358, 358, 358, 179]
    assert all(remaining(sketch, TEN, key) <= 10 - cost for key, cost in counts.items())


def test_a_seventeenth_length_of_window_is_counted_exactly(sketch: SketchStorage) -> None:
    """The tables tell sixteen lengths apart; keys of others are held one by one."""
    for length in range(1, 17):
        hit(sketch, FixedWindow(10, per=length))
    assert len(sketch) == 0
    receipt = ask(sketch, FixedWindow(10, per=17), 4)
    assert len(sketch) == 1
    sketch.refund([receipt])
    assert remaining(sketch, FixedWindow(10, per=17)) == 10


def test_a_limit_too_large_for_a_counter_is_counted_exactly(sketch: SketchStorage) -> None:
    """Counters are of four bytes."""
    assert hit(sketch, FixedWindow(2**32 - 1, per=60), 2**32 - 1).allowed
    assert len(sketch) == 0
    assert hit(sketch, FixedWindow(2**32, per=60), 2**32, "large").allowed
    assert len(sketch) == 1


@pytest.mark.parametrize("policy", POLICIES[2:], ids=lambda policy: policy.kind)
def test_other_policies_are_counted_exactly(sketch: SketchStorage, policy: Policy) -> None:
    """Logs, buckets and slots are held key by key, are given back, renewed and reset."""
    receipt, _ = ask(sketch, policy, 3), ask(sketch, policy, 2)
    assert not hit(sketch, policy).allowed
    sketch.renew([receipt])
    sketch.refund([receipt])
    assert (remaining(sketch, policy), len(sketch)) == (3, 1)
    sketch.reset(["k"])
    assert (remaining(sketch, policy), len(sketch)) == (5, 0)


def test_what_gives_charges_back_is_counted_exactly(sketch: SketchStorage) -> None:
    """A failure limit, whose charges stay until they are given back, gets back what is its own."""
    failures = charge(TEN, 4, "failures", stays=True)
    receipts = sketch.decide([failures])
    assert sketch.peek([failures])[0].records[0].remaining == 6
    sketch.refund(receipts)
    assert sketch.peek([failures])[0].records[0].remaining == 10


def test_what_is_in_the_sketch_stays_there(sketch: SketchStorage) -> None:
    """Neither a refund nor a reset takes anything out: it might be somebody else's."""
    sketch.refund([ask(sketch, TEN, 4), ask(sketch, SLIDING, 4, "s")])
    sketch.reset(["k", "s"])
    assert (remaining(sketch, TEN), remaining(sketch, SLIDING, "s")) == (6, 6)


def test_all_or_none_holds_across_the_two(sketch: SketchStorage) -> None:
    """What the exact counters refuse is not counted in the sketch, nor the other way round."""
    full, log = FixedWindow(0, per=60), POLICIES[2]
    sketch.decide([charge(TEN, 1, "a"), charge(full, 1, "b"), charge(log, 1, "c")])
    sketch.decide([Charge((Cell("a", TEN), Cell("c", log)), 6)])
    assert (remaining(sketch, TEN, "a"), remaining(sketch, log, "c")) == (10, 5)
    sketch.decide([Charge((Cell("a", TEN), Cell("c", log)), 4)])
    assert (remaining(sketch, TEN, "a"), remaining(sketch, log, "c")) == (6, 1)


def test_a_peek_counts_nothing(sketch: SketchStorage, clock: ManualClock) -> None:
    """However often it is looked at, a key has what it had."""
    hit(sketch, SLIDING, 3)
    before = bytes(sketch._sketched.sketch._counters)
    assert [look(sketch, SLIDING, 9).allowed for _ in range(3)] == [False] * 3
    assert remaining(sketch, SLIDING, "another") == 10
    assert bytes(sketch._sketched.sketch._counters) == before


@pytest.mark.parametrize("policy", [TEN, SLIDING], ids=str)
def test_a_clock_set_back_gives_nothing_back(
    sketch: SketchStorage, clock: ManualClock, policy: Policy
) -> None:
    """A little back, the wait grows by the step; far back, the windows are dated anew by the next hit."""
    clock.advance(100_000)
    hit(sketch, policy, 10)
    clock.advance(-30)
    assert not hit(sketch, policy).allowed
    clock.advance(-50_000)
    assert not look(sketch, policy).allowed
    assert not hit(sketch, policy).allowed
    clock.advance(120)
    assert hit(sketch, policy).allowed


@forking
def test_a_forked_child_is_not_locked_out(sketch: SketchStorage) -> None:
    """A child forked while another thread was counting answers, and begins anew."""
    hit(sketch, TEN, 10)
    with sketch._turn:
        assert in_child(lambda: remaining(sketch, TEN) == 10)
    assert in_child(lambda: remaining(sketch, TEN) == 0)


def test_keys_are_scattered_as_nobody_can_foretell() -> None:
    """Two stores put the same keys elsewhere, so that nobody can choose keys that collide with another's."""
    places = {tuple(SketchStorage(1)._sketched.sketch._places("k")) for _ in range(5)}
    assert len(places) == 5


def test_it_says_what_it_is() -> None:
    """Its size and how many keys it counts exactly."""
    assert repr(SketchStorage(8)) == "SketchStorage(8, max_keys=819)"
    assert repr(SketchStorage(0.5, max_keys=7)) == "SketchStorage(0.5, max_keys=7)"
    with pytest.raises(ValueError, match=r"^MemoryStorage\(max_keys=0\): max_keys has to be"):
        SketchStorage(1, max_keys=0)

"""Memory, Redis and an exact model, driven through the same random days: they agree to the microsecond."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from datetime import timedelta
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from flask_venuelimit.decisions import Charge, Receipt, Record
from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.quantities import LONGEST, MOST
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer
from tests.storage.asking import SECOND, Store, charge
from tests.storage.model import LogModel, Model, model_of

#: For each kind, policies that share a key as a limit does whose number is changed.
FAMILIES: tuple[tuple[Policy, ...], ...] = (
    (FixedWindow(5, per=10), FixedWindow(3, per=10), FixedWindow(0, per=10)),
    (SlidingWindow(5, per=10), SlidingWindow(8, per=10), SlidingWindow(1, per=10)),
    (SlidingWindow(7, per=0.000_013), SlidingWindow(200_000, per=0.000_013)),
    (SlidingLog(5, per=10), SlidingLog(9, per=10), SlidingLog(2, per=10)),
    (SlidingLog(30, per=10), SlidingLog(0, per=10)),
    (TokenBucket(5, rate=1, per=2), TokenBucket(9, rate=1, per=2), TokenBucket(2, rate=1, per=2)),
    (TokenBucket(3, rate=7, per=11), TokenBucket(5, rate=7, per=11)),
    (TokenBucket(4, rate=0.3),),
    (LeakyBucket(1, per=2, max_delay=8), LeakyBucket(1, per=2), LeakyBucket(1, per=2, max_delay=21)),
    (LeakyBucket(7, per=11, max_delay=5), LeakyBucket(7, per=11, max_delay=7)),
    (Concurrency(5, lease=10), Concurrency(9, lease=10), Concurrency(1, lease=10)),
)
#: A bucket's parts, and time itself in microseconds, are whole numbers that Lua's doubles hold.
PARTS, TIMES = 2**51 - 1, 2**53 - 1


@st.composite
def windows(draw: st.DrawFn) -> tuple[Policy, ...]:
    """Draw any windows, logs or slots, up to the largest that are counted exactly."""
    kind = draw(st.sampled_from([FixedWindow, SlidingWindow, SlidingLog, Concurrency]))
    span = timedelta(microseconds=draw(st.integers(1, LONGEST * SECOND)))
    return tuple(kind(limit, span) for limit in draw(st.lists(st.integers(0, MOST), min_size=1, max_size=3)))


@st.composite
def flows(draw: st.DrawFn) -> tuple[Policy, ...]:
    """Draw any buckets or queues whose rate is kept exactly, up to the largest of them."""
    rate, length = draw(st.integers(1, 10**6)), draw(st.integers(1, 10**9))
    most = min(PARTS // length, LONGEST * SECOND * rate // length, MOST)
    sizes = draw(st.lists(st.integers(1, most), min_size=1, max_size=3))
    per = timedelta(microseconds=length)
    if draw(st.booleans()):
        return tuple(TokenBucket(size, rate, per) for size in sizes)
    return tuple(
        LeakyBucket(rate, per, timedelta(microseconds=(size - 1) * length // rate)) for size in sizes
    )


#: Microseconds, or so many windows.
moves = st.one_of(
    st.just(0),
    st.integers(-3, 3),
    st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.7, 0.9, 1.0]),
    st.sampled_from([0.2, 0.4, 1.1, 2.0, -0.2, -0.5, -1.0, -1.1, -100.0]),
    st.floats(-1.5, 3),
)
#: So much, or such a share of what the policy holds.
costs = st.one_of(st.integers(1, 6), st.sampled_from([0.2, 1 / 3, 0.5, 0.99, 1.0, 1.01]))
flags = st.tuples(st.booleans(), st.booleans())
keys = st.sampled_from([0, 0, 0, 1, 2])
asked = st.lists(st.tuples(keys, costs, flags), min_size=1, max_size=3, unique_by=lambda a: a[0])
#: A key that is never long at rest: so many hits, at a cost, so many windows apart.
knocks = st.tuples(st.integers(2, 12), costs, st.sampled_from([0.09, 0.21, 0.4, 0.6]))
steps = st.one_of(
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("knock"), knocks),
    st.tuples(st.just("peek"), asked),
    st.tuples(st.just("refund"), st.integers(0, 9)),
    st.tuples(st.just("renew"), st.integers(0, 9)),
    st.tuples(st.just("reset"), st.integers(0, 2)),
    st.tuples(st.just("change"), st.integers(0, 2)),
)
#: Seconds: a clock that is set back may read less than 0.
starts = st.sampled_from([1_700_000_000, 0])
courses = st.lists(st.tuples(moves, steps), min_size=4, max_size=30)
#: How many windows, times to fill or drain, or leases, a key lives after it was last written.
LIVES = {
    "fixed-window": 1,
    "sliding-window": 2,
    "sliding-log": 1,
    "token-bucket": 1,
    "leaky-bucket": 2,
    "concurrency": 1,
}
HOUR = 3_600_000
_days = itertools.count()


class Day:
    """One run: three stores' worth of the same three keys, on one clock."""

    def __init__(self, client: redis.Redis, family: tuple[Policy, ...], start: int) -> None:
        self.clock = ManualClock(start)
        self.latest = 0
        self.stores: tuple[Store, ...] = (MemoryStorage(clock=self.clock), RedisStorage(client, self.clock))
        self.client = client
        self.family = family
        self.policy = family[0]
        self.keys = [f"{next(_days)}" for _ in range(3)]
        self.models = [model_of(self.policy) for _ in range(3)]
        #: What can be given back: receipts, the policy they were charged under, the key, the model's token.
        self.charged: list[tuple[tuple[Receipt, ...], Policy, int, object]] = []

    @property
    def now(self) -> int:
        return round(self.clock() * SECOND)

    def move(self, by: float) -> None:
        microseconds = by if isinstance(by, int) else round(by * self.policy.span)
        # ahead of now there has to be room for three windows more
        microseconds = min(microseconds, max(0, TIMES - 3 * self.policy.span - self.now))
        # and no two times may lie so far apart that what is between them cannot be counted
        self.latest = max(self.latest, self.now)
        microseconds = max(microseconds, self.latest - TIMES - self.now)
        if microseconds < 0:
            # what has lapsed may be gone already or not, which only a step back could bring to light
            for index, model in enumerate(self.models):
                if model.lapsed(self.now, self.policy):
                    self.reset(index)
        self.clock.advance(microseconds / SECOND)

    def step(self, name: str, what: Any) -> None:
        event(f"{name} of {self.policy.kind}")
        getattr(self, name)(what)

    def lives(self) -> list[int]:
        """The milliseconds that each key has left, without the hour that a given clock adds."""
        keys: Any = self.client.keys()
        return [int(self.client.pttl(key)) - HOUR for key in keys]

    def longest(self) -> int:
        """The milliseconds that a key lives at most; a clock that was set back makes it a window longer."""
        span = max(policy.span for policy in self.family)
        return -(-(LIVES[self.policy.kind] + 1) * span // 1000)

    def decide(self, asked: Any) -> None:
        asked = self._priced(asked)
        charges = [self._charge(*one) for one in asked]
        answers = list(zip(*(store.decide(charges) for store in self.stores), strict=True))
        fits = [self.models[index].fits(self.now, self.policy, cost) for index, cost, _ in asked]
        passes = all(fit or not binding for fit, (_, _, (binding, _)) in zip(fits, asked, strict=True))
        for (index, cost, (_, stays)), fit, receipts in zip(asked, fits, answers, strict=True):
            self._agree(index, cost, receipts)
            due = fit and (passes or stays)
            assert [receipt.charged for receipt in receipts] == [due, due]
            if due:
                self.models[index].redate(self.now, self.policy)
                token = self.models[index].charge(self.now, self.policy, cost)
                self.charged.append((receipts, self.policy, index, token))
            else:
                self.models[index].redate(self.now, self.policy)
            self._left(index, receipts)

    def peek(self, asked: Any) -> None:
        asked = self._priced(asked)
        charges = [self._charge(*one) for one in asked]
        for (index, cost, _), *receipts in zip(asked, *(s.peek(charges) for s in self.stores), strict=True):
            self._agree(index, cost, tuple(receipts))
            self._left(index, tuple(receipts))

    def knock(self, what: Any) -> None:
        times, cost, every = what
        for _ in range(times):
            self.decide([(0, cost, (True, False))])
            self.move(every)

    def refund(self, which: int) -> None:
        if self.charged:
            # a receipt is given back under the policy it was charged under, whatever the limit is by now
            receipts, policy, index, token = self.charged.pop(which % len(self.charged))
            for store, receipt in zip(self.stores, receipts, strict=True):
                store.refund([receipt])
            self.models[index].give_back(self.now, policy, token)

    def renew(self, which: int) -> None:
        if self.charged:
            receipts, policy, index, token = self.charged[which % len(self.charged)]
            for store, receipt in zip(self.stores, receipts, strict=True):
                store.renew([receipt])
            model = self.models[index]
            if isinstance(model, LogModel):
                model.renew(self.now, policy, token)

    def reset(self, index: int) -> None:
        for store in self.stores:
            store.reset([self.keys[index]])
        self.models[index] = model_of(self.policy)
        self.charged = [charged for charged in self.charged if charged[2] != index]

    def change(self, which: int) -> None:
        self.policy = self.family[which % len(self.family)]

    def _priced(self, asked: Any) -> list[tuple[int, int, tuple[bool, bool]]]:
        """What is asked, at costs in whole numbers."""
        quota = self.policy.quota
        return [
            (index, max(1, int(cost * quota)) if isinstance(cost, float) else cost, flags)
            for index, cost, flags in asked
        ]

    def _charge(self, index: int, cost: int, flags: tuple[bool, bool]) -> Charge:
        return charge(self.policy, cost, self.keys[index], binding=flags[0], stays=flags[1])

    def _agree(self, index: int, cost: int, receipts: tuple[Receipt, ...]) -> None:
        """The stores say the same, and of the verdict and the wait what the model says."""
        ours, theirs = (receipt.records[0] for receipt in receipts)
        assert ours[:5] == theirs[:5]
        model = self.models[index]
        assert ours.allowed == model.fits(self.now, self.policy, cost)
        assert ours.delay == (self._dated(model).delay(self.now, self.policy, cost) if ours.allowed else 0)
        self._promise(model, ours, cost)

    def _promise(self, model: Model, record: Record, cost: int) -> None:
        """Waiting so long admits, and waiting a microsecond less does not."""
        if record.wait is None:
            assert not self.policy.holds(cost)
        elif self.policy.held:
            assert record.wait == (0 if record.allowed else SECOND)
        elif not record.allowed:
            dated = self._dated(model)
            then = self.now + record.wait
            assert dated.fits(then, self.policy, cost), "waited in vain"
            assert not dated.fits(then - 1, self.policy, cost), "made to wait too long"

    def _dated(self, model: Model) -> Model:
        copy = deepcopy(model)
        copy.redate(self.now, self.policy)
        return copy

    def _left(self, index: int, receipts: tuple[Receipt, ...]) -> None:
        model = self.models[index]
        left, reset = model.remaining(self.now, self.policy), model.reset(self.now, self.policy)
        assert [receipt.records[0][1] for receipt in receipts] == [left, left]
        assert [receipt.records[0].reset for receipt in receipts] == [reset, reset]


@pytest.fixture(scope="module")
def client(valkey: StoreServer) -> Iterator[redis.Redis]:
    """A client of the server of this run."""
    with valkey.client() as client:
        yield client


def _live_through(client: redis.Redis, family: tuple[Policy, ...], start: int, course: Any) -> Iterator[Day]:
    """Go through a day; it can be looked at after each step."""
    client.flushall()
    day = Day(client, family, start)
    for by, (name, what) in course:
        day.move(by)
        day.step(name, what)
        yield day


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=starts, course=courses)
def test_memory_redis_and_the_model_agree(client: redis.Redis, family: Any, start: int, course: Any) -> None:
    """Whatever is asked, at whatever times, all three admit, count, promise and give back the same."""
    for day in _live_through(client, family, start, course):
        assert all(-HOUR < life <= day.longest() for life in day.lives())


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(family=windows() | flows(), start=starts, course=courses)
def test_they_agree_up_to_the_largest_numbers(
    client: redis.Redis, family: Any, start: int, course: Any
) -> None:
    """With limits of up to 10^15 - 1 and windows of up to fifty years, they agree to the last one."""
    for day in _live_through(client, family, start, course):
        assert all(-HOUR < life <= day.longest() for life in day.lives())

"""Memory, Redis and an exact model, driven through the same random days: they agree to the microsecond."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from flask_venuelimit.decisions import Charge, Receipt, Record
from flask_venuelimit.policies import FixedWindow, Policy, SlidingWindow, TokenBucket
from flask_venuelimit.storage.memory import MemoryStorage
from flask_venuelimit.storage.redis import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.servers import StoreServer
from tests.storage.asking import SECOND, Store, charge
from tests.storage.model import Model, model_of

#: For each kind, policies that share a key as a limit does whose number is changed.
FAMILIES = (
    (FixedWindow(5, per=10), FixedWindow(3, per=10), FixedWindow(0, per=10)),
    (SlidingWindow(5, per=10), SlidingWindow(8, per=10), SlidingWindow(1, per=10)),
    (SlidingWindow(7, per=0.000_013), SlidingWindow(200_000, per=0.000_013)),
    (TokenBucket(5, rate=1, per=2), TokenBucket(9, rate=1, per=2), TokenBucket(2, rate=1, per=2)),
    (TokenBucket(3, rate=7, per=11), TokenBucket(5, rate=7, per=11)),
    (TokenBucket(4, rate=0.3),),
)

moves = st.one_of(
    st.just(0),
    st.integers(-3, 3),
    st.floats(-1.5, 3).map(lambda windows: ("windows", windows)),
    st.sampled_from([-100, -1, 0, 1, 2]).map(lambda windows: ("windows", windows)),
)
costs = st.integers(1, 6)
flags = st.tuples(st.booleans(), st.booleans())
asked = st.lists(st.tuples(st.integers(0, 2), costs, flags), min_size=1, max_size=3, unique_by=lambda a: a[0])
steps = st.one_of(
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("decide"), asked),
    st.tuples(st.just("peek"), asked),
    st.tuples(st.just("refund"), st.integers(0, 9)),
    st.tuples(st.just("reset"), st.integers(0, 2)),
    st.tuples(st.just("change"), st.integers(0, 2)),
)
days = st.tuples(st.sampled_from(FAMILIES), st.lists(st.tuples(moves, steps), min_size=1, max_size=25))
_days = itertools.count()


class Day:
    """One run: three stores' worth of the same three keys, on one clock."""

    def __init__(self, client: redis.Redis, family: tuple[Policy, ...]) -> None:
        self.clock = ManualClock(1_700_000_000)
        self.stores: tuple[Store, ...] = (MemoryStorage(clock=self.clock), RedisStorage(client, self.clock))
        self.client = client
        self.family = family
        self.policy = family[0]
        self.keys = [f"{next(_days)}" for _ in range(3)]
        self.models = [model_of(self.policy) for _ in range(3)]
        self.charged: list[tuple[tuple[Receipt, ...], int, object]] = []

    @property
    def now(self) -> int:
        return round(self.clock() * SECOND)

    def move(self, by: Any) -> None:
        microseconds = by if isinstance(by, int) else round(by[1] * self.policy.span)
        if microseconds < 0:
            # what has lapsed may be gone already or not, which only a step back could bring to light
            for index, model in enumerate(self.models):
                if model.lapsed(self.now, self.policy):
                    self.reset(index)
        self.clock.advance(microseconds / SECOND)

    def step(self, name: str, what: Any) -> None:
        event(f"{name} of {self.policy.kind}")
        getattr(self, name)(what)

    def undying(self) -> list[object]:
        """The keys that would never go by themselves."""
        keys: Any = self.client.keys()
        return [key for key in keys if self.client.pttl(key) <= 0]

    def decide(self, asked: Any) -> None:
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
                self.charged.append((receipts, index, token))
            else:
                self.models[index].redate(self.now, self.policy)
            self._left(index, receipts)

    def peek(self, asked: Any) -> None:
        charges = [self._charge(*one) for one in asked]
        for (index, cost, _), *receipts in zip(asked, *(s.peek(charges) for s in self.stores), strict=True):
            self._agree(index, cost, tuple(receipts))
            self._left(index, tuple(receipts))

    def refund(self, which: int) -> None:
        if self.charged:
            receipts, index, token = self.charged.pop(which % len(self.charged))
            for store, receipt in zip(self.stores, receipts, strict=True):
                store.refund([receipt])
            self.models[index].give_back(self.now, self.policy, token)

    def reset(self, index: int) -> None:
        for store in self.stores:
            store.reset([self.keys[index]])
        self.models[index] = model_of(self.policy)
        self.charged = [(r, i, token) for r, i, token in self.charged if i != index]

    def change(self, which: int) -> None:
        self.policy = self.family[which % len(self.family)]

    def _charge(self, index: int, cost: int, flags: tuple[bool, bool]) -> Charge:
        return charge(self.policy, cost, self.keys[index], binding=flags[0], stays=flags[1])

    def _agree(self, index: int, cost: int, receipts: tuple[Receipt, ...]) -> None:
        """The stores say the same, and of the verdict and the wait what the model says."""
        ours, theirs = (receipt.records[0] for receipt in receipts)
        assert ours[:5] == theirs[:5]
        model = self.models[index]
        assert ours.allowed == model.fits(self.now, self.policy, cost)
        self._promise(model, ours, cost)

    def _promise(self, model: Model, record: Record, cost: int) -> None:
        """Waiting so long admits, and waiting a microsecond less does not."""
        if record.wait is None:
            assert not self.policy.holds(cost)
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
        left = self.models[index].remaining(self.now, self.policy)
        assert [receipt.records[0].remaining for receipt in receipts] == [left, left]


@pytest.fixture(scope="module")
def client(valkey: StoreServer) -> Iterator[redis.Redis]:
    """A client of the server of this run."""
    with valkey.client() as client:
        yield client


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(day=days)
def test_memory_redis_and_the_model_agree(client: redis.Redis, day: Any) -> None:
    """Whatever is asked, at whatever times, all three admit, count, promise and give back the same."""
    family, course = day
    client.flushall()
    run = Day(client, family)
    for by, (name, what) in course:
        run.move(by)
        run.step(name, what)
        assert run.undying() == []

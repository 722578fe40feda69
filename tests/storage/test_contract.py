"""What any store must do: several charges in one step, peeks, resets, and a crowd of threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from flask_venuelimit.decisions import Cell, Charge, Receipt
from flask_venuelimit.policies import (
    Concurrency,
    FixedWindow,
    LeakyBucket,
    Policy,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
)
from flask_venuelimit.storage import Storage
from flask_venuelimit.storage.noop import NoopStorage
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import (
    POLICIES,
    SECOND,
    Store,
    ask,
    charge,
    every_policy,
    every_wait,
    hit,
    hits,
    look,
    remaining,
)

TEN = FixedWindow(10, per=60)
ONE = SlidingWindow(1, per=60)


def test_a_store_is_a_storage(store: Store) -> None:
    """Every store follows the protocol, and says that it counts."""
    assert isinstance(store, Storage)
    assert store.counts


def test_nothing_asked_nothing_answered(store: Store) -> None:
    """No charges, receipts or keys: no answer, and no error."""
    store.refund([])
    store.reset([])
    assert store.decide([]) == store.peek([]) == []


def test_all_that_fit_are_charged(store: Store) -> None:
    """Where every charge fits, each is charged, and the receipts are in the order asked."""
    charges = [charge(TEN, 2, "a"), charge(ONE, 1, "b"), charge(TokenBucket(5, rate=1), 3, "c")]
    receipts = store.decide(charges)
    assert [receipt.charge for receipt in receipts] == charges
    assert [receipt.charged for receipt in receipts] == [True] * 3
    assert [receipt.records[0].remaining for receipt in receipts] == [8, 0, 2]


def test_one_refusal_and_nothing_is_charged(store: Store) -> None:
    """Where one charge does not fit, no other is charged, and each still says whether it would fit."""
    hit(store, ONE, key="full")
    receipts = store.decide([charge(TEN, 1, "a"), charge(ONE, 1, "full"), charge(TEN, 1, "b")])
    assert [receipt.allowed for receipt in receipts] == [True, False, True]
    assert [receipt.charged for receipt in receipts] == [False] * 3
    # in a cluster the first was charged and given back, which leaves its window open
    assert receipts[0].records[0][:3] == (True, 10, 0)
    assert receipts[2].records[0] == (True, 10, 0, 0, 0, "")
    assert remaining(store, TEN, "a") == remaining(store, TEN, "b") == 10


def test_a_charge_that_stays_is_kept_when_another_refuses(store: Store) -> None:
    """A failure limit that admitted stays charged: the refusal is a failure."""
    hit(store, ONE, key="full")
    asked = [charge(TEN, 1, "stays", stays=True), charge(ONE, 1, "full"), charge(TEN, 1, "a")]
    receipts = store.decide(asked)
    assert [receipt.charged for receipt in receipts] == [True, False, False]
    assert remaining(store, TEN, "stays") == 9
    assert remaining(store, TEN, "a") == 10


def test_what_stays_and_refuses_is_not_charged(store: Store) -> None:
    """What a failure limit itself refused is not charged to it, and refuses the others."""
    hit(store, ONE, key="full")
    receipts = store.decide([charge(ONE, 1, "full", stays=True), charge(TEN, 1, "a")])
    assert [receipt.charged for receipt in receipts] == [False, False]
    assert remaining(store, TEN, "a") == 10


def test_a_shadow_limit_never_stands_in_the_way(store: Store) -> None:
    """A charge that is not binding refuses for itself alone."""
    hit(store, ONE, key="full")
    receipts = store.decide([charge(ONE, 1, "full", binding=False), charge(TEN, 1, "a")])
    assert [receipt.allowed for receipt in receipts] == [False, True]
    assert [receipt.charged for receipt in receipts] == [False, True]


def test_a_shadow_limit_counts_with_the_others(store: Store) -> None:
    """A charge that is not binding is charged where the binding ones are, and only there."""
    for _ in range(2):
        store.decide([charge(TEN, 1, "shadow", binding=False), charge(ONE, 1, "a")])
    assert remaining(store, TEN, "shadow") == 9


def test_a_limit_of_two_policies_is_charged_to_both_or_neither(store: Store, clock: ManualClock) -> None:
    """10 a minute and 30 in half an hour: 10, 10, 10, then 0, and the long window holds exactly 30."""
    short, long = FixedWindow(10, per=60), FixedWindow(30, per=1800)
    both = Charge((Cell("{k}short", short), Cell("{k}long", long)))
    admitted = []
    for times in (16, 15, 15, 1):
        admitted.append(sum(store.decide([both])[0].charged for _ in range(times)))
        clock.advance(60)
    assert admitted == [10, 10, 10, 0]
    assert remaining(store, long, "{k}long") == 0
    assert remaining(store, short, "{k}short") == 10


def test_the_tightest_of_two_policies_speaks(store: Store) -> None:
    """A limit of several policies shows the one with the longest wait when it refuses."""
    both = Charge((Cell("{k}a", FixedWindow(1, per=60)), Cell("{k}b", FixedWindow(1, per=1800))))
    assert store.decide([both])[0].tightest() == 1
    refused = store.decide([both])[0]
    assert [record.wait for record in refused.records] == [60 * SECOND, 1800 * SECOND]
    assert refused.tightest() == 1


@every_wait
def test_a_refused_hit_changes_nothing(store: Store, clock: ManualClock, policy: Policy) -> None:
    """However often a caller is refused, they wait no longer for it."""
    hits(store, policy, 5)
    before = look(store, policy)
    assert hits(store, policy, 50) == 0
    assert look(store, policy) == before
    clock.advance((before.wait or 0) / SECOND)
    assert hit(store, policy).allowed


@pytest.mark.parametrize("cost", [10**15, 10**400, 10**5_000], ids=["one too many", "no double", "no text"])
@every_policy
def test_no_cost_is_too_large_to_be_refused(store: Store, policy: Policy, cost: int) -> None:
    """A caller may have had a say in it: no wait helps, what is left stays, and the next cost is decided."""
    ask(store, policy)
    refused = hit(store, policy, cost)
    assert (refused.allowed, refused.wait, refused.remaining) == (False, None, remaining(store, policy))
    assert hit(store, policy).allowed


@every_policy
def test_a_reset_forgets(store: Store, policy: Policy) -> None:
    """After a reset the key is unused, and its neighbour is not."""
    for key in ("k", "other"):
        hit(store, policy, 5, key)
    store.reset(["k", "never used"])
    assert look(store, policy) == look(store, policy, key="never used")
    assert remaining(store, policy) == 5
    assert remaining(store, policy, "other") == 0


@pytest.mark.parametrize(
    ("old", "larger", "smaller"),
    [
        (FixedWindow(5, per=60), FixedWindow(8, per=60), FixedWindow(2, per=60)),
        (SlidingWindow(5, per=60), SlidingWindow(8, per=60), SlidingWindow(2, per=60)),
        (SlidingLog(5, per=60), SlidingLog(8, per=60), SlidingLog(2, per=60)),
        (TokenBucket(5, rate=5), TokenBucket(8, rate=7, per=3), TokenBucket(2, rate=1, per=9)),
        (LeakyBucket(5, 1, 0.8), LeakyBucket(7, per=3, max_delay=3), LeakyBucket(1, per=9, max_delay=9)),
        (Concurrency(5), Concurrency(8), Concurrency(2)),
    ],
    ids=lambda policy: policy.kind,
)
def test_a_changed_number_keeps_the_usage(store: Store, old: Policy, larger: Policy, smaller: Policy) -> None:
    """What was used stays used when the limit is raised or lowered; below it there is no room."""
    hit(store, old, 4)
    assert old.identity == larger.identity == smaller.identity
    assert remaining(store, larger) == 4
    assert remaining(store, smaller) == 0
    assert not hit(store, smaller).allowed
    assert remaining(store, old) == 1


@pytest.mark.parametrize("kind", [lambda rate, per: TokenBucket(1, rate, per), LeakyBucket])
def test_the_slowest_buckets_count(store: Store, kind: Callable[..., Policy]) -> None:
    """One token or turn in fifty years is the least there is."""
    policy = kind(1, 18_262 * 86_400)
    assert hit(store, policy).allowed
    assert hit(store, policy) == (False, 0, policy.span, policy.span, 0, "")


def test_what_a_changed_rate_makes_too_large_is_cut_off(store: Store) -> None:
    """A million million tokens that now take a fortnight each are as many parts as can be counted, alike."""
    hit(store, TokenBucket(10**12, rate=10**6), 10**12)
    slow = TokenBucket(1, rate=1, per=10**6)
    assert look(store, slow) == (False, 0, 2**53 - 1, 2**53 - 1, 0, "")


@pytest.mark.parametrize("old", POLICIES, ids=lambda policy: policy.kind)
@pytest.mark.parametrize("new", POLICIES, ids=lambda policy: policy.kind)
def test_another_kind_starts_anew(store: Store, old: Policy, new: Policy) -> None:
    """A state of another kind under the same key counts as none; it never errs."""
    hit(store, old, 2)
    left = 2 if new == old else 4
    assert hit(store, new).remaining == left


@every_policy
def test_a_crowd_is_admitted_up_to_the_limit(store: Store, policy: Policy) -> None:
    """Eight threads at once on one key get exactly the limit, and none of it is lost."""
    start = Barrier(8)

    def knock(_: int) -> int:
        start.wait()
        return hits(store, policy, 5)

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(knock, range(8))) == 5
    assert remaining(store, policy) == 0


@every_policy
def test_a_crowd_of_refunds_leaves_nothing_behind(store: Store, policy: Policy) -> None:
    """Threads that charge and refund in parallel leave the counter as they found it."""

    def come_and_go(_: int) -> list[bool]:
        receipts: list[Receipt] = [ask(store, policy) for _ in range(10)]
        for receipt in receipts:
            store.refund([receipt])
        return [receipt.charged for receipt in receipts]

    with ThreadPoolExecutor(8) as threads:
        charged = [one for some in threads.map(come_and_go, range(8)) for one in some]
    assert any(charged)
    assert remaining(store, policy) == 5


def test_no_storage_admits_everything_and_says_so() -> None:
    """Without storage each charge is admitted with its whole quota left, and none is counted."""
    store = NoopStorage()
    receipts = store.decide([charge(ONE, 1), charge(FixedWindow(0, per=60), 7)])
    store.refund(receipts)
    store.reset(["k"])
    assert not store.counts
    assert [receipt.records for receipt in receipts] == [((True, 1, 0, 0, 0, ""),), ((True, 0, 0, 0, 0, ""),)]
    assert [receipt.charged for receipt in store.peek([charge(ONE)])] == [False]

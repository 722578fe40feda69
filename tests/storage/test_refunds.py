"""A refund undoes its own charge, once, where the counter still holds it."""

from __future__ import annotations

from flask_venuelimit.decisions import Cell, Charge
from flask_venuelimit.policies import FixedWindow, Policy, SlidingWindow, TokenBucket
from flask_venuelimit.testing import ManualClock
from tests.storage.asking import RAISED, Store, ask, charge, every_policy, hit, remaining


@every_policy
def test_a_refund_gives_the_cost_back(store: Store, policy: Policy) -> None:
    """What was charged can be taken again at once."""
    receipt = ask(store, policy, 3)
    ask(store, policy, 2)
    store.refund([receipt])
    assert remaining(store, policy) == 3


@every_policy
def test_a_refund_counts_once(store: Store, policy: Policy) -> None:
    """Asked for twice, in one call or two, a charge is given back once."""
    receipt = ask(store, policy, 1)
    ask(store, policy, 4)
    store.refund([receipt, receipt])
    store.refund([receipt])
    assert remaining(store, policy) == 1


@every_policy
def test_several_refunds_on_one_key_add_up(store: Store, policy: Policy) -> None:
    """The receipts of one call may be of one key."""
    receipts = [ask(store, policy) for _ in range(4)]
    store.refund(receipts[:3])
    assert remaining(store, policy) == 4


@every_policy
def test_what_was_refused_is_not_given_back(store: Store, policy: Policy) -> None:
    """Nothing charged, nothing refunded."""
    ask(store, policy, 5)
    store.refund([ask(store, policy), *store.peek([charge(policy)])])
    assert remaining(store, policy) == 0


@every_policy
def test_a_refund_after_a_reset_gives_nothing(store: Store, policy: Policy) -> None:
    """A reset and a new hit at the very same instant make a life that the old charge is no part of."""
    receipt = ask(store, policy, 4)
    store.reset(["k"])
    store.refund([receipt])
    assert remaining(store, policy) == 5
    again = ask(store, policy, 4)
    store.reset(["k"])
    ask(store, policy, 5)
    store.refund([again])
    assert remaining(store, policy) == 0


@every_policy
def test_a_refund_after_expiry_revives_nothing(store: Store, clock: ManualClock, policy: Policy) -> None:
    """Once the charge has passed out of the counter, giving it back changes nothing."""
    receipt = ask(store, policy, 5)
    clock.advance(121)
    store.refund([receipt])
    assert remaining(store, policy) == 5
    hit(store, policy, 5)
    assert remaining(store, policy) == 0


def test_a_refund_stays_out_of_a_later_window(store: Store, clock: ManualClock) -> None:
    """Charged at 59, refunded at 62 when the window has turned: two failures of the new one still count."""
    policy = FixedWindow(2, per=60)
    store.refund([ask(store, policy)])
    clock.advance(59)
    early = ask(store, policy)
    clock.advance(2)
    assert [hit(store, policy).allowed for _ in range(2)] == [True, True]
    clock.advance(1)
    store.refund([early])
    clock.advance(1)
    assert not hit(store, policy).allowed


def test_a_sliding_window_gives_back_from_the_last_window(store: Store, clock: ManualClock) -> None:
    """The previous count still holds the charge; what is left of it fades as before."""
    policy = SlidingWindow(10, per=60)
    receipt = ask(store, policy, 8)
    clock.advance(75)
    assert remaining(store, policy) == 4
    store.refund([receipt])
    assert remaining(store, policy) == 10


def test_a_sliding_window_tells_its_windows_apart(store: Store, clock: ManualClock) -> None:
    """A charge of the last window is taken from that one, also when this one holds hits of its own."""
    policy = SlidingWindow(10, per=60)
    last = ask(store, policy, 8)
    clock.advance(90)
    this = ask(store, policy, 2)
    assert remaining(store, policy) == 4
    store.refund([last])
    assert remaining(store, policy) == 8
    store.refund([this])
    assert remaining(store, policy) == 10


def test_a_sliding_window_forgets_the_window_before_the_last(store: Store, clock: ManualClock) -> None:
    """A charge two windows back is in neither counter."""
    policy = SlidingWindow(10, per=60)
    old = ask(store, policy, 5)
    clock.advance(60)
    ask(store, policy, 5)
    clock.advance(60)
    ask(store, policy, 5)
    store.refund([old])
    assert remaining(store, policy) == 0


def test_a_bucket_that_was_full_since_takes_nothing_back(store: Store, clock: ManualClock) -> None:
    """Charged, refilled, charged again: the first charge has long been made good."""
    policy = TokenBucket(5, rate=1)
    early = ask(store, policy, 2)
    clock.advance(2)
    ask(store, policy, 5)
    store.refund([early])
    assert remaining(store, policy) == 0


def test_a_refund_never_overfills_a_bucket(store: Store, clock: ManualClock) -> None:
    """A bucket that has refilled meanwhile becomes full, and not fuller."""
    policy = TokenBucket(5, rate=1)
    receipt = ask(store, policy, 4)
    clock.advance(3)
    store.refund([receipt])
    assert remaining(store, policy) == 5
    assert hit(store, policy, 5).remaining == 0


def test_both_policies_of_a_limit_are_refunded(store: Store) -> None:
    """A limit of several policies gets its charge back on each of its counters."""
    short, long = FixedWindow(3, per=60), FixedWindow(5, per=1800)
    receipts = store.decide([Charge((Cell("{k}short", short), Cell("{k}long", long)), 2)])
    store.refund(receipts)
    assert remaining(store, short, "{k}short") == 3
    assert remaining(store, long, "{k}long") == 5


@every_policy
def test_a_refund_under_a_changed_number_gives_the_cost_back(store: Store, policy: Policy) -> None:
    """A limit that was raised between charge and refund takes back what was charged."""
    receipt = ask(store, policy, 3)
    raised = RAISED[policy.kind]
    hit(store, raised, 1)
    store.refund([receipt])
    assert remaining(store, raised) == 8

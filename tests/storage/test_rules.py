"""What every rule answers, asked by itself: what it writes, what it gives back, and how long that lasts."""

from __future__ import annotations

from typing import Any

import pytest

from flask_venuelimit.policies import LeakyBucket, Policy, SlidingWindow, TokenBucket
from flask_venuelimit.storage.rules import RULES, Outcome, bucket
from flask_venuelimit.storage.rules.outcome import _Births
from tests.storage.asking import POLICIES, SECOND, every_policy

MINUTE = 60 * SECOND


def take(policy: Policy, state: Any, now: int, cost: int, birth: str = "b") -> Outcome:
    """Ask a policy's rule."""
    return RULES[policy.kind].take(state, now, cost, birth, *policy.numbers)


def give_back(policy: Policy, state: Any, now: int, cost: int, token: str) -> Any:
    """Undo a charge by a policy's rule."""
    return RULES[policy.kind].give_back(state, now, cost, token, *policy.numbers)


@every_policy
@pytest.mark.parametrize("used", range(6))
def test_a_look_writes_nothing_and_fits(policy: Policy, used: int) -> None:
    """A cost of 0 fits whatever is used, up to all of it; nothing is to be kept or given back."""
    state = take(policy, None, 0, used).state if used else None
    look = take(policy, state, 0, 0, "")
    assert look[:4] == (True, None, 5 - used, 0)
    assert (look.delay, look.token) == (0, "")


@every_policy
def test_a_refusal_writes_nothing(policy: Policy) -> None:
    """Neither on a key that is used up nor on one that is unused; there is nothing to be given back."""
    for state, cost in ((take(policy, None, 0, 5).state, 1), (take(policy, None, 0, 3).state, 3), (None, 6)):
        refusal = take(policy, state, 0, cost)
        assert (refusal.allowed, refusal.state, refusal.delay, refusal.token) == (False, None, 0, "")


@every_policy
def test_a_state_lasts_until_it_expires(policy: Policy) -> None:
    """A microsecond earlier the key shows use; from then on it shows none, and a refund does nothing."""
    first = take(policy, None, 0, 4)
    charged = take(policy, first.state, 30 * SECOND, 1)
    expires = charged.expires
    assert take(policy, charged.state, expires - 1, 0).remaining < 5
    assert take(policy, charged.state, expires, 0).remaining == 5
    assert take(policy, charged.state, expires - 1, 0).expires == expires
    assert give_back(policy, charged.state, expires, 1, charged.token) is None


@every_policy
def test_how_long_a_state_lasts(policy: Policy) -> None:
    """A window, a lease, or the time to fill or drain; of a sliding window, two."""
    windows = 2 if isinstance(policy, SlidingWindow) else 1
    assert take(policy, None, 7, 5).expires == 7 + windows * MINUTE


@every_policy
def test_only_a_key_far_ahead_is_dated_anew(policy: Policy) -> None:
    """At exactly a window ahead a refused hit leaves it; a microsecond more, and it is written as of now."""
    state = take(policy, None, MINUTE, 5).state
    assert take(policy, state, 0, 1).state is None
    moved = take(policy, state, -1, 1)
    assert (moved.allowed, moved.remaining) == (False, 0)
    again = take(policy, moved.state, -1, 1)
    assert (again.state, again.wait, again.reset) == (None, moved.wait, moved.reset)
    assert again.expires == take(policy, None, -1, 5).expires


@every_policy
def test_a_refund_dates_a_key_far_ahead_anew(policy: Policy) -> None:
    """Given back while the clock is far back, the rest of what was used counts from then."""
    first = take(policy, None, MINUTE * 10, 2)
    state = take(policy, first.state, MINUTE * 10, 2).state
    left = give_back(policy, state, 0, 2, first.token)
    assert take(policy, left, 0, 0).remaining == 3
    assert take(policy, left, 2 * MINUTE, 0).remaining == 5


@every_policy
def test_a_strangers_token_gives_nothing_back(policy: Policy) -> None:
    """What another life of the key was charged is not in this one, nor is what was never charged."""
    charged = take(policy, None, 0, 3, "this")
    other = take(policy, None, 0, 3, "that")
    assert charged.token != other.token
    for token in (other.token, "", ":", "this:9"):
        assert give_back(policy, charged.state, 0, 3, token) is None


def test_a_window_that_turned_holds_the_last_one_no_longer() -> None:
    """At the very end of a window, what the one before it held is out of reach for a refund."""
    policy = SlidingWindow(5, per=60)
    first = take(policy, None, 0, 2)
    second = take(policy, first.state, MINUTE, 1)
    assert give_back(policy, second.state, 2 * MINUTE - 1, 2, first.token) is not None
    assert give_back(policy, second.state, 2 * MINUTE, 2, first.token) is None
    assert give_back(policy, second.state, 2 * MINUTE, 1, second.token) is not None


def test_a_window_all_of_which_was_given_back_starts_anew() -> None:
    """Its next hit opens a window of its own, not one that lies end to end with the empty one."""
    policy = SlidingWindow(5, per=60)
    charged = take(policy, None, 0, 2)
    empty = give_back(policy, charged.state, 0, 2, charged.token)
    assert take(policy, empty, 59 * SECOND, 1).reset == SECOND
    assert take(policy, empty, 70 * SECOND, 1).reset == MINUTE


@pytest.mark.parametrize(
    "policy", [TokenBucket(5, rate=7, per=11), LeakyBucket(rate=7, per=11, max_delay=9)], ids=lambda p: p.kind
)
def test_a_bucket_ahead_by_its_span_stays(policy: Policy) -> None:
    """Where the time to fill is no whole number of microseconds, its span is what a key may lie ahead."""
    state = take(policy, None, policy.span, policy.quota).state
    assert take(policy, state, 0, 1).state is None
    assert take(policy, state, -1, 1).state is not None


@pytest.mark.parametrize(("old", "new"), [(10**9 + 7, 999_983), (3, 2**40), (2**40, 3), (7, 7)])
def test_a_changed_rate_is_rescaled_exactly(old: int, new: int) -> None:
    """As many tokens are missing, rounded up to a part, however large the parts are."""
    used = 123 * old + 1
    drained = bucket.drain((used, old, 0, "b"), 0, 1_000, new, 1)
    assert drained == (-(-used * new // old), new, 0, "b")
    assert isinstance(drained[0], int)


def test_what_cannot_be_counted_in_lua_is_not_counted_in_python() -> None:
    """Rescaled parts stop where Lua's doubles do."""
    drained = bucket.drain((2**50, 1, 0, "b"), 0, 1, 2**20, 1)
    assert drained is not None
    assert drained[0] == 2**53 - 1


def test_no_two_births_are_alike() -> None:
    """Not of one process, not of two, and a token can be told from the window or entry that follows it."""
    names = [births() for births in (_Births(), _Births()) for _ in range(100)]
    assert len(set(names)) == 200
    assert not any(set(" :\n") & set(name) for name in names)
    assert min(map(len, names)) > 12


def test_the_policies_here_are_all_there_are() -> None:
    """What is promised above is promised of every rule."""
    assert {policy.kind for policy in POLICIES} == set(RULES)

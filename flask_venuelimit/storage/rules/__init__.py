"""Each policy's rule, twice, side by side: in Python and in Lua, with the same names in the same order.

A rule is two small functions over a small state. ``take`` charges a cost if it fits; ``give_back`` undoes
a charge. A rule whose charges are held has a third, ``renew``. None knows where the state is kept. What two
rules share stands beside them, in ``bucket`` and ``log``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import concurrency, fixed_window, leaky_bucket, sliding_log, sliding_window, token_bucket
from .outcome import Outcome, new_birth

__all__ = ["RULES", "Outcome", "Rule", "new_birth"]


class Rule(NamedTuple):
    """The functions of a rule.

    :param take: ``(state, now, cost, birth, *numbers) -> Outcome``.
    :param give_back: ``(state, now, cost, token, *numbers) -> state or None``.
    :param renew: ``(state, now, token, *numbers) -> state or None``; None where no charge is held.
    """

    take: Callable[..., Outcome]
    give_back: Callable[..., tuple[Any, ...] | None]
    renew: Callable[..., tuple[Any, ...] | None] | None = None


#: Which rule counts for a policy, by :attr:`~flask_venuelimit.policies.Policy.kind`.
RULES = {
    "fixed-window": Rule(fixed_window.take, fixed_window.give_back),
    "sliding-window": Rule(sliding_window.take, sliding_window.give_back),
    "sliding-log": Rule(sliding_log.take, sliding_log.give_back),
    "token-bucket": Rule(token_bucket.take, token_bucket.give_back),
    "leaky-bucket": Rule(leaky_bucket.take, leaky_bucket.give_back),
    "concurrency": Rule(concurrency.take, concurrency.give_back, concurrency.renew),
}

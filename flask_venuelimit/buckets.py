"""A limit's counters: under which name, with which ids, ruled by which policies.

All of it is worked out before a request, save where the policies are told at each request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .limits import Limit
from .policies import Policy
from .terms import Cost, Plan

#: The cells of a limit while nobody knows whose: an id, which is the last part of a key, and a policy each.
Cells = tuple[tuple[str, Policy], ...]


class Bucket(NamedTuple):
    """A limit under the name it has at one endpoint, with all that can be known before a request.

    :param scope: what its counters' ids are made from, besides the policies.
    :param cells: one a policy; or the function that tells the policies at each request.
    :param address_cells: the same where the address stands in for an unknown identity.
    :param lasts: whether the end of a request may have to give something back.
    """

    limit: Limit
    name: str
    cost: Cost
    scope: str
    cells: Cells | Callable[[], Any]
    address_cells: Cells | Callable[[], Any]
    lasts: bool

    @classmethod
    def of(cls, limit: Limit, name: str, cost: Cost, method: str, plans: Mapping[str, Plan]) -> Bucket:
        """Name a limit, and work out the ids of its counters.

        :param method: the request's; HEAD is GET.
        :param plans: the app's own policies for named limits, in place of the declared ones.
        """
        terms = limit.terms
        # an endpoint may be called as some limit is, and has buckets of its own all the same
        scope = name if limit.name else f"\0{name}"
        if terms.per_method:
            scope += f"\0{'GET' if method == 'HEAD' else method}"
        own = _planned(scope, plans.get(limit.name or "", terms.plan))
        address = _planned(scope, terms.per_address) or own
        lasts = terms.refund_if is not None or _may_hold(own) or _may_hold(address)
        return cls(limit, name, cost, scope, own, address, lasts)

    def of_each(self, methods: Iterable[str], plans: Mapping[str, Plan]) -> list[Bucket]:
        """This bucket; where each method has one of its own, those of all these methods."""
        if not self.limit.terms.per_method:
            return [self]
        return [Bucket.of(self.limit, self.name, self.cost, method, plans) for method in methods]


def _planned(scope: str, plan: Plan) -> Cells | Callable[[], Any]:
    return plan if callable(plan) else cells(scope, plan)


def _may_hold(planned: Cells | Callable[[], Any]) -> bool:
    """Whether there may be a slot among what is charged."""
    return callable(planned) or any(policy.held for _, policy in planned)


@lru_cache(maxsize=1024)
def cells(scope: str, policies: tuple[Policy, ...]) -> Cells:
    """Give each policy of a limit a cell.

    The id tells scope, kind and window, not the number: a changed number keeps the usage counted so far,
    a changed kind or window starts anew.
    """
    made: list[tuple[str, Policy]] = []
    for policy in policies:
        nth = sum(other.identity == policy.identity for _, other in made)
        text = f"{scope}\0{policy.identity}\0{nth}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        made.append((base64.urlsafe_b64encode(digest[:8])[:11].decode(), policy))
    return tuple(made)

"""What a drill drives: each limit by each of its policies, in terms that call nothing of the app's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from flask import Response, request

from ..coverage import UNMATCHED
from ..keys import Key, Stage, by_ip
from ..overview import Share, shares
from ..policies import Policy
from ..terms import Plan, Terms
from ..visits import succeeded

if TYPE_CHECKING:
    from ..state import AppState

#: The header by which a caller of a drill says who it is.
WHO = "X-Venuelimit-Drill"


class Lane(NamedTuple):
    """One way into one limit.

    :param label: the limit's name, and what tells this way from another.
    :param terms: what is declared in the scratch namespace.
    :param policies: empty where they are told at each request.
    :param shared: whether it counts an address, and so everybody behind it.
    :param endpoint: where it applies, so that the handlers of that blueprint answer; empty for everywhere.
    """

    label: str
    terms: Terms
    policies: tuple[Policy, ...]
    shared: bool
    endpoint: str

    @property
    def closed(self) -> bool:
        """Whether it refuses everything, so that no wait helps."""
        return any(not policy.holds(self.cost) for policy in self.policies)

    @property
    def cost(self) -> int:
        """What a request is charged; 1 where that is told at each request."""
        return self.terms.cost if isinstance(self.terms.cost, int) else 1

    @property
    def held(self) -> bool:
        """Whether a charge is given back once the work is done, so that no arithmetic tells the wait."""
        return any(policy.held for policy in self.policies)

    @property
    def status(self) -> int:
        """What the scratch view answers: a failure, where successes get their charge back."""
        return 204 if self.terms.refund_if is None else 401


def lanes(state: AppState) -> list[Lane]:
    """List what can be driven in an app, in the order of declaration.

    :raises ConfigurationError: ``VENUELIMIT_LIMITS`` does not match the limits.
    """
    state.check_plans()
    return [lane for share in shares(state) for lane in _lanes(state, share)]


def _lanes(state: AppState, share: Share) -> Iterator[Lane]:
    terms, name = share.bucket.limit.terms, share.bucket.name
    label = name if share.method is None else f"{name} ({share.method})"
    own = state.settings.limits.get(terms.name or "", terms.plan)
    key = by_ip if terms.key is by_ip else Key(terms.key.kind, _caller, stage=Stage.FRONT)
    yield _lane(label, share, own, key)
    if terms.per_address:
        yield _lane(f"{label}, for an address", share, terms.per_address, by_ip)


def _lane(label: str, share: Share, plan: Plan, key: Key) -> Lane:
    endpoints = [place.endpoint for place in share.places]
    # what stands everywhere is no blueprint's more than another's
    endpoint = endpoints[0] if endpoints and UNMATCHED not in endpoints else ""
    made = _scratch_terms(share, plan, key)
    return Lane(label, made, () if callable(plan) else plan, key is by_ip, endpoint)


def _scratch_terms(share: Share, plan: Plan, key: Key) -> Terms:
    """The limit's own terms, with nothing in them that would ask the app."""
    terms, cost = share.bucket.limit.terms, share.bucket.cost
    rule = terms.refund_if
    return replace(
        terms,
        name=share.bucket.name,
        plan=plan,
        key=key,
        per_address=(),
        cost=cost if isinstance(cost, int) else 1,
        methods=None,
        per_method=False,
        unless=None,
        refund_if=rule if rule in (None, succeeded) else _never,
    )


def _caller() -> str | None:
    return request.headers.get(WHO)


def _never(response: Response) -> bool:
    """Stands for a rule of the app's own: the charge stays, as if every request had been a failure."""
    return False

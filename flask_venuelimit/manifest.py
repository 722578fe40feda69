"""What an app limits, as plain data that JSON can carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .overview import Place, Share, shares
from .policies import Policy
from .storage.memory import MemoryStorage
from .terms import Cost, Plan

if TYPE_CHECKING:
    from .state import AppState


def manifest(state: AppState) -> dict[str, Any]:
    """Describe an app's limits.

    :returns: ``app``: its name; ``counting``: whether limits count now; ``storage``: where;
        ``shared``: whether other processes count there too; ``exempt_if``: whether the app's own predicates
        exempt requests; ``limits``: an entry for each limit, of an unnamed one for each endpoint, in the
        order of declaration.
    :raises ConfigurationError: ``VENUELIMIT_LIMITS`` does not match the limits.
    """
    state.check_plans()
    by_limit: dict[tuple[object, str], list[Share]] = {}
    for share in shares(state):
        by_limit.setdefault((share.bucket.limit, share.bucket.name), []).append(share)
    return {
        "app": state.app.name,
        "counting": state.counting,
        "storage": repr(state.raw_storage) if state.raw_storage.counts else None,
        "shared": state.raw_storage.counts and not isinstance(state.raw_storage, MemoryStorage),
        "exempt_if": bool(state.declared.exempt_predicates),
        "limits": [_limit(state, each) for each in by_limit.values()],
    }


def _limit(state: AppState, shares: Sequence[Share]) -> dict[str, Any]:
    """One entry: ``policies`` is None where they are told at each request, and so is a cost."""
    limit, name = shares[0].bucket.limit, shares[0].bucket.name
    terms = limit.terms
    return {
        "name": name,
        "named": limit.name is not None,
        "policies": _policies(state.settings.limits.get(limit.name or "", terms.plan)),
        "per_address": _policies(terms.per_address) if terms.per_address else None,
        "key": terms.key.kind,
        "stage": terms.key.stage_for(state.declared).name.lower(),
        "cost": _cost(terms.cost),
        "methods": sorted(terms.methods) if terms.methods else None,
        "per_method": terms.per_method,
        "unless": terms.unless is not None,
        "per_process": terms.per_process,
        "refunds": terms.refund_if is not None,
        "budget": terms.budget,
        "shadow": terms.shadow,
        "on_error": terms.on_failure(state.settings.on_error),
        "covers": _covers([place for share in shares for place in share.places]),
    }


def _policies(plan: Plan) -> list[dict[str, Any]] | None:
    return None if callable(plan) else [_policy(policy) for policy in plan]


def _policy(policy: Policy) -> dict[str, Any]:
    """``window`` is in seconds, None for a policy that has none."""
    return {
        "policy": policy.spelling,
        "kind": policy.kind,
        "quota": policy.quota,
        "window": policy.window,
    }


def _cost(cost: Cost) -> int | None:
    return cost if isinstance(cost, int) else None


def _covers(places: Sequence[Place]) -> list[dict[str, Any]]:
    """What is covered: each endpoint at each of its costs, with the methods; GET includes HEAD."""
    found: dict[tuple[str, Cost], list[str]] = {}
    for endpoint, method, cost in places:
        methods = found.setdefault((endpoint, cost), [])
        if method not in methods:
            methods.append(method)
    return [
        {"endpoint": endpoint, "methods": sorted(methods), "cost": _cost(cost)}
        for (endpoint, cost), methods in found.items()
    ]

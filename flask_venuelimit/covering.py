"""What covers each request of one app: worked out once for an endpoint and method, then looked up."""

from __future__ import annotations

from collections.abc import Mapping

from flask import Flask, Request
from werkzeug.routing import Rule

from .coverage import UNMATCHED, Coverage, cover
from .declarations import Declarations
from .terms import Plan

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})


class Covering:
    """One app's coverages, kept until something else is declared.

    :param owner: the limiter, as exemptions name it.
    :param plans: the app's own policies for named limits.
    """

    def __init__(self, app: Flask, declared: Declarations, owner: object, plans: Mapping[str, Plan]) -> None:
        self._app = app
        self._declared = declared
        self._owner = owner
        self._plans = plans
        self._kept: dict[tuple[str | None, str], Coverage] = {}
        self._version = -1

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._kept)

    def of(self, request: Request) -> Coverage:
        """What covers a request."""
        method, rule = request.method, request.url_rule
        if method == "OPTIONS" and getattr(rule, "provide_automatic_options", False):
            return self.nothing(request)
        if method not in _METHODS:
            method = self._known(method, rule)
        if self._version != self._declared.version:
            # a new one: what another thread is working out may be of yesterday, and goes into the old one
            self._kept, self._version = {}, self._declared.version
        endpoint, coverages = request.endpoint, self._kept
        kept = coverages.get((endpoint, method))
        if not (kept and kept.view is self._app.view_functions.get(endpoint or "")):
            kept = cover(self._app, self._declared, self._owner, endpoint, method, self._plans)
            coverages[endpoint, method] = kept
        return kept

    def nothing(self, request: Request) -> Coverage:
        """What covers a request that no limit may touch; by hand, limits have the app's numbers there too."""
        endpoint = request.endpoint or UNMATCHED
        method = self._known(request.method, request.url_rule)
        return Coverage(endpoint, exempt=True, method=method, plans=self._plans)

    def methods(self) -> frozenset[str]:
        """The request methods there can be in this app."""
        rules = (rule.methods or () for rule in self._app.url_map.iter_rules())
        return _METHODS.union(self._limited_methods(), *rules)

    def _known(self, method: str, rule: Rule | None) -> str:
        """A request's method; a stranger's text, which neither HTTP, a route nor a limit names, is GET."""
        # a route without methods lets any pass, and each would have a coverage, and a bucket, of its own
        routed = getattr(rule, "methods", None) or ()
        known = method in _METHODS or method in routed or method in self._limited_methods()
        return method if known else "GET"

    def _limited_methods(self) -> frozenset[str]:
        return frozenset().union(*(limit.terms.methods or () for limit in self._declared.limits))

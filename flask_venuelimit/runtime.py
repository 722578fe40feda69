"""What limits ask of the limiter they belong to: find the app at hand, then decide there."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from flask import Blueprint, Flask, Request, current_app, has_app_context, has_request_context
from flask.globals import request_ctx

from .callbacks import logger
from .decisions import Decision, uncounted
from .declarations import Declarations
from .errors import ConfigurationError
from .limits import Application, Limit, Stack
from .state import AppState, state_of
from .terms import Cost, Terms
from .visits import Visit


class Runtime:
    """A limiter at work; implements :class:`flask_venuelimit.limits.Runtime`.

    :param owner: the limiter.
    """

    def __init__(self, owner: object, declared: Declarations) -> None:
        self._owner = owner
        self._declared = declared
        # whoever makes an app for each test does not keep them all
        self.apps: WeakSet[Flask] = WeakSet()
        self._warned: set[str] = set()

    def state(self) -> AppState | None:
        """What the app at hand keeps for us: the current app, or without a context the only one."""
        app = current_app._get_current_object() if has_app_context() else self._only_app()  # type: ignore[attr-defined]
        state = None if app is None else state_of(app)
        return state if state is not None and state.owner is self._owner else None

    def state_at_hand(self) -> AppState:
        """What the app at hand keeps for us.

        :raises ConfigurationError: there is none.
        """
        state = self.state()
        if state is None:
            raise ConfigurationError(
                "no app is at hand that this VenueLimit serves. Call init_app on the app, and push its "
                "context: with app.app_context(): ..."
            )
        return state

    def visit(self) -> Visit | None:
        """The visit of the current request, or None outside one."""
        state = self.state()
        if state is None or (request := _request_to(state)) is None:
            return None
        return state.visit(request)

    def attach(self, limit: Limit, cost: Cost, blueprint: Blueprint | None) -> None:
        """Cover a blueprint, or the whole app where it is None."""
        self._declared.attach(Application(limit, cost), blueprint)

    def exempt(self, target: Any, limit: Limit) -> None:
        """Exempt a view or blueprint from one limit."""
        self._declared.exempt(target, limit)

    def refusal(self, limit: Limit, decision: Decision) -> Exception | None:
        """Tell of a refusing decision: the exception to raise, or None where the limit only watches."""
        state = self.state()
        assert state is not None, "a decision that refuses was made by an app"
        if decision.shadow:
            state.till.tell_refused(decision)
            return None
        visit = self._visit_of(state)
        visit.raised = state.till.refusal(decision, limit.terms.message)
        return visit.raised

    def enforce(self, stack: Stack) -> None:
        """Decide a decorated view's limits where they stand.

        :raises Refusal: one of them refuses, or lets nobody pass because nobody can count.
        """
        for application in stack.applications:
            application.limit.used = True
        state = self.state()
        if state is None:
            self._warn_of_no_app(f"the limits on {getattr(stack.view, '__qualname__', stack.view)!r} admit")
        elif state.till.counting:
            self._visit_of(state).decide_stack(stack)

    def decide_by_hand(self, limit: Limit, cost: int, subject: object, *, peek: bool) -> Decision:
        """Charge or look, in or out of a request; where no app can be told, admit and log."""
        state = self.state()
        if state is None:
            self._warn_of_no_app(f"the limit {limit.name or limit!r} admits")
            plan = limit.terms.plan
            return uncounted(
                limit.name or "unnamed",
                "no-app:00000000",
                None if callable(plan) else plan[0],
                shadow=limit.terms.shadow,
            )
        visit = self._visit_of(state)
        whose = visit.who.subject_by_hand(limit.terms.key, subject)
        return visit.by_hand(visit.coverage.bucket_of(limit), cost, whose, peek=peek)

    def refund_by_hand(self, decision: Decision) -> None:
        """Give a decision's charge back."""
        state = self.state()
        if state is None:
            self._warn_of_no_app(f"a charge of the limit {decision.limit!r} stays")
        elif decision.receipt is not None:
            state.storage.refund([decision.receipt])

    def release_by_hand(self, decision: Decision) -> None:
        """Give back the slots a decision holds, and nothing else."""
        state = self.state()
        slots = None if decision.receipt is None else decision.receipt.slots()
        if state is not None and slots is not None:
            state.storage.refund([slots])

    def reset_by_hand(self, limit: Limit, subject: object) -> None:
        """Forget what a subject used."""
        state = self.state()
        if state is None:
            self._warn_of_no_app(f"the limit {limit.name or limit!r} is not reset")
            return
        visit = self._visit_of(state)
        whose = visit.who.subject_by_hand(limit.terms.key, subject)
        buckets = visit.coverage.buckets_of(limit, state.methods())
        state.till.forget(visit.who, buckets, whose)

    def _only_app(self) -> Flask | None:
        apps = list(self.apps)
        return apps[0] if len(apps) == 1 else None

    def _visit_of(self, state: AppState) -> Visit:
        request = _request_to(state)
        return state.detached_visit() if request is None else state.visit(request)

    def look_at(self, terms: Terms) -> None:
        """Warn, once, of a limit without a name that a request declares: nothing ties it to the last one."""
        if terms.name is None and has_request_context() and "in a request" not in self._warned:
            self._warned.add("in a request")
            logger.warning(
                "a limit without a name (%s) is declared inside a request: each request makes another one, "
                "of which nothing is used, so it refuses nobody. Declare it once, where the limiter is made, "
                "or give it a name.",
                terms.spelling,
            )

    def _warn_of_no_app(self, effect: str) -> None:
        """Warn, once for each effect, that no app of ours is at hand."""
        if effect not in self._warned:
            self._warned.add(effect)
            found = "no app is" if not self.apps or has_app_context() else "several apps are"
            logger.warning(
                "%s: %s initialised with this VenueLimit here. Call init_app on the app, or push its app "
                "context.",
                effect,
                found,
            )


def _request_to(state: AppState) -> Request | None:
    """The request at hand, if it is made to this app: another's context may be pushed."""
    context = request_ctx._get_current_object() if has_request_context() else None  # type: ignore[attr-defined]
    return context.request if context is not None and context.app is state.app else None

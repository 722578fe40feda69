"""A limit: a named policy with a key, and what it covers.

Declaring one says how much, for whom, and what it costs. It is then put on views, blueprints or the
whole app, or asked by hand.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, overload

from flask import Blueprint

from .decisions import Decision
from .errors import ConfigurationError
from .terms import Cost, Terms

Target = TypeVar("Target", bound=Callable[..., Any] | Blueprint)
View = TypeVar("View", bound=Callable[..., Any])

#: The attribute of a decorated function that holds its :class:`Stack`.
STACK = "__venuelimit__"
#: The attribute of an exempt function or class that holds what it is exempt from.
EXEMPT = "__venuelimit_exempt__"


@dataclass(frozen=True)
class Application:
    """A limit put somewhere, at a cost."""

    limit: Limit
    cost: Cost


@dataclass(eq=False)
class Stack:
    """Directly stacked decorators on one function: decided together, from the outside in."""

    applications: tuple[Application, ...]
    view: Callable[..., Any]
    wrapper: Callable[..., Any] | None = None


class Runtime(Protocol):
    """What a limit needs of the limiter it belongs to."""

    def attach(self, limit: Limit, cost: Cost, blueprint: Blueprint | None) -> None:
        """Cover a blueprint, or the whole app where it is None."""
        ...

    def enforce(self, stack: Stack) -> None:
        """Decide a decorated view's limits where they stand; raises what refuses."""
        ...

    def decide_by_hand(self, limit: Limit, cost: int, subject: object, *, peek: bool) -> Decision:
        """Charge or look, in or out of a request."""
        ...

    def refund_by_hand(self, decision: Decision) -> None:
        """Give a decision's charge back."""
        ...

    def release_by_hand(self, decision: Decision) -> None:
        """Give back the slots a decision holds, and nothing else."""
        ...

    def reset_by_hand(self, limit: Limit, subject: object) -> None:
        """Forget what a subject used."""
        ...

    def refusal(self, limit: Limit, decision: Decision) -> Exception | None:
        """Tell of a refusing decision: the exception to raise, or None where the limit only watches."""
        ...

    def exempt(self, target: Any, limit: Limit) -> None:
        """Exempt a view or blueprint from one limit."""
        ...


class Limit:
    """A named policy with a key; made by :meth:`VenueLimit.limit`, never directly.

    Decorate a view with it, call it with a blueprint, or let it cover :meth:`everywhere`. Limits add
    up: a narrower one never replaces a wider one.
    """

    def __init__(self, terms: Terms, runtime: Runtime, number: int = 0) -> None:
        self.terms = terms
        #: Tells its counters from those of other limits without a name.
        self.number = number
        self._runtime = runtime
        #: Whether it has been asked, by hand or by a call of what it decorates.
        self.used = False
        #: What the functions are called that it decorates. They are not kept: an app may come and go.
        self.decorates: dict[str, None] = {}
        #: The fixed costs at which it was put anywhere.
        self.costs: set[int] = set()
        #: Equal limits share it.
        self.itself = object()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limit) and self.itself is other.itself

    def __hash__(self) -> int:
        return hash(self.itself)

    def become(self, other: Limit) -> None:
        """Be the same limit as an equal one from now on."""
        self.itself, self.number = other.itself, other.number

    @property
    def name(self) -> str | None:
        """The name it was declared with."""
        return self.terms.name

    def __repr__(self) -> str:
        return f"<Limit {self.name or 'unnamed'}: {self.terms.spelling} by {self.terms.key.kind}>"

    @overload
    def __call__(self, target: View) -> View: ...
    @overload
    def __call__(self, target: Blueprint) -> Blueprint: ...
    @overload
    def __call__(self, *, cost: Cost) -> Callable[[Target], Target]: ...

    def __call__(self, target: Any = None, *, cost: Cost | None = None) -> Any:
        """Cover a view (as a decorator) or a blueprint with its nested ones.

        :param cost: what a request costs there, instead of the limit's own cost.
        :raises ConfigurationError: the target is no view and no blueprint, or the cost cannot be kept.
        """
        if cost is not None:
            self.terms.check(cost)
        if target is None:
            return functools.partial(self.__call__, cost=cost)
        cost = self.terms.cost if cost is None else cost
        if isinstance(target, Blueprint):
            self._runtime.attach(self, cost, target)
            return target
        if inspect.isclass(target) or not callable(target):
            which = repr(self.name) if self.name else "without a name"
            raise ConfigurationError(
                f"the limit {which} was put on {target!r}. It covers a view "
                "function or a blueprint; for a class-based view use its `decorators` or one of its methods."
            )
        return self._decorate(target, cost)

    def _decorate(self, view: Callable[..., Any], cost: Cost) -> Callable[..., Any]:
        inner = getattr(view, STACK, None)
        applications: tuple[Application, ...] = (Application(self, cost),)
        # functools.wraps of somebody else's decorator copies the attribute along: only our own wrapper,
        # not one around it, is a direct neighbour
        if isinstance(inner, Stack) and inner.wrapper is view:
            applications += inner.applications
            view = inner.view
        stack = Stack(applications, view)
        stack.wrapper = _wrap(view, stack, self._runtime)
        setattr(stack.wrapper, STACK, stack)
        self.decorates[getattr(view, "__qualname__", type(view).__qualname__)] = None
        self.put_at(cost)
        return stack.wrapper

    def put_at(self, cost: Cost) -> None:
        """Remember at which cost it covers something."""
        if isinstance(cost, int):
            self.costs.add(cost)

    def everywhere(self, *, cost: Cost | None = None) -> Limit:
        """Cover every request of the app, 404s and 405s included."""
        if cost is not None:
            self.terms.check(cost)
        self._runtime.attach(self, self.terms.cost if cost is None else cost, None)
        return self

    def exempt(self, target: Target) -> Target:
        """Opt a view, a view class or a blueprint out of this limit; works as a decorator."""
        self._runtime.exempt(target, self)
        return target

    def hit(self, cost: int = 1, *, subject: object = None) -> Decision:
        """Charge by hand, in or out of a request. Never raises for a refusal: look at ``allowed``.

        ``refund_if`` plays no part: what is charged by hand is given back by hand.

        :param cost: a whole number, at least 1.
        :param subject: what the limit's key would return, instead of asking it.
        :raises ValueError: the cost is below 1 or no whole number, or the subject is of no usable type.
        """
        return self._by_hand(cost, subject, peek=False)

    def peek(self, cost: int = 1, *, subject: object = None) -> Decision:
        """Answer what :meth:`hit` would, and write nothing."""
        return self._by_hand(cost, subject, peek=True)

    def refund(self, decision: Decision) -> None:
        """Give back what ``decision`` charged, once, where the counters still hold it."""
        self._runtime.refund_by_hand(decision)

    def reset(self, subject: object) -> None:
        """Forget what ``subject`` has used of this limit.

        :param subject: what the limit's key would return.
        :raises ValueError: it is of no usable type.
        """
        self._runtime.reset_by_hand(self, subject)

    @contextmanager
    def guard(self, cost: int = 1, *, subject: object = None) -> Iterator[Decision]:
        """Charge by hand around a block, and hold a Concurrency slot for as long as it runs.

        :raises RateLimited: there is no room; the block does not run.
        :raises LimiterUnavailable: storage fails, and the limit lets nobody pass meanwhile.
        """
        decision = self.hit(cost, subject=subject)
        refusal = None if decision.allowed else self._runtime.refusal(self, decision)
        if refusal is not None:
            raise refusal
        try:
            yield decision
        finally:
            self._runtime.release_by_hand(decision)

    def _by_hand(self, cost: object, subject: object, *, peek: bool) -> Decision:
        if isinstance(cost, bool) or not isinstance(cost, int) or cost < 1:
            raise ValueError(f"the cost is {cost!r}. Use a whole number of at least 1.")
        self.used = True
        return self._runtime.decide_by_hand(self, cost, subject, peek=peek)


def _wrap(view: Callable[..., Any], stack: Stack, runtime: Runtime) -> Callable[..., Any]:
    """Put the decision in front of ``view``; an async view stays one, for decorators that await it."""
    if inspect.iscoroutinefunction(view):

        @functools.wraps(view)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            runtime.enforce(stack)
            return await view(*args, **kwargs)

        return awaited

    @functools.wraps(view)
    def limited(*args: Any, **kwargs: Any) -> Any:
        runtime.enforce(stack)
        return view(*args, **kwargs)

    return limited

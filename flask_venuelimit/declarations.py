"""What a limiter was told: its limits, where they stand, who is exempt, and how people are identified.

Declarations belong to the VenueLimit and cover every app it serves. Nothing here knows an app.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

from flask import Blueprint

from . import sessions
from .callbacks import alike
from .errors import ConfigurationError
from .keys import Stage
from .limits import EXEMPT, Application, Limit, Runtime
from .policies import Policy
from .terms import Terms, check_cost


@dataclass(frozen=True)
class Loader:
    """How one sort of identity is told.

    :param role: ``"participant"`` or ``"user"``.
    :param stage: when it can be asked.
    """

    role: str
    load: Callable[[], Any]
    stage: Stage


def check_plans(plans: Mapping[str, tuple[Policy, ...]], declared: Declarations) -> None:
    """Hold an app's own policies against the limits they are for.

    :raises ConfigurationError: there is no such limit, or its numbers are fixed, or its cost never fits.
    """
    for name, policies in plans.items():
        limit = declared.named.get(name)
        if limit is None:
            known = ", ".join(sorted(declared.named)) or "none"
            raise ConfigurationError(
                f"VENUELIMIT_LIMITS names {name!r}, but no limit has this name. Declared are: {known}."
            )
        if limit.terms.budget:
            raise ConfigurationError(
                f"VENUELIMIT_LIMITS changes {name!r}, which is a budget: its numbers guard spending, and are "
                "changed in code alone. Take it out of the setting."
            )
        try:
            for cost in (limit.terms.cost, *limit.costs):
                check_cost(cost, policies)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"VENUELIMIT_LIMITS has for {name!r} what is too small: {error}"
            ) from None


@dataclass
class Declarations:
    """Everything declared on one limiter.

    :param version: grows with each declaration, so that what was worked out from them can be renewed.
    """

    limits: list[Limit] = field(default_factory=list)
    named: dict[str, Limit] = field(default_factory=dict)
    everywhere: list[Application] = field(default_factory=list)
    blueprints: WeakKeyDictionary[Blueprint, list[Application]] = field(default_factory=WeakKeyDictionary)
    exempt_blueprints: WeakKeyDictionary[Blueprint, list[object]] = field(default_factory=WeakKeyDictionary)
    exempt_views: list[tuple[object, object]] = field(default_factory=list)
    exempt_predicates: list[Callable[[], Any]] = field(default_factory=list)
    loaders: dict[str, Loader] = field(
        default_factory=lambda: {
            "participant": Loader("participant", sessions.participant, Stage.FRONT),
            "user": Loader("user", sessions.user, Stage.FRONT),
        }
    )
    version: int = 0
    numbers: Iterator[int] = field(default_factory=count)

    def stage_of(self, role: str) -> Stage:
        """When the callback for ``role`` can be asked."""
        return self.loaders[role].stage

    def identify(self, loader: Loader) -> None:
        """Put a callback in the place of a built-in one, or of an earlier one."""
        self.loaders[loader.role] = loader
        self.version += 1

    def declare(self, terms: Terms, runtime: Runtime) -> Limit:
        """Add a limit, or find the equal one: a factory that runs twice declares twice.

        :raises ConfigurationError: another limit has this name.
        """
        known = self.named.get(terms.name) if terms.name else None
        if known is not None:
            if not known.terms.matches(terms):
                raise ConfigurationError(
                    f"the limit {terms.name!r} is declared twice, and differently. Give one of them another "
                    "name; if a factory declares it, pass functions that live at module level."
                )
            return known
        limit = Limit(terms, runtime, next(self.numbers))
        self.limits.append(limit)
        if terms.name:
            self.named[terms.name] = limit
        self.version += 1
        return limit

    def attach(self, application: Application, blueprint: Blueprint | None) -> None:
        """Let a limit cover a blueprint, or every request where it is None. Twice is once."""
        if blueprint is None:
            self._unite(application)
        here = self.everywhere if blueprint is None else self.blueprints.setdefault(blueprint, [])
        limit, cost = application.limit, application.cost
        if not any(known.limit == limit and alike(known.cost, cost) for known in here):
            here.append(application)
        limit.put_at(cost)
        self.version += 1

    def _unite(self, application: Application) -> None:
        """Let a limit without a name that covers everything be the equal one that does already.

        The number of limits would grow with each app that a factory makes.
        """
        limit = application.limit
        for known in self.everywhere:
            same = known.limit.name is None and known.limit.terms.matches(limit.terms)
            if same and known.limit != limit and alike(known.cost, application.cost):
                self.limits.remove(limit)
                limit.become(known.limit)

    def exempt_if(self, predicate: Callable[[], Any]) -> None:
        """Exempt requests for which ``predicate`` answers true; twice is once."""
        if not any(alike(predicate, known) for known in self.exempt_predicates):
            self.exempt_predicates.append(predicate)

    def exempt(self, target: Any, what: object) -> None:
        """Exempt a view, a view class or a blueprint from ``what``: one limit, or a whole limiter.

        :raises ConfigurationError: the target is none of these.
        """
        if isinstance(target, Blueprint):
            self.exempt_blueprints.setdefault(target, []).append(what)
        elif callable(target):
            self._mark(target, what)
        else:
            raise ConfigurationError(
                f"{target!r} cannot be exempt. Use a view function or class, or a blueprint."
            )
        self.version += 1

    def _mark(self, view: Any, what: object) -> None:
        try:
            # an attribute, so that functools.wraps carries it outwards
            setattr(view, EXEMPT, (*getattr(view, EXEMPT, ()), what))
        except (AttributeError, TypeError):
            # a bound method, or an object with slots, takes none
            self.exempt_views.append((view, what))

"""Which limits cover an endpoint, where each is decided, and what it is called there.

Worked out once for an endpoint and method, then kept: a request looks its answer up.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flask import Flask

from .declarations import Declarations
from .keys import Stage
from .limits import EXEMPT, STACK, Application, Cost, Limit, Stack
from .policies import Policy

UNMATCHED = "unmatched"


class Bucket(NamedTuple):
    """A limit under the name it has at one endpoint, with all that can be known before a request.

    :param cells: an id and a policy each; the id is the last part of a storage key.
    :param address_cells: the same where the address stands in for an unknown identity.
    """

    limit: Limit
    name: str
    cost: Cost
    cells: tuple[tuple[str, Policy], ...]
    address_cells: tuple[tuple[str, Policy], ...]


def bucket(limit: Limit, name: str, cost: Cost) -> Bucket:
    """Name a limit, and work out the ids of its counters."""
    own = cells(name, limit.terms.policies)
    return Bucket(limit, name, cost, own, cells(name, limit.terms.per_address) or own)


def cells(name: str, policies: Iterable[Policy]) -> tuple[tuple[str, Policy], ...]:
    """Give each policy of a limit the id of its counter.

    The id tells name, kind and window, not the number: a changed number keeps the usage counted so far,
    a changed kind or window starts anew.
    """
    made: list[tuple[str, Policy]] = []
    for policy in policies:
        nth = sum(other.identity == policy.identity for _, other in made)
        text = f"{name}\0{policy.identity}\0{nth}"
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        made.append((base64.urlsafe_b64encode(digest[:8])[:11].decode(), policy))
    return tuple(made)


@dataclass(frozen=True)
class Coverage:
    """What covers one endpoint and method.

    :param front: decided before everything of the app.
    :param ending: decided after all before-request hooks.
    :param at_decorators: decided where the decorator stands.
    :param silent: limits that stand here and do not apply (another method, or exempt).
    :param view: the view function all this was read from.
    :param hidden: limits met behind decorators that nobody could look through, by when they were met.
    """

    endpoint: str
    exempt: bool = False
    front: tuple[Bucket, ...] = ()
    ending: tuple[Bucket, ...] = ()
    at_decorators: dict[Limit, Bucket] = field(default_factory=dict)
    silent: frozenset[object] = frozenset()
    unnamed: int = 0
    view: Callable[..., Any] | None = None
    hidden: dict[Limit, Bucket] = field(default_factory=dict)

    def find(self, limit: Limit) -> Bucket | None:
        """This limit's bucket at this endpoint, if it covers it."""
        found = self.at_decorators.get(limit) or self.hidden.get(limit)
        return found or next((each for each in self.front + self.ending if each.limit is limit), None)

    def meet(self, application: Application) -> Bucket:
        """Name a limit that could not be seen before the request reached it."""
        limit = application.limit
        name = limit.name or _unnamed(self.endpoint, self.unnamed + len(self.hidden))
        return self.hidden.setdefault(limit, bucket(limit, name, application.cost))


def cover(app: Flask, declared: Declarations, owner: object, endpoint: str | None, method: str) -> Coverage:
    """Work out what covers ``endpoint``.

    :param owner: the limiter, as exemptions name it.
    :param endpoint: None for a request that matched no route.
    :param method: the request method; HEAD is GET.
    """
    view = app.view_functions.get(endpoint) if endpoint else None
    blueprints = _blueprints(app, endpoint)
    spared = {each for target in _chain(view, method) for each in getattr(target, EXEMPT, ())}
    spared |= {what for target, what in declared.exempt_blueprints if any(b is target for b in blueprints)}
    if owner in spared or (endpoint or "").rpartition(".")[2] == "static":
        return Coverage(endpoint or UNMATCHED, exempt=True, view=view)
    outer = [app_ for b in blueprints for target, app_ in declared.blueprints if target is b]
    outer += declared.everywhere
    stacked = [app_ for stack in _stacks(view, method) for app_ in stack.applications]
    names = _names(endpoint or UNMATCHED, [*_every_decorator(view), *outer])
    wide = {application.limit for application in outer}
    covered: dict[Limit, Application] = {}
    silent: set[object] = set(spared)
    for application in [*stacked, *outer]:
        limit = application.limit
        if limit in spared or not covers_method(limit, method):
            silent.add(limit)
        else:
            covered.setdefault(limit, application)
    points: dict[str, list[Bucket]] = {"front": [], "ending": [], "decorator": []}
    for limit, application in covered.items():
        made = bucket(limit, names.get(limit, ""), application.cost)
        at_front = limit.terms.key.stage_for(declared) is Stage.FRONT
        points["front" if at_front else "ending" if limit in wide else "decorator"].append(made)
    return Coverage(
        endpoint or UNMATCHED,
        front=tuple(points["front"]),
        ending=tuple(points["ending"]),
        at_decorators={each.limit: each for each in points["decorator"]},
        silent=frozenset(silent),
        unnamed=sum(limit.name is None for limit in names),
        view=view,
    )


def _blueprints(app: Flask, endpoint: str | None) -> list[Any]:
    """The blueprints an endpoint lies in, the innermost first."""
    found = []
    name = (endpoint or "").rpartition(".")[0]
    while name:
        if name in app.blueprints:
            found.append(app.blueprints[name])
        name = name.rpartition(".")[0]
    return found


def _unwrapped(function: Any) -> Iterator[Any]:
    """A function and what it wraps, from the outside in."""
    seen: list[Any] = []
    while function is not None and not any(function is each for each in seen):
        seen.append(function)
        yield function
        function = getattr(function, "__wrapped__", None)


def _chain(view: Any, method: str) -> Iterator[Any]:
    """All that a request to ``view`` passes through and that can be looked at, from the outside in."""
    yield from _unwrapped(view)
    if (view_class := getattr(view, "view_class", None)) is not None:
        yield view_class
        yield from _unwrapped(getattr(view_class, "dispatch_request", None))
        handler = getattr(view_class, method.lower(), None)
        yield from _unwrapped(handler or (getattr(view_class, "get", None) if method == "HEAD" else None))


def _stacks(view: Any, method: str) -> Iterator[Stack]:
    """The stacks of our decorators on the way, each once: functools.wraps copies them outwards."""
    seen: list[Stack] = []
    for function in _chain(view, method):
        stack = getattr(function, STACK, None)
        if isinstance(stack, Stack) and not any(stack is each for each in seen):
            seen.append(stack)
            yield stack


def _every_decorator(view: Any) -> Iterator[Application]:
    """Applications by decorator over all methods, so that a name does not depend on the method asked."""
    for stack in _every_stack(view):
        yield from stack.applications


def _every_stack(view: Any) -> Iterator[Stack]:
    for method in sorted(getattr(view, "methods", None) or {"GET"}):
        yield from _stacks(view, method)


def _names(endpoint: str, applications: Sequence[Application]) -> dict[Limit, str]:
    """What each limit is called at an endpoint: its name, or the endpoint's with a number."""
    names: dict[Limit, str] = {}
    unnamed = 0
    for application in applications:
        limit = application.limit
        if limit not in names:
            names[limit] = limit.name or _unnamed(endpoint, unnamed)
            unnamed += limit.name is None
    return names


def _unnamed(endpoint: str, earlier: int) -> str:
    # an endpoint may be any text, a name is sent in header fields
    plain = endpoint.encode("ascii", "backslashreplace").decode()
    return f"{plain}#{earlier + 1}" if earlier else plain


def covers_method(limit: Limit, method: str) -> bool:
    """Whether a limit covers a request method; GET includes HEAD."""
    methods = limit.terms.methods
    return methods is None or method in methods or (method == "HEAD" and "GET" in methods)


def idle(apps: Sequence[Flask], declared: Declarations) -> dict[Limit, list[Stack]]:
    """The limits that cover nothing in any of ``apps`` and were never asked by hand.

    :returns: each with the decorated functions that no route leads to; none where it was put on nothing.
    """
    views = [view for app in apps for view in app.view_functions.values()]
    reached = {id(stack) for view in views for stack in _every_stack(view)}
    registered = {id(each) for app in apps for each in app.blueprints.values()}
    busy = {application.limit for application in declared.everywhere}
    busy |= {application.limit for target, application in declared.blueprints if id(target) in registered}
    lost: dict[Limit, list[Stack]] = {}
    for stack in declared.stacks:
        for application in stack.applications:
            if stack.used or id(stack) in reached:
                busy.add(application.limit)
            else:
                lost.setdefault(application.limit, []).append(stack)
    return {each: lost.get(each, []) for each in declared.limits if each not in busy and not each.used}

"""Which limits cover an endpoint, where each is decided, and what it is called there.

Worked out once for an endpoint and method, then kept: a request looks its answer up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MethodType
from typing import Any
from urllib.parse import quote

from flask import Flask

from .buckets import Bucket
from .declarations import Declarations
from .keys import Stage
from .limits import EXEMPT, STACK, Application, Limit, Stack
from .terms import Plan

UNMATCHED = "unmatched"


@dataclass(frozen=True)
class Coverage:
    """What covers one endpoint and method.

    :param exempt: whether no limit at all touches it.
    :param front: decided before everything of the app.
    :param ending: decided after all before-request hooks.
    :param at_decorators: decided where the decorator stands.
    :param exempt_from: limits that do not touch it, wherever they stand.
    :param names: what each limit is called here, those on other methods of the view included.
    :param plans: the app's own policies for named limits.
    :param view: the view function all this was read from.
    :param hidden: limits met behind decorators that nobody could look through, by when they were met.
    """

    endpoint: str
    exempt: bool = False
    front: tuple[Bucket, ...] = ()
    ending: tuple[Bucket, ...] = ()
    at_decorators: dict[Limit, Bucket] = field(default_factory=dict)
    exempt_from: frozenset[object] = frozenset()
    names: dict[Limit, str] = field(default_factory=dict)
    method: str = "GET"
    plans: Mapping[str, Plan] = field(default_factory=dict)
    view: Callable[..., Any] | None = None
    hidden: dict[Limit, Bucket] = field(default_factory=dict)

    def find(self, limit: Limit) -> Bucket | None:
        """This limit's bucket at this endpoint, if it covers it."""
        found = self.at_decorators.get(limit) or self.hidden.get(limit)
        return found or next((each for each in self.front + self.ending if each.limit == limit), None)

    def meet(self, application: Application) -> Bucket:
        """Name a limit that could not be seen before the request reached it."""
        limit = application.limit
        earlier = sum(each.name is None for each in (*self.names, *self.hidden))
        name = limit.name or _unnamed(self.endpoint, earlier)
        bucket = Bucket.of(limit, name, application.cost, self.method, self.plans)
        return self.hidden.setdefault(limit, bucket)

    def bucket_of(self, limit: Limit) -> Bucket:
        """This limit's bucket for a call by hand: the one it has here, else one under its own name."""
        return self.find(limit) or self._own(limit, self.method)

    def buckets_of(self, limit: Limit, methods: Iterable[str]) -> list[Bucket]:
        """This limit's bucket for a call by hand, and where each method has its own, those of all of them."""
        bucket = self.find(limit)
        if bucket is None and limit.terms.per_method:
            return [self._own(limit, method) for method in methods]
        return (bucket or self._own(limit, self.method)).of_each(methods, self.plans)

    def _own(self, limit: Limit, method: str) -> Bucket:
        """The bucket of a limit that covers nothing here; one without a name shares it with no other."""
        name = limit.name or f"{self.endpoint}\0{limit.number}"
        bucket = Bucket.of(limit, name, limit.terms.cost, method, self.plans)
        return bucket if limit.name else bucket._replace(name=_unnamed(self.endpoint, 0))


def cover(
    app: Flask,
    declared: Declarations,
    owner: object,
    endpoint: str | None,
    method: str,
    plans: Mapping[str, Plan],
) -> Coverage:
    """Work out what covers ``endpoint``.

    :param owner: the limiter, as exemptions name it.
    :param endpoint: None for a request that matched no route.
    :param method: the request method; HEAD is GET.
    :param plans: the app's own policies for named limits.
    """
    view = app.view_functions.get(endpoint or "")
    name = endpoint or UNMATCHED
    blueprints = _blueprints(app, endpoint)
    exempt_from = _exempt_from(declared, view, method, blueprints)
    if owner in exempt_from or name.rpartition(".")[2] == "static":
        return Coverage(name, exempt=True, method=method, plans=plans, view=view)
    outer = _outer(declared, blueprints)
    names = _names(name, [*_applications(_every_stack(view)), *outer])
    covered = _covered([*_applications(_stacks(view, method)), *outer], exempt_from, method)
    buckets = [Bucket.of(each, names[each], covered[each].cost, method, plans) for each in covered]
    front, ending, at_decorators = _points(buckets, {application.limit for application in outer}, declared)
    return Coverage(
        name, False, front, ending, at_decorators, frozenset(exempt_from), names, method, plans, view
    )


def _outer(declared: Declarations, blueprints: Sequence[Any]) -> list[Application]:
    """What covers a view from further out: its blueprints' limits, the innermost first, then everywhere's."""
    inner = [each for blueprint in blueprints for each in declared.blueprints.get(blueprint, ())]
    return [*inner, *declared.everywhere]


def _covered(
    applications: Iterable[Application], exempt_from: set[object], method: str
) -> dict[Limit, Application]:
    """The limits that apply, each where it is most specific: what is given first wins."""
    covered: dict[Limit, Application] = {}
    for application in applications:
        if application.limit not in exempt_from and covers_method(application.limit, method):
            covered.setdefault(application.limit, application)
    return covered


def _points(
    buckets: Sequence[Bucket], outer: set[Limit], declared: Declarations
) -> tuple[tuple[Bucket, ...], tuple[Bucket, ...], dict[Limit, Bucket]]:
    """Each limit at the first point where it can be decided: the front, the end of hooks, its decorator."""
    front: list[Bucket] = []
    ending: list[Bucket] = []
    at_decorators: dict[Limit, Bucket] = {}
    for each in buckets:
        if each.limit.terms.key.stage_for(declared) is Stage.FRONT:
            front.append(each)
        elif each.limit in outer:
            ending.append(each)
        else:
            at_decorators[each.limit] = each
    return tuple(front), tuple(ending), at_decorators


def _exempt_from(declared: Declarations, view: Any, method: str, blueprints: Sequence[Any]) -> set[object]:
    """What a view is exempt from: limits, or the whole limiter."""
    chain = list(_chain(view, method))
    marked = {each for target in chain for each in getattr(target, EXEMPT, ())}
    named = {what for target, what in declared.exempt_views if any(_is(target, each) for each in chain)}
    within = {what for each in blueprints for what in declared.exempt_blueprints.get(each, ())}
    return marked | named | within


def _is(one: object, other: object) -> bool:
    """Whether two are the same; a bound method is made anew each time it is asked for."""
    return one is other or (isinstance(one, MethodType) and one == other)


def _blueprints(app: Flask, endpoint: str | None) -> list[Any]:
    """The blueprints an endpoint lies in, the innermost first."""
    found = []
    name = (endpoint or "").rpartition(".")[0]
    while name:
        if name in app.blueprints:
            found.append(app.blueprints[name])
        name = name.rpartition(".")[0]
    return found


def layers(function: Any) -> list[Any]:
    """A function and what it wraps, as ``functools.wraps`` tells, from the outside in."""
    found: list[Any] = []
    while function is not None and not any(function is each for each in found):
        found.append(function)
        function = getattr(function, "__wrapped__", None)
    return found


def _chain(view: Any, method: str) -> Iterator[Any]:
    """All that a request to ``view`` passes through and that can be looked at, from the outside in."""
    yield from layers(view)
    if (view_class := getattr(view, "view_class", None)) is not None:
        yield view_class
        yield from layers(getattr(view_class, "dispatch_request", None))
        handler = getattr(view_class, method.lower(), None)
        yield from layers(handler or (getattr(view_class, "get", None) if method == "HEAD" else None))


def _stacks(view: Any, method: str) -> Iterator[Stack]:
    """The stacks of our decorators on the way, each once: functools.wraps copies them outwards."""
    seen: list[Stack] = []
    for function in _chain(view, method):
        stack = getattr(function, STACK, None)
        if isinstance(stack, Stack) and not any(stack is each for each in seen):
            seen.append(stack)
            yield stack


def _applications(stacks: Iterable[Stack]) -> Iterator[Application]:
    for stack in stacks:
        yield from stack.applications


def _every_stack(view: Any) -> Iterator[Stack]:
    """Stacks over all methods of a view, so that a name does not depend on the method asked."""
    # only a class's view is asked for its methods: what else has such an attribute may mean anything by it
    of_a_class = getattr(view, "view_class", None) is not None
    for method in sorted((of_a_class and view.methods) or {"GET"}):
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
    plain = quote(endpoint, safe="/:;,!?*+=()&$'@~ ", errors="replace")
    return f"{plain}#{earlier + 1}" if earlier else plain


def covers_method(limit: Limit, method: str) -> bool:
    """Whether a limit covers a request method; GET includes HEAD."""
    methods = limit.terms.methods
    return methods is None or method in methods or (method == "HEAD" and "GET" in methods)


def idle(apps: Iterable[Flask], declared: Declarations) -> list[Limit]:
    """The limits that cover nothing in any of ``apps`` and were never asked."""
    lost = dict.fromkeys(limit for limit in declared.limits if not limit.used)
    for app in apps if lost else ():
        for application in _busy(app, declared):
            lost.pop(application.limit, None)
    return list(lost)


def _busy(app: Flask, declared: Declarations) -> Iterator[Application]:
    """What covers something in an app."""
    yield from _outer(declared, list(app.blueprints.values()))
    for view in app.view_functions.values():
        yield from _applications(_every_stack(view))

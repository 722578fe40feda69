"""VL201 to VL207: whether limits cover what they seem to cover, and refuse whom they seem to refuse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..coverage import idle, layers
from ..keys import Stage
from ..limits import Limit
from .findings import NOTE, WARNING, Check
from .functions import listed, stack_of, within
from .setup import Setup, policies

#: What functions are called that have no name of their own: one is called as the other.
_ANYBODYS = ("<lambda>", "as_view.<locals>.view")


def no_limits(setup: Setup) -> Iterator[str]:
    """There is nothing to be held to."""
    if not setup.limits:
        yield "No limit is declared."


def above_the_route(setup: Setup) -> Iterator[str]:
    """A decorator stands above ``@app.route``, so the route leads past it."""
    for limit, view in _misplaced(setup):
        yield f"The limit {_called(limit)} decorates {view}, but the route leads to the function without it."


def _misplaced(setup: Setup) -> Iterator[tuple[Limit, str]]:
    """The limits of functions to which a route leads past them, with what the functions are called."""
    routed: dict[str, list[Any]] = {}
    for view in setup.app.view_functions.values():
        functions = layers(view)
        routed.setdefault(getattr(functions[-1], "__qualname__", "<lambda>"), []).extend(functions)
    for limit in setup.limits:
        for name in limit.decorates:
            if name in routed and not name.endswith(_ANYBODYS) and not _has(routed[name], limit):
                yield limit, name


def _has(functions: Iterable[object], limit: Limit) -> bool:
    stacks = filter(None, map(stack_of, functions))
    return any(each.limit == limit for stack in stacks for each in stack.applications)


def hidden(setup: Setup) -> Iterator[str]:
    """A decorator without ``functools.wraps`` hides a limit that should be decided at the front."""
    # what covers the view from further out as well is decided there
    wide = {(share.bucket.limit, place.endpoint) for share in setup.shares for place in share.places}
    for limit, endpoint in _hidden(setup).items():
        front = limit.terms.key.stage_for(setup.state.declared) is Stage.FRONT
        if front and (limit, endpoint) not in wide:
            yield (
                f"The limit {_called(limit)} on {endpoint} is behind a decorator without functools.wraps, so "
                "it is decided only after the app's hooks and that decorator."
            )


def _hidden(setup: Setup) -> dict[Limit, str]:
    """The limits behind decorators that nobody can look through, with an endpoint of each."""
    found: dict[Limit, str] = {}
    seen = {id(each) for view in setup.app.view_functions.values() for each in layers(view)}
    for endpoint, view in setup.app.view_functions.items():
        for function in within(layers(view)[-1]):
            stack = stack_of(function) if id(function) not in seen else None
            for application in stack.applications if stack else ():
                found.setdefault(application.limit, endpoint)
    return found


def covers_nothing(setup: Setup) -> Iterator[str]:
    """A limit covers nothing that can be seen."""
    covering = {share.bucket.limit for share in setup.shares} | set(_hidden(setup))
    told = {limit for limit, _ in _misplaced(setup)}
    # what an app of the limiter's does not cover another one may
    lost = idle(setup.apps, setup.state.declared) if len(setup.apps) > 1 else setup.limits
    for limit in lost:
        if limit not in covering and limit not in told and not limit.used:
            yield f"The limit {_called(limit)} covers no request that can be seen from here."


def open_budget(setup: Setup) -> Iterator[str]:
    """A budget that can be spent over."""
    for limit in setup.limits:
        terms = limit.terms
        opened = {
            'on_error="allow": it opens while storage fails': terms.on_error == "allow",
            "shadow=True: it never refuses": terms.shadow,
            "per_process=True: each process spends all of it": terms.per_process,
        }
        for how in (how for how, is_so in opened.items() if terms.budget and is_so):
            yield f"The budget {_called(limit)} has {how}."


def shadows(setup: Setup) -> Iterator[str]:
    """A limit that only watches."""
    names = [_called(limit) for limit in setup.limits if limit.terms.shadow and not limit.terms.budget]
    if names:
        yield f"These limits have shadow=True, and never refuse: {listed(names)}."


def closed(setup: Setup) -> Iterator[str]:
    """A limit that admits nobody."""
    names = [
        repr(share.bucket.name) for share in setup.shares if any(each.quota == 0 for each in policies(share))
    ]
    if names:
        yield f"These limits are 0, and refuse everybody: {listed(sorted(set(names)))}."


def _called(limit: Limit) -> str:
    return repr(limit.name) if limit.name else repr(limit)


CHECKS = (
    Check(
        "VL201",
        WARNING,
        no_limits,
        "There is a storage to count in, and nothing to count.",
        'Declare one, such as limiter.limit("1200/minute", name="global", key=by_ip).everywhere().',
    ),
    Check(
        "VL202",
        WARNING,
        above_the_route,
        "Requests are not counted by it: the route knows the function as it was before it was decorated.",
        "Put the limit's decorator below @app.route, next to the function.",
    ),
    Check(
        "VL203",
        WARNING,
        hidden,
        "A request that will be refused has cost all that stands before it, look-ups in a database included.",
        "Use functools.wraps in that decorator.",
    ),
    Check(
        "VL204",
        NOTE,
        covers_nothing,
        "Unless it is asked by hand, it limits nothing.",
        "Put it on a view or a blueprint, call everywhere(), or take it out. Look whether its methods fit "
        "the route, and whether its blueprint is registered.",
    ),
    Check(
        "VL205",
        WARNING,
        open_budget,
        "A budget guards what cannot be had back. Spent over, it is spent.",
        "Take the term out: a budget denies while storage fails, refuses, and counts in the shared storage.",
    ),
    Check(
        "VL206",
        NOTE,
        shadows,
        "They count and signal, and hold nobody back.",
        "Once the number has proved right, take shadow out.",
    ),
    Check(
        "VL207",
        NOTE,
        closed,
        "No wait helps, so there is no Retry-After either.",
        "If the door is not meant to be closed, give a number over 0.",
    ),
)

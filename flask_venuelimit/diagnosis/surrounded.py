"""VL401 to VL407: what of the app stands in front of limits, in their place, or beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flask.sessions import SecureCookieSessionInterface

from ..coverage import cover, layers
from ..hooks import Hooks
from ..page import views as page_views
from .findings import ERROR, NOTE, WARNING, Check
from .functions import called, listed, stack_of, within
from .setup import Setup


def preprocessors(setup: Setup) -> Iterator[str]:
    """Functions that Flask calls before any hook."""
    functions = [each for scope in setup.app.url_value_preprocessors.values() for each in scope]
    if functions:
        names = listed(list(dict.fromkeys(map(called, functions))))
        yield f"These url_value_preprocessors run before any limit: {names}."


def session_store(setup: Setup) -> Iterator[str]:
    """A session that is more than a signed cookie, opened before any hook."""
    interface = type(setup.app.session_interface)
    if interface.open_session is not SecureCookieSessionInterface.open_session:
        yield f"Sessions are opened by {interface.__module__}.{interface.__qualname__}, before any limit."


def hooks_ahead(setup: Setup) -> Iterator[str]:
    """Hooks that were put in front of the one that should be first."""
    hooks = _before(setup)
    ours = [_is_ours(each, "enter") for each in hooks]
    ahead = hooks[: ours.index(True)] if True in ours else []
    if ahead:
        yield f"These before_request hooks run before any limit: {listed(list(map(called, ahead)))}."


def hooks_gone(setup: Setup) -> Iterator[str]:
    """Hooks of ours that are no longer there."""
    app = setup.app
    places = {
        "enter": ("before_request", _before(setup)),
        "leave": ("after_request", app.after_request_funcs.get(None, [])),
        "settle": ("teardown_request", app.teardown_request_funcs.get(None, [])),
    }
    for name, (kind, hooks) in places.items():
        if not any(_is_ours(each, name) for each in hooks):
            yield f"The limiter's {kind} hook has been taken from the app."


def _before(setup: Setup) -> list[Any]:
    return list(setup.app.before_request_funcs.get(None, []))


def _is_ours(function: Any, name: str) -> bool:
    return isinstance(getattr(function, "__self__", None), Hooks) and function.__name__ == name


def open_posts(setup: Setup) -> Iterator[str]:
    """Views that change something, and that nothing limits."""
    limiting = [share for share in setup.shares if not share.bucket.limit.terms.shadow]
    held = {place.endpoint for share in limiting for place in share.places if place.method == "POST"}
    open_ = [each for each in _takes_posts(setup) if each not in held and not _is_exempt(setup, each)]
    if open_ and setup.limits:
        yield f"No limit covers a POST to: {listed(open_)}."


def _takes_posts(setup: Setup) -> list[str]:
    """The endpoints of views that take a POST, those aside behind whose decorators a limit hides."""
    rules = setup.app.url_map.iter_rules()
    posts = dict.fromkeys(rule.endpoint for rule in rules if rule.methods and "POST" in rule.methods)
    views = {endpoint: view for endpoint, view in setup.app.view_functions.items() if endpoint in posts}
    return [name for name, view in views.items() if not any(map(stack_of, within(layers(view)[-1])))]


def _is_exempt(setup: Setup, endpoint: str) -> bool:
    state = setup.state
    return cover(state.app, state.declared, state.owner, endpoint, "POST", state.settings.limits).exempt


def page_in_the_way(setup: Setup) -> Iterator[str]:
    """A route of the app's own where the limit page lies."""
    for rule in setup.app.url_map.iter_rules():
        if not page_views.is_ours(rule.endpoint) and page_views.concerns(rule.rule, setup.settings):
            yield f"The route {rule.rule} of {rule.endpoint} lies where the limiter answers itself."


def views_called_static(setup: Setup) -> Iterator[str]:
    """Views that are exempt because of what they are called."""
    names = [
        f"{endpoint} ({called(view)})"
        for endpoint, view in setup.app.view_functions.items()
        if endpoint.rpartition(".")[2] == "static" and not _is_flasks(endpoint, view)
    ]
    if names:
        yield f"No limit touches these views, because they are called static: {listed(names)}."


def _is_flasks(endpoint: str, view: Any) -> bool:
    """Whether a view is Flask's own for static files, or the limit page's."""
    return page_views.is_ours(endpoint) or (getattr(view, "__module__", "") or "").startswith("flask.")


CHECKS = (
    Check(
        "VL401",
        NOTE,
        preprocessors,
        "A request that will be refused has cost what they cost.",
        "Keep look-ups out of them: put those into a before_request hook.",
    ),
    Check(
        "VL402",
        NOTE,
        session_store,
        "If it asks a store, each request that has a cookie makes a look-up, the refused ones as well.",
        "Nothing, if the store bears it. Else limit by address in front of the app, in nginx for instance.",
    ),
    Check(
        "VL403",
        WARNING,
        hooks_ahead,
        "A request that will be refused has cost what they cost. What they answer themselves is not limited.",
        "Register hooks by before_request instead of putting them first.",
    ),
    Check(
        "VL404",
        ERROR,
        hooks_gone,
        "Without the first nothing is decided at the front, without the second no limit state is sent, and "
        "without the third nothing is given back.",
        "Leave the app's lists of hooks to Flask, or take out of them only what is yours.",
    ),
    Check(
        "VL405",
        NOTE,
        open_posts,
        "Whoever sends them a form as often as they like is never refused.",
        "Put a limit on them, or one everywhere; @limiter.exempt says that none is meant to.",
    ),
    Check(
        "VL406",
        WARNING,
        page_in_the_way,
        "The app's view is never called: the limit page, or its robots.txt, answers first.",
        "Set VENUELIMIT_PAGE_PATH to a path that is free, or VENUELIMIT_ROBOTS_TXT to False and serve "
        "limiter.robots_txt() yourself.",
    ),
    Check(
        "VL407",
        NOTE,
        views_called_static,
        "Endpoints called static are exempt, and these are not Flask's own.",
        "Give the endpoint another name, if it should be limited.",
    ),
)

"""Limits that cannot be kept as they are declared: the whole text of each error."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import (
    Key,
    MemoryStorage,
    TokenBucket,
    VenueLimit,
    by_ip,
)
from tests.acceptance.callers import C, message

MESSAGE = "a limit's message is {!r}. Use the sentence that a refused caller is told, as text."


def test_an_app_has_one_limiter() -> None:
    """A second VenueLimit, or ``init_app`` twice, is refused."""
    app = Flask("venue")
    app.config["SECRET_KEY"] = "s"
    limiter = VenueLimit(app, storage=MemoryStorage())
    texts = {message(limiter.init_app, app), message(VenueLimit, app)}
    assert texts == {
        "the app 'venue' has a VenueLimit already. An app has one limiter: call init_app once, and declare "
        "every limit on that one."
    }


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"key": "ip"}, "key is 'ip'. Use a Key such as by_ip, or a function."),
        ({"unless": True}, "unless is True, which cannot be called. Pass a function."),
        ({"refund_if": 400}, "refund_if is 400, which cannot be called. Pass a function."),
        ({"methods": {"G T"}}, "methods is {'G T'}. Use a set of names such as {'POST'}."),
        ({"methods": ()}, "methods is (). Use a set of names such as {'POST'}."),
        ({"methods": 5}, "methods is 5. Use a set of names such as {'POST'}."),
        ({"shadow": "no"}, "shadow is 'no'. Use True or False."),
        ({"budget": None}, "budget is None. Use True or False."),
        ({"message": 5}, MESSAGE.format(5)),
        ({"message": b"No."}, MESSAGE.format(b"No.")),
        ({"message": "\ud800"}, MESSAGE.format("\ud800")),
        ({"cost": 0}, "a cost is 0. Use a whole number of at least 1, or a function."),
        ({"cost": 1.5}, "a cost is 1.5. Use a whole number of at least 1, or a function."),
        ({"cost": True}, "a cost is True. Use a whole number of at least 1, or a function."),
        (
            {"cost": 11},
            "a cost of 11 can never be admitted by 10/minute, which holds 10 at most. Lower the cost or "
            "raise the limit.",
        ),
        (
            {"cost": 5, "per_address": "4/hour"},
            "a cost of 5 can never be admitted by 4/hour, which holds 4 at most. Lower the cost or "
            "raise the limit.",
        ),
        (
            {"key": by_ip, "per_address": "9/minute"},
            "per_address is the policy for requests whose key knows nobody, but by_ip always names the "
            "address. Leave it out, or choose a key such as by_participant.",
        ),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused_at_once(terms: dict[str, Any], said: str) -> None:
    """At declaration, not at the first request that meets it."""
    assert message(VenueLimit().limit, "10/minute", **terms) == said


def test_a_cost_at_a_view_is_checked_there() -> None:
    """``@limit(cost=...)`` is a declaration as well."""
    api = VenueLimit().limit(TokenBucket(capacity=20, rate=240, per=60), name="api")
    assert message(api, cost=21) == (
        "a cost of 21 can never be admitted by token bucket of 20, 240 per minute, which holds 20 at most. "
        "Lower the cost or raise the limit."
    )


def test_failures_has_its_own_refund_rule() -> None:
    """Who wants another rule wants ``limit``."""
    failures: Any = VenueLimit().failures
    assert message(failures, "5/minute", name="f", refund_if=lambda response: True) == (
        "failures() sets refund_if itself. Use limit() for a rule of your own."
    )


@pytest.mark.parametrize("target", ["a name", 7, type("Home", (), {})])
def test_a_limit_covers_views_and_blueprints(target: Any) -> None:
    """Anything else it is put on is an error that says what will do."""
    assert message(VenueLimit().limit("5/minute", name="it"), target) == (
        f"the limit 'it' was put on {target!r}. It covers a view function or a blueprint; for a class-based "
        "view use its `decorators` or one of its methods."
    )


@pytest.mark.parametrize("target", ["a name", 7])
def test_only_views_and_blueprints_are_exempt(target: Any) -> None:
    """The same holds for exemptions, from all limits or from one."""
    limiter: Any = VenueLimit()
    said = f"{target!r} cannot be exempt. Use a view function or class, or a blueprint."
    assert message(limiter.exempt, target) == said
    assert message(limiter.limit("5/minute").exempt, target) == said


def test_callbacks_are_functions() -> None:
    """Each callback that cannot be called is named."""
    limiter: Any = VenueLimit()
    assert message(limiter.identify_user, 7) == (
        "the callback that identifies the user is 7, which cannot be called. Pass a function."
    )
    assert message(limiter.exempt_if, True) == "exempt_if is True, which cannot be called. Pass a function."
    no_function: Any = "user"
    assert (
        message(Key, "user", no_function)
        == "the key 'user' is 'user', which cannot be called. Pass a function."
    )
    assert message(Key, "", lambda: "x") == "a key's kind is ''. Use a short word of printable ASCII."


def test_async_callbacks_need_flask_async(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without asgiref Flask cannot run them, and that is said at declaration."""
    monkeypatch.setitem(sys.modules, "asgiref", None)

    async def who() -> str:
        return "u"

    limiter = VenueLimit()
    said = "is an async function, and Flask cannot run one here. Install flask[async]."
    declared: list[Callable[[], Any]] = [
        lambda: limiter.identify_user(who),
        lambda: limiter.limit("5/minute", key=who),
        lambda: limiter.limit("5/minute", unless=who),
        lambda: limiter.limit("5/minute", cost=who),
        lambda: limiter.exempt_if(who),
    ]
    assert [message(declare).endswith(said) for declare in declared] == [True] * 5


@pytest.mark.parametrize(
    ("policy", "quoted"),
    [
        ("", "''"),
        ("10", "'10'"),
        ("10/fortnight", "'10/fortnight'"),
        ("ten/minute", "'ten/minute'"),
        ("10/minute;", "'10/minute;'"),
        (";", "';'"),
        ("5/second; -1/minute", "'-1/minute'"),
        ("1.5/minute", "'1.5/minute'"),
        ("10/0s", "'10/0s'"),
        (10, "10"),
        (None, "None"),
        ([], "[]"),
        (["10/minute", 10], "['10/minute', 10]"),
        (["10/minute", ""], "''"),
    ],
)
def test_a_policy_that_cannot_be_read_is_a_value_error(policy: Any, quoted: str) -> None:
    """At declaration, naming the offending text, as a policy or for the address."""
    for terms in ({"policy": policy}, {"policy": "1/minute", "per_address": policy}):
        if terms.get("per_address", policy) is not None:
            with pytest.raises(ValueError, match=re.escape(quoted)):
                VenueLimit().limit(**terms)


@pytest.mark.parametrize(
    "text", ["10/minute", "10 per minute", "10/60s", "10 per 60 seconds", "10/1 min", "10/m"]
)
def test_a_policy_may_be_spelt_in_words(app: Flask, storage: Any, text: str) -> None:
    """All spellings of one rate are one policy."""
    limiter = VenueLimit(app, storage=storage)
    hit = limiter.limit(text, name="it", key=by_ip).hit(subject=C)
    assert (hit.quota, hit.window, hit.remaining) == (10, 60, 9)

"""What a limit is declared with, checked as it is declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from flask import Response

from . import checks
from .callbacks import accept, alike
from .errors import ConfigurationError
from .keys import Key, by_ip
from .policies import Policy, as_policies

Cost = int | Callable[[], Any]
#: The policies of a limit, or a function that tells them at each request.
Plan = tuple[Policy, ...] | Callable[[], Any]
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True)
class Terms:
    """What a limit was declared with; two declarations with equal terms are one limit.

    :param plan: the policies, all of which have to agree.
    :param per_address: the same where the key knows nobody and the address stands in; empty for ``plan``.
    :param methods: the request methods it covers, or None for all.
    :param per_method: whether each method has a bucket of its own.
    :param on_error: what happens while storage fails, or None for what the app says.
    :param budget: whether it guards spending: closed while storage fails, its numbers fixed in code.
    :param refund_if: asked with the final response; true gives the charge back.
    """

    name: str | None
    plan: Plan
    key: Key
    per_address: Plan = ()
    cost: Cost = 1
    methods: frozenset[str] | None = None
    per_method: bool = False
    unless: Callable[[], Any] | None = None
    on_error: str | None = None
    shadow: bool = False
    per_process: bool = False
    budget: bool = False
    refund_if: Callable[[Response], Any] | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_message(self.message)
        if self.per_address and self.key is by_ip:
            raise ConfigurationError(
                "per_address is the policy for requests whose key knows nobody, but by_ip always names the "
                "address. Leave it out, or choose a key such as by_participant."
            )
        self.check(self.cost)
        for what in ("per_method", "shadow", "per_process", "budget"):
            if not isinstance(value := getattr(self, what), bool):
                raise ConfigurationError(f"{what} is {value!r}. Use True or False.")
        for what in ("unless", "refund_if"):
            function = getattr(self, what)
            if function is not None:
                accept(what, function)
        if self.on_error is not None:
            checks.on_error("on_error", self.on_error)

    @property
    def spelling(self) -> str:
        """The policies in words, or that they are told at each request."""
        if callable(self.plan):
            return "told at each request"
        return "; ".join(policy.spelling for policy in self.plan)

    def on_failure(self, app_says: str) -> str:
        """What becomes of requests while storage fails.

        :param app_says: what ``VENUELIMIT_ON_ERROR`` has for limits that do not say; budgets are closed then.
        """
        return self.on_error or ("deny" if self.budget else app_says)

    def matches(self, other: Terms) -> bool:
        """Whether ``other`` declares the same limit."""
        return all(alike(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    def check(self, cost: object) -> None:
        """Hold a declared cost to what the policies can ever admit.

        :raises ConfigurationError: it is no whole number of at least 1, or more than a policy ever holds.
        """
        for plan in (self.plan, self.per_address):
            check_cost(cost, () if callable(plan) else plan)


def as_plan(value: object) -> Plan:
    """Take a policy, a string, a list of these, or a function that returns any of them at each request.

    :raises ValueError: it is none of them.
    """
    # a class can be called, but stands here only where somebody forgot to
    if callable(value) and not isinstance(value, type):
        return accept("a policy", value)
    return as_policies(value)


def as_methods(value: object) -> frozenset[str]:
    """Take the names of request methods, in any case, or one of them.

    :raises ConfigurationError: there is none, or one is no name of a method (RFC 9110, section 9.1).
    """
    named = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else []
    # any token is one: M-SEARCH is a method too
    if not named or not all(isinstance(method, str) and _TOKEN.fullmatch(method) for method in named):
        raise ConfigurationError(f"methods is {value!r}. Use a set of names such as {{'POST'}}.")
    return frozenset(method.upper() for method in named)


def check_name(name: object) -> None:
    """Hold a limit's name to what a header field can carry.

    :raises ConfigurationError: it is no printable ASCII text.
    """
    if name is None:
        return
    if not isinstance(name, str) or not name.strip() or not name.isascii() or not name.isprintable():
        raise ConfigurationError(
            f"a limit's name is {name!r}. Use printable ASCII: the name is sent in header fields."
        )


def check_message(message: object) -> None:
    """Hold a limit's sentence to what can be sent: a text, or one that is translated when it is read.

    :raises ConfigurationError: it is neither.
    """
    # lazily translated texts, as Flask-Babel's are, are no str; of what they share this says most
    lazy = hasattr(type(message), "__html__")
    known = message is None or lazy or isinstance(message, str)
    if not known or (isinstance(message, str) and not _is_sendable(message)):
        raise ConfigurationError(
            f"a limit's message is {message!r}. Use the sentence that a refused caller is told, as text."
        )


def _is_sendable(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def check_cost(cost: object, policies: Sequence[Policy]) -> None:
    """Hold a declared cost to what the policies can ever admit.

    :raises ConfigurationError: it is no whole number of at least 1, or more than a policy ever holds.
    """
    if callable(cost):
        accept("a cost", cost)
        return
    if isinstance(cost, bool) or not isinstance(cost, int) or cost < 1:
        raise ConfigurationError(f"a cost is {cost!r}. Use a whole number of at least 1, or a function.")
    for policy in policies:
        # a limit of 0 is a closed door that somebody asked for; a cost over the quota is a mistake
        if policy.quota and not policy.holds(cost):
            raise ConfigurationError(
                f"a cost of {cost} can never be admitted by {policy.spelling}, which holds {policy.quota} at "
                "most. Lower the cost or raise the limit."
            )

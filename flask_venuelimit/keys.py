"""Whose bucket a request is charged to.

A key is honest about when it can be known. A FRONT key reads what the connection or a signed session
says before anything of the app has run; a VIEW key waits until the app has established who is asking.
Every key ends in the address. What each of them proves is told in the docs, under "Identities".
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from flask import request

from .callbacks import accept, alike
from .errors import ConfigurationError
from .subjects import Subject, is_word, subject_of


class Stage(IntEnum):
    """When a limit can be decided."""

    #: Before every before-request hook of the app.
    FRONT = 1
    #: Once the app has had its say, right before the view.
    VIEW = 2


class Asking(Protocol):
    """One request being asked who it is; each key is asked once, the answer kept."""

    def ask(self, key: Key) -> Subject | None:
        """Whom ``key`` names, or None."""

    def identity(self, role: str) -> Subject | None:
        """Whom the limiter's callback for ``role`` names, or None."""

    def resolve(self, key: Key) -> Subject | None:
        """Call a key's own function, logging what it should not have done."""


class Identities(Protocol):
    """What a limiter knows of its identity callbacks."""

    def stage_of(self, role: str) -> Stage:
        """When the callback for ``role`` can be asked."""


class Key:
    """A way to tell whose bucket a request is charged to.

    :param kind: the kind of subject it names; shown in logs and signals.
    :param resolve: called without arguments in the request; returns a str, an int, a UUID, a tuple of
        these, a :class:`Subject` or None. May be ``async def``.
    :param stage: when it can be known.
    :raises ConfigurationError: the kind is empty, or ``resolve`` cannot be called.
    """

    def __init__(self, kind: str, resolve: Callable[[], Any], *, stage: Stage = Stage.VIEW) -> None:
        if not is_word(kind):
            raise ConfigurationError(f"a key's kind is {kind!r}. Use a short word of printable ASCII.")
        self.kind = kind
        self.resolve = accept(f"the key {kind!r}", resolve)
        self.stage = Stage(stage)

    def __or__(self, other: Key) -> Key:
        return _FirstKnown(self, other)

    def __and__(self, other: Key) -> Key:
        return _Both(self, other)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.kind == other.kind and self.stage == other.stage and alike(self.resolve, other.resolve)

    def __hash__(self) -> int:
        return hash((type(self), self.kind))

    def __repr__(self) -> str:
        return f"<Key {self.kind}>"

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of subject it can name; the address, which stands in where it names nobody, aside."""
        return frozenset({self.kind})

    @property
    def made_of(self) -> frozenset[str]:
        """The kinds of the keys that it is put together from."""
        return frozenset({self.kind})

    def stage_for(self, identities: Identities) -> Stage:
        """When this key can be known in an app of this limiter."""
        return self.stage

    def subject(self, asking: Asking) -> Subject | None:
        """Whom this key names in this request, or None."""
        return asking.resolve(self)

    def subject_given(self, answer: object) -> Subject | None:
        """Make a subject of what somebody says this key would return.

        :raises TypeError: see :func:`subject_of`.
        """
        return subject_of(self.kind, answer)


class _Combined(Key):
    """Two keys made one."""

    sign = ""

    def __init__(self, one: Key, other: Key) -> None:
        if not isinstance(other, Key):
            raise TypeError(f"a Key is combined with Keys, not with {other!r}. Use Key('tenant', function).")
        self.one, self.other = one, other
        self.kind = f"{one.kind}{self.sign}{other.kind}"
        self.stage = max(one.stage, other.stage)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.one == other.one and self.other == other.other

    __hash__ = Key.__hash__

    @property
    def made_of(self) -> frozenset[str]:
        return self.one.made_of | self.other.made_of

    def stage_for(self, identities: Identities) -> Stage:
        return max(self.one.stage_for(identities), self.other.stage_for(identities))


class _FirstKnown(_Combined):
    """``a | b``: the first that is known."""

    sign = "|"

    @property
    def kinds(self) -> frozenset[str]:
        return self.one.kinds | self.other.kinds

    def subject(self, asking: Asking) -> Subject | None:
        return asking.ask(self.one) or asking.ask(self.other)

    def subject_given(self, answer: object) -> Subject | None:
        return self.one.subject_given(answer)


class _Both(_Combined):
    """``a & b``: both, or None."""

    sign = "&"

    def subject(self, asking: Asking) -> Subject | None:
        one = asking.ask(self.one)
        other = asking.ask(self.other) if one else None
        return Subject(self.kind, one, other) if one and other else None

    def subject_given(self, answer: object) -> Subject | None:
        if isinstance(answer, tuple) and len(answer) == 2:
            one, other = self.one.subject_given(answer[0]), self.other.subject_given(answer[1])
            return Subject(self.kind, one, other) if one and other else None
        return super().subject_given(answer)


def _nobody() -> None:
    """Name nobody."""


class _Identity(Key):
    """An identity that the limiter's callback for a role knows."""

    def __init__(self, role: str) -> None:
        super().__init__(role, _nobody)

    def stage_for(self, identities: Identities) -> Stage:
        return identities.stage_of(self.kind)

    def subject(self, asking: Asking) -> Subject | None:
        return asking.identity(self.kind)


def _bearer() -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip() if scheme.lower() == "bearer" else ""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest() if token else None


#: The client address, an IPv6 one by its network. It is not asked itself: who asks knows the address, in
#: which every key ends.
by_ip: Key = Key("ip", _nobody, stage=Stage.FRONT)
#: The text after ``Bearer`` in Authorization, by its SHA-256: a credential claimed, not checked. Anyone
#: who types it shares the bucket, and new texts cost nothing, so put a failure limit in front.
by_bearer: Key = Key("bearer", _bearer, stage=Stage.FRONT)
#: The participant: ``session["participant_id"]``, or what ``identify_participant`` says.
by_participant: Key = _Identity("participant")
#: The user: Flask-Login's, else ``session["user_id"]``, or what ``identify_user`` says.
by_user: Key = _Identity("user")
#: The participant, else the user. The default key of a limit.
by_identity: Key = by_participant | by_user


def as_key(value: Key | Callable[[], Any]) -> Key:
    """Take a key, or make a VIEW key of kind ``custom`` of a plain callable.

    :raises ConfigurationError: it is neither.
    """
    if isinstance(value, Key):
        return value
    if not callable(value):
        raise ConfigurationError(f"key is {value!r}. Use a Key such as by_ip, or a function.")
    return Key("custom", value)

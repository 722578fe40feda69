"""Whose bucket a request is charged to.

A key is honest about when it can be known. A FRONT key reads what the connection or a signed session
says before anything of the app has run; a VIEW key waits until the app has established who is asking.
Every key ends in the address. What each of them proves is told in the docs, under "Identities".
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol
from uuid import UUID

from flask import request

from .callbacks import accept, alike
from .errors import ConfigurationError


class Stage(IntEnum):
    """When a limit can be decided."""

    #: Before every before-request hook of the app.
    FRONT = 1
    #: Once the app has had its say, right before the view.
    VIEW = 2


class Subject:
    """Somebody who has a bucket: a kind and one or more parts.

    :param kind: what sort of identity it is: ``"user"``, ``"participant"``, ``"ip"``; shown in logs.
    :param parts: text, whole numbers, UUIDs or subjects. An int and its decimal text are the same.
    :raises ValueError: the kind is no word, a part is of another type, or there is none.
    """

    __slots__ = ("_digested", "kind", "parts")

    kind: str
    parts: tuple[str | Subject, ...]
    _digested: tuple[bytes, str] | None

    def __init__(self, kind: str, *parts: object) -> None:
        if not _is_word(kind):
            raise ValueError(f"a subject's kind is {kind!r}. Use a short word of printable ASCII.")
        made = tuple(_part(part) for part in parts)
        if not made or None in made:
            raise ValueError(
                f"a subject of kind {kind!r} needs parts that are text, whole numbers or UUIDs, none of "
                f"them empty; got {', '.join(type(part).__name__ for part in parts) or 'none'}"
            )
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "parts", made)
        object.__setattr__(self, "_digested", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Subject does not change")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Subject):
            return NotImplemented
        return self.kind == other.kind and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((self.kind, self.parts))

    def __repr__(self) -> str:
        # the parts are somebody's identity; they stay out of logs and tracebacks
        return f"<Subject {self.kind}>"

    def digest(self, salt: bytes) -> str:
        """Name this subject without telling who it is.

        :returns: 22 characters of base64url: 128 bits of an HMAC-SHA-256 over the kind and the parts,
            their boundaries kept.
        """
        if self._digested is None or self._digested[0] is not salt:
            mac = hmac.digest(salt, self._encoded(), "sha256")
            text = base64.urlsafe_b64encode(mac[:16])[:22].decode()
            object.__setattr__(self, "_digested", (salt, text))
        return self._digested[1]  # type: ignore[index]

    def _encoded(self) -> bytes:
        pieces = [self.kind.encode("utf-8", "surrogatepass")]
        for part in self.parts:
            if isinstance(part, Subject):
                pieces.append(part._encoded())
            else:
                # the sign tells a text that looks like an encoded subject from a subject
                pieces.append(b"=" + part.encode("utf-8", "surrogatepass"))
        # lengths in front, so that ("a:b", "c") and ("a", "b:c") stay apart
        return b"".join(b"%d:%s" % (len(piece), piece) for piece in pieces)


def _part(value: object) -> str | Subject | None:
    """Text of one part, an enumeration's member by what it is equal to; None where it says nothing."""
    if isinstance(value, Subject):
        return value
    if isinstance(value, str):
        return str.__str__(value) or None
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__repr__(value)
    return str(value) if isinstance(value, UUID) else None


def _is_word(kind: object) -> bool:
    return isinstance(kind, str) and kind != "" and kind.isascii() and kind.isprintable()


def subject_of(kind: str, answer: object) -> Subject | None:
    """Make a subject of what a key's function returned.

    :param answer: a str, an int, a UUID, a tuple of these, a Subject or None. Empty text counts as
        None, 0 does not.
    :raises TypeError: it is anything else.
    """
    if answer is None or isinstance(answer, Subject):
        return answer
    if isinstance(answer, str) and not answer:
        return None
    parts = answer if isinstance(answer, tuple) else (answer,)
    try:
        return Subject(kind, *parts)
    except ValueError as error:
        raise TypeError(str(error)) from None


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
        if not _is_word(kind):
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

    def stage_for(self, identities: Identities) -> Stage:
        return max(self.one.stage_for(identities), self.other.stage_for(identities))


class _FirstKnown(_Combined):
    """``a | b``: the first that is known."""

    sign = "|"

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

"""Whom a bucket belongs to: a kind and its parts, which are named to nobody."""

from __future__ import annotations

import base64
import hmac
from uuid import UUID


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
        if not is_word(kind):
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


def is_word(kind: object) -> bool:
    """Whether a text can say what sort of identity it is."""
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

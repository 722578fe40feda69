"""Who is asking: one request being asked by keys, each once, the answer kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from flask import Flask, Request

from .addresses import SHARED_KINDS, normalise
from .callbacks import call_or_log, is_true, logger
from .declarations import Declarations
from .keys import Key, by_ip
from .lookout import Lookout
from .settings import Settings
from .subjects import Subject, subject_of

#: Stands for everybody where there is no request to ask.
NO_REQUEST = Subject("no-request-scope", "no-request-scope")
#: Stands for everybody whose connection has no usable address.
NO_ADDRESS = Subject("no-address", "no-address")
#: Kinds of subject that stand where a limit's key knew nobody, so that ``per_address`` is the policy.
STAND_INS = SHARED_KINDS | {NO_REQUEST.kind}


class Asker:
    """Tells keys who is asking; implements :class:`flask_venuelimit.keys.Asking`.

    :param request: None outside a request. It is not kept: it holds the visit, and a cycle would leave
        every request to the garbage collector.
    """

    def __init__(
        self,
        app: Flask,
        declared: Declarations,
        settings: Settings,
        lookout: Lookout,
        request: Request | None,
    ) -> None:
        self._app = app
        self._declared = declared
        self._settings = settings
        self._lookout = lookout
        self._outside = request is None
        self._remote = None if request is None else request.remote_addr
        # Flask cuts an environ loose from its request when that is over
        self._environ: Mapping[str, Any] = {} if request is None else request.environ
        self._asked: dict[Key | str, Subject | None] = {}
        self._answers: dict[int, Any] = {}
        self._at: Subject | None = None

    def ask(self, key: Key) -> Subject | None:
        """Whom ``key`` names; it is asked once a request."""
        if key not in self._asked:
            self._asked[key] = self._here() if key is by_ip else key.subject(self)
        return self._asked[key]

    def identity(self, role: str) -> Subject | None:
        """Whom the limiter's callback for ``role`` names; it is asked once a request."""
        if role not in self._asked:
            load = self._declared.loaders[role].load
            self._asked[role] = self._named(role, f"the callback that identifies the {role}", load)
        return self._asked[role]

    def resolve(self, key: Key) -> Subject | None:
        """Call a key's own function."""
        return self._named(key.kind, f"the key {key.kind!r}", key.resolve)

    def _named(self, kind: str, what: str, function: Any) -> Subject | None:
        answer = call_or_log(self._app, what, function, instead=None)
        try:
            return subject_of(kind, answer)
        except TypeError as error:
            logger.error("%s answered with something that names nobody: %s", what, error)
            return None

    def answer(self, what: str, function: Callable[[], Any], *, instead: Any) -> Any:
        """What a predicate, a cost or a policy's function answers; it is asked once a request.

        :param instead: stands in for an answer where it raises, which is logged.
        """
        # by identity: a callable object need not be hashable
        if id(function) not in self._answers:
            self._answers[id(function)] = call_or_log(self._app, what, function, instead=instead)
        return self._answers[id(function)]

    def holds(self, what: str, predicate: Callable[[], Any]) -> bool:
        """Whether a predicate answers true; one that fails does not. It is asked once a request."""
        return is_true(self._app, what, self.answer(what, predicate, instead=False))

    def judges(self, what: str, judge: Callable[[Any], Any], response: object) -> bool:
        """Whether an app's function, asked about a response, answers true; one that fails does not."""
        return is_true(self._app, what, call_or_log(self._app, what, judge, response, instead=False))

    def address(self) -> str | None:
        """The client's address, normalised, or None."""
        settings = self._settings
        remote = settings.proxies.client(self._environ) if settings.proxies.any else self._remote
        return normalise(remote, settings.ipv6_prefix) if remote else None

    def subject(self, key: Key) -> Subject:
        """Whose bucket it is: whom the key names, else the address, else everybody without one."""
        if self._outside:
            return NO_REQUEST
        return (None if key is by_ip else self.ask(key)) or self._at_address()

    def subject_by_hand(self, key: Key, given: object) -> Subject:
        """Whose bucket a call by hand is about.

        :param given: what the key would return, instead of asking it; None asks it.
        :raises ValueError: ``given`` is of no usable type.
        """
        if given is None:
            return self.subject(key)
        try:
            subject = key.subject_given(given)
        except TypeError as error:
            raise ValueError(f"subject= is {type(given).__name__}: {error}") from None
        return self.in_its_bucket(subject) if subject else self.subject(key)

    def in_its_bucket(self, subject: Subject) -> Subject:
        """A subject given by hand, an address brought to the form its bucket is kept under.

        :raises ValueError: it is said to be an address, and is none.
        """
        if subject.kind != "ip":
            parts = [self.in_its_bucket(p) if isinstance(p, Subject) else p for p in subject.parts]
            return Subject(subject.kind, *parts)
        prefix = self._settings.ipv6_prefix
        # client_address() names an IPv6 client by its network, and that may come back here
        text = str(subject.parts[0])
        base = text.removesuffix(f"/{prefix}")
        # ::1 lies in a network that begins with ::, which is nobody's address
        address = text if base == "::" != text else normalise(base, prefix)
        if address is None:
            raise ValueError(
                "subject= is of kind 'ip', but the text is no IP address. Use one such as 198.51.100.7 or "
                "2001:db8::1, or what client_address() gives."
            )
        return Subject("ip", address)

    def _at_address(self) -> Subject:
        """Who stands in for somebody that no key knows."""
        if self._at is None:
            self._at = self._here() or NO_ADDRESS
            if self._at is NO_ADDRESS:
                self._lookout.no_address()
        return self._at

    def _here(self) -> Subject | None:
        """The client's address as a subject, or None where the connection has none."""
        address = self.address()
        return None if address is None else _subject_at(address)


@lru_cache(maxsize=4096)
def _subject_at(address: str) -> Subject:
    """One subject an address, so that a busy one is digested once."""
    return Subject("ip", address)

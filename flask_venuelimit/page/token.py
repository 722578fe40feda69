"""The signed, timed token that a redirect to the limit page carries.

It holds all the page needs, so that showing it asks no storage. It is signed (itsdangerous, HMAC-SHA-256
under ``VENUELIMIT_SALT``), so that nobody can make a page of this site say what they like.
"""

from __future__ import annotations

import hashlib
import time
from typing import NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from ..headers import whole_seconds
from . import way_back as _way_back

#: How long a token is honoured after its wait is over, in seconds.
KEPT = 3_600
MAX_MESSAGE = 300
#: Seconds since the epoch that can be reckoned with: neither infinite nor beyond a float's whole numbers.
_FARTHEST = 2**53

_PURPOSE = b"flask-venuelimit limit page"


class Ticket(NamedTuple):
    """Why somebody was sent to the limit page.

    :param limit: the name of the limit that refused.
    :param until: when the wait is over, in seconds since the epoch, or None where no wait helps.
    :param way_back: a local path and query, or None.
    :param message: the limit's own sentence, or None for the page's.
    :param shared: whether the limit counts a whole network (True) or a person (False); None: not known.
    """

    limit: str
    until: float | None
    way_back: str | None = None
    message: str | None = None
    shared: bool | None = None

    def wait(self) -> int | None:
        """Whole seconds, rounded up, until the wait is over by the wall clock; 0 when it is.

        None where no wait helps.
        """
        return None if self.until is None else max(0, whole_seconds(self.until - time.time()))


def issue(
    salt: bytes,
    limit: str,
    retry_after: int | None,
    way_back: str | None = None,
    message: str | None = None,
    shared: bool | None = None,
) -> str:
    """Make the token for a refusal that happens now.

    :param salt: ``settings.salt``.
    :param retry_after: whole seconds to wait from now, or None where no wait helps.
    :param way_back: dropped unless it is a local path.
    :param message: cut to 300 characters, because a URL has to hold it.
    :param shared: whether the limit counts a whole network, or a person.
    :returns: text that is safe in a URL.
    """
    until = None if retry_after is None else round(time.time() + retry_after, 6)
    text = message if message is None or len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"
    told = None if shared is None else int(shared)
    return _serializer(salt).dumps([limit, until, _way_back.local(way_back), text, told])


def read(salt: bytes, text: str | None) -> Ticket | None:
    """Read a token, whatever text it is said to be.

    :returns: None where it is missing, forged, or ended over an hour ago; one that no wait helps ends
        when it is issued. Never raises.
    """
    if not text:
        return None
    try:
        payload, issued = _serializer(salt).loads(text, return_timestamp=True)
    except (BadData, UnicodeError):
        return None
    ticket = _ticket(payload)
    if ticket is None:
        return None
    ended = issued.timestamp() if ticket.until is None else ticket.until
    return ticket if time.time() - ended <= KEPT else None


def _ticket(payload: object) -> Ticket | None:
    """Check the shape as well: another release of this extension may have signed it.

    Four entries are an earlier one's, which did not say whose the limit was.
    """
    if not isinstance(payload, list) or len(payload) not in (4, 5):
        return None
    limit, until, back, message, shared = [*payload, None][:5]
    if not isinstance(limit, str) or not isinstance(message, str | None) or not _is_time(until):
        return None
    return Ticket(limit, until, _way_back.local(back), message, None if shared is None else shared == 1)


def _is_time(until: object) -> bool:
    return until is None or (isinstance(until, int | float) and -_FARTHEST < until < _FARTHEST)


def _serializer(salt: bytes) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(
        salt, salt=_PURPOSE, signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256}
    )

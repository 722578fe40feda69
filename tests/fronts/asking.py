"""Real requests, from an address of one's choice."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

from tests.servers import connect

#: Two clients. Linux answers on all of 127.0.0.0/8.
ONE, OTHER = "127.0.0.2", "127.0.0.3"
VENUE = "tests.fronts.venue:application"

Fields = list[tuple[str, str]]


def ask(address: str, path: str, source: str = ONE, fields: Fields | None = None) -> tuple[int, Any]:
    """The status and JSON of an answer.

    :param fields: header fields, in this order; a name may come more than once.
    """
    connection = HTTPConnection("venue.example")
    connection.sock = connect(address, source)
    connection.putrequest("GET", path)
    for name, value in fields or ():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    status, body = answer.status, answer.read()
    connection.close()
    return status, json.loads(body)


def client(address: str, path: str, source: str = ONE, *sent: str, header: str = "X-Forwarded-For") -> str:
    """Whom the app takes a request for that came with these values of a header."""
    return str(ask(address, f"{path}/who", source, [(header, value) for value in sent])[1]["client"])


def statuses(address: str, path: str, source: str, *sent: str, header: str = "X-Forwarded-For") -> list[int]:
    """The statuses of one limited request for each value of a header."""
    return [ask(address, f"{path}/", source, [(header, value)])[0] for value in sent]

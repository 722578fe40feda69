"""Those who call: a client at an address, a browser, somebody signed in; and what they read in an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import http_sf
import pytest
import redis
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from flask_venuelimit import ConfigurationError, Limit, VenueLimit

#: Documentation addresses (RFC 5737): the client of the cases, and somebody else.
C = "198.51.100.7"
A = "203.0.113.50"
CHROME_PAGE = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
CHROME_IMAGE = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
#: What a browser sends with a link that was clicked.
NAVIGATING = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept": CHROME_PAGE}


def caller(app: Flask, address: str = C) -> FlaskClient:
    """A client with a cookie jar of its own that connects from ``address``."""
    client = app.test_client()
    client.environ_base["REMOTE_ADDR"] = address
    return client


def signed_in(app: Flask, address: str = C, **entries: object) -> FlaskClient:
    """A client whose signed session holds ``entries``."""
    client = caller(app, address)
    with client.session_transaction() as session:
        session.update(entries)
    return client


def statuses(client: FlaskClient, path: str, times: int, **options: Any) -> list[int]:
    """The status codes of so many requests in a row, GET unless ``method`` says another."""
    return [client.open(path, **options).status_code for _ in range(times)]


def items(response: TestResponse, field: str) -> dict[str, dict[str, Any]]:
    """A header field that is a list of structured fields (RFC 9651): parameters by name, in order."""
    parsed: Any = http_sf.parse(response.headers[field].encode(), tltype="list")
    return {name: dict(parameters) for name, parameters in parsed}


def room(response: TestResponse, limit: str) -> int:
    """How much a response says is left of a limit."""
    return int(items(response, "RateLimit")[limit]["r"])


def left(limit: Limit) -> int:
    """How much the client at ``C`` has left of a limit."""
    return limit.peek(subject=C).remaining


Refused = Callable[..., TestResponse]


def message(make: Callable[..., Any], *arguments: Any, **named: Any) -> str:
    """The text of the ConfigurationError that is raised."""
    with pytest.raises(ConfigurationError) as caught:
        make(*arguments, **named)
    return str(caught.value)


def whose_bucket(
    app: Flask, limiter: VenueLimit, key: Any, policy: str = "1/minute", **terms: Any
) -> Callable[[], str]:
    """Put a limit on ``/``, and return what tells whose bucket the last request was charged to."""
    limit = limiter.limit(policy, name="it", key=key, **terms)
    seen: list[str] = []

    @app.get("/")
    @limit
    def home() -> str:
        return "ok"

    @app.after_request
    def note(response: Any) -> Any:
        seen.append(limiter.decisions[-1].subject)
        return response

    return lambda: seen[-1]


@contextmanager
def commands(client: redis.Redis) -> Iterator[list[str]]:
    """Collect the names of the commands that reach the server meanwhile, those inside scripts left out."""
    seen: list[str] = []
    port = client.connection_pool.connection_kwargs["port"]
    with redis.Redis(port=port) as other, other.monitor() as watch:
        yield seen
        client.echo("the end")
        for said in watch.listen():
            if said["command"].endswith("the end"):
                return
            if said["client_type"] != "lua":
                seen.append(said["command"].split()[0].upper())

"""Counting over TLS, and what becomes of requests where the other side is not who it should be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import VenueLimit, by_ip
from tests.acceptance.callers import caller, statuses
from tests.faults.conftest import PLENTY
from tests.faults.tls import OPENSSL, Certificate, TlsProxy, make_certificate
from tests.parts import require
from tests.servers import StoreServer


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Certificate]:
    """One for this machine's name, and one for another."""
    openssl, folder = require(OPENSSL), tmp_path_factory.mktemp("tls")
    return {name: make_certificate(openssl, folder, name) for name in ("localhost", "elsewhere.example")}


@pytest.fixture
def tls(server: StoreServer, certificates: dict[str, Certificate]) -> Iterator[TlsProxy]:
    """A server that is reached over TLS, as localhost."""
    proxy = TlsProxy(server.port, certificates["localhost"])
    with proxy:
        yield proxy


def limited(app: Flask, uri: str, trusted: Path | None, seconds: float = 10) -> Flask:
    """The app, under a limit that counts at this URI and trusts this certificate."""
    options: dict[str, Any] = {"socket_timeout": seconds, "socket_connect_timeout": seconds}
    if trusted is not None:
        options["ssl_ca_certs"] = str(trusted)
    app.config.update(VENUELIMIT_STORAGE_URI=uri, VENUELIMIT_STORAGE_OPTIONS=options)
    app.add_url_rule("/", "home", VenueLimit(app).limit(PLENTY, name="it", key=by_ip)(lambda: "ok"))
    return app


def counts(app: Flask) -> bool:
    """Whether a request is counted; it passes in either case."""
    answer = caller(app).get("/")
    assert answer.status_code == 200
    return "RateLimit" in answer.headers


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
def test_over_tls_it_counts(
    app: Flask, tls: TlsProxy, certificates: dict[str, Certificate], scheme: str
) -> None:
    """With the certificate trusted, over a connection that is kept."""
    limited(app, f"{scheme}://localhost:{tls.port}", certificates["localhost"].certificate)
    assert [counts(app) for _ in range(5)] == [True] * 5
    assert tls.connections == 1


def test_nobody_is_believed_whom_nobody_vouches_for(
    app: Flask, tls: TlsProxy, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate of an unknown issuer is a failure that the log names; requests pass uncounted."""
    limited(app, f"rediss://localhost:{tls.port}", None)
    assert (counts(app), told) == (False, ["failed"])
    assert "certificate verify failed" in caplog.text


def test_nobody_is_believed_under_another_name(
    app: Flask, server: StoreServer, certificates: dict[str, Certificate], told: list[str]
) -> None:
    """A certificate that is trusted, but another host's, is a failure."""
    other = certificates["elsewhere.example"]
    with TlsProxy(server.port, other) as proxy:
        limited(app, f"rediss://localhost:{proxy.port}", other.certificate)
        assert (counts(app), told) == (False, ["failed"])


def test_a_plain_server_is_not_spoken_to_over_tls(
    app: Flask, server: StoreServer, certificates: dict[str, Certificate], told: list[str]
) -> None:
    """It does not understand the shake of hands."""
    limited(app, f"rediss://localhost:{server.port}", certificates["localhost"].certificate, 0.2)
    assert (counts(app), told) == (False, ["failed"])


def test_a_tls_server_is_not_spoken_to_plainly(app: Flask, tls: TlsProxy, told: list[str]) -> None:
    """What it answers to that is none of Redis's."""
    limited(app, f"redis://localhost:{tls.port}", None)
    assert (counts(app), told) == (False, ["failed"])


def test_a_connection_that_is_cut_is_made_again(
    app: Flask, tls: TlsProxy, certificates: dict[str, Certificate], told: list[str]
) -> None:
    """Over TLS too a server's restart between two requests is noticed before a command is sent."""
    limited(app, f"rediss://localhost:{tls.port}", certificates["localhost"].certificate)
    statuses(caller(app), "/", 1)
    tls.reset()
    assert (counts(app), told) == (True, [])

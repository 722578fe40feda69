"""What ``flask venuelimit doctor`` finds in what an app believes of its clients' addresses."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from flask_venuelimit import VenueLimit, by_ip
from flask_venuelimit.diagnosis.addressed import PLATFORMS
from tests.commands.doctor import findings, told


def venue(**settings: Any) -> Flask:
    """An app that counts addresses in memory."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_STORAGE_URI="memory://")
    app.config.update({f"VENUELIMIT_{name}": value for name, value in settings.items()})
    VenueLimit(app).limit("1200/minute", name="global", key=by_ip).everywhere()
    return app


@pytest.mark.parametrize("name", PLATFORMS)
def test_a_platforms_router_is_noted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The platform says in the environment that it is there; nobody has said whom to believe."""
    monkeypatch.setenv(name, "something")
    (what,) = told(venue(), "VL301")
    assert what == (
        f"A proxy seems to stand in front of the app ({name} in the environment: {PLATFORMS[name]}), and no "
        "proxy is trusted."
    )
    assert findings(venue(TRUSTED_PROXIES="private")) == []


def test_a_proxy_on_a_unix_socket_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but a proxy connects to one; a ProxyFix sees to it as well."""
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--bind=unix:/run/venue/app.sock")
    app = venue()
    assert len(told(app, "VL301")) == 1
    app.wsgi_app = DispatcherMiddleware(ProxyFix(app.wsgi_app), {})  # type: ignore[method-assign]
    assert findings(app) == []


def test_two_views_of_the_client_are_noted() -> None:
    """ProxyFix and our own setting may not agree; one that takes only the scheme is no second view."""
    app = venue(TRUSTED_PROXIES="loopback")
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=2)  # type: ignore[method-assign]
    (what,) = told(app, "VL302")
    assert what.startswith("ProxyFix(x_for=2) and VENUELIMIT_TRUSTED_PROXIES both say who the client is.")
    other = venue(TRUSTED_PROXIES="loopback")
    other.wsgi_app = ProxyFix(other.wsgi_app, x_for=0)  # type: ignore[method-assign]
    assert findings(other) == []


@pytest.mark.parametrize(
    ("trusted", "header"),
    [
        ("cloudflare", "X-Forwarded-For"),
        ("cloudflare, loopback", "X-Forwarded-For"),
        ("cloudflare", "X-Real-IP"),
        ("google-load-balancers", "CF-Connecting-IP"),
        ("google-load-balancers", "Forwarded"),
    ],
)
def test_a_header_that_anybody_writes_is_found(trusted: str, header: str) -> None:
    """What the edge does not keep to itself it passes on, as the client has sent it."""
    (what,) = told(venue(TRUSTED_PROXIES=trusted, FORWARDED_HEADER=header), "VL303")
    assert header in what


@pytest.mark.parametrize(
    ("trusted", "header"),
    [
        ("cloudflare", "CF-Connecting-IP"),
        ("google-load-balancers", "X-Forwarded-For"),
        ("cloudflare, loopback", "X-Real-IP"),
        ("loopback", "X-Real-IP"),
        ("private, 203.0.113.80", "X-Forwarded-For"),
    ],
)
def test_a_header_that_a_proxy_writes_is_not(trusted: str, header: str) -> None:
    """What the edge writes, or a proxy of the app's own may."""
    assert findings(venue(TRUSTED_PROXIES=trusted, FORWARDED_HEADER=header)) == []


def test_machines_and_households_apart_are_found() -> None:
    """An IPv6 client is less than a machine, which matters, or less than a household, which is noted."""
    assert len(told(venue(IPV6_PREFIX=128), "VL304")) == 1
    assert told(venue(IPV6_PREFIX=64), "VL305") == [
        "VENUELIMIT_IPV6_PREFIX is 64: a customer who holds a /56 has 256 buckets."
    ]
    assert findings(venue(IPV6_PREFIX=48)) == []


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0", "128.0.0.0/1", "2000::/3"])
def test_networks_that_are_nearly_everything_are_found(network: str) -> None:
    """To exempt them is to limit nobody, to trust them to believe everybody."""
    (what,) = told(venue(EXEMPT_NETWORKS=network), "VL306")
    assert what.startswith(f"VENUELIMIT_EXEMPT_NETWORKS has {network}, which")
    if not network.endswith("/0"):
        assert len(told(venue(TRUSTED_PROXIES=network), "VL306")) == 1


def test_ones_own_networks_are_not() -> None:
    """However wide they are."""
    assert findings(venue(EXEMPT_NETWORKS="10.0.0.0/8, fc00::/7, 203.0.113.0/24, 2001:db8::/32")) == []

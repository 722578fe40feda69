"""Apps that say who they think is asking, each with other settings, under one WSGI callable."""

from __future__ import annotations

from typing import Any

from flask import Flask, request
from werkzeug.exceptions import NotFound
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from werkzeug.middleware.proxy_fix import ProxyFix

from flask_venuelimit import VenueLimit, by_ip

#: Where proxies connect from here; clients come from other loopback addresses.
PROXIES = "127.0.0.1, 127.0.0.5, unix"


def venue(**settings: Any) -> Flask:
    """An app with settings of its own, whose root has room for two requests a minute from an address."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
    app.config.update({f"VENUELIMIT_{name}": value for name, value in settings.items()})
    limiter = VenueLimit(app)

    def who() -> dict[str, Any]:
        return {"client": limiter.client_address(), "peer": request.environ.get("REMOTE_ADDR")}

    app.add_url_rule("/who", "who", who)
    app.add_url_rule("/", "home", limiter.limit("2/minute", name="home", key=by_ip)(who))
    return app


def fixed() -> Flask:
    """An app that trusts its ProxyFix."""
    app = venue()
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
    return app


application = DispatcherMiddleware(
    NotFound(),
    {
        "/nobody": venue(),
        "/fixed": fixed(),
        "/x-forwarded-for": venue(TRUSTED_PROXIES=PROXIES),
        "/forwarded": venue(TRUSTED_PROXIES=PROXIES, FORWARDED_HEADER="Forwarded"),
        "/x-real-ip": venue(TRUSTED_PROXIES=PROXIES, FORWARDED_HEADER="X-Real-IP"),
        "/exempt": venue(TRUSTED_PROXIES=PROXIES, EXEMPT_NETWORKS="127.0.0.1, 127.0.0.3"),
    },
)

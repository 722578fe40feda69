"""What ``flask venuelimit doctor`` finds of an app around its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flask import Blueprint, Flask
from flask.sessions import SecureCookieSessionInterface
from flask_session import Session

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip, by_participant
from tests.commands.doctor import findings, told


@pytest.fixture
def limiter(app: Flask) -> VenueLimit:
    """A limiter that counts in memory."""
    return VenueLimit(app, storage=MemoryStorage())


@pytest.fixture
def limited(app: Flask, limiter: VenueLimit) -> Flask:
    """The app, with a limit everywhere."""
    limiter.limit("1200/minute", name="global", key=by_ip).everywhere()
    return app


def pull_language(endpoint: Any, values: Any) -> None:
    """Take a part of the address out, as apps do for languages."""


def test_preprocessors_are_named(limited: Flask) -> None:
    """Flask runs them before anything of ours can; an app's and a blueprint's."""
    limited.url_value_preprocessor(pull_language)
    blueprint = Blueprint("shop", __name__)
    blueprint.url_value_preprocessor(lambda endpoint, values: None)
    limited.register_blueprint(blueprint)
    (what,) = told(limited, "VL401")
    assert what.startswith(f"These url_value_preprocessors run before any limit: {__name__}.pull_language, ")
    assert "test_preprocessors_are_named.<locals>.<lambda>" in what


def test_a_session_in_a_store_is_named(limited: Flask, tmp_path: Path) -> None:
    """Flask opens it before anything of ours can."""
    from cachelib import FileSystemCache

    limited.config.update(SESSION_TYPE="cachelib", SESSION_CACHELIB=FileSystemCache(str(tmp_path)))
    Session(limited)
    (what,) = told(limited, "VL402")
    assert "Sessions are opened by flask_session." in what


def test_a_session_that_is_a_cookie_is_not(limited: Flask) -> None:
    """However it is signed."""

    class Salted(SecureCookieSessionInterface):
        salt = "another"

    limited.session_interface = Salted()
    assert findings(limited) == []


def early() -> None:
    """Run before every request."""


def upload() -> str:
    """Take a file."""
    return "thanks"


def test_hooks_ahead_of_ours_are_named(limited: Flask) -> None:
    """Somebody has put them first; what is registered as usual comes later, whenever that is."""
    limited.before_request(lambda: None)
    assert findings(limited) == []
    limited.before_request_funcs[None].insert(0, early)
    assert told(limited, "VL403") == [f"These before_request hooks run before any limit: {__name__}.early."]


@pytest.mark.parametrize("kind", ["before_request", "after_request", "teardown_request"])
def test_a_hook_that_was_taken_away_is_found(limited: Flask, kind: str) -> None:
    """Without it limits do not do what they are there for."""
    getattr(limited, f"{kind}_funcs")[None].clear()
    assert told(limited, "VL404") == [f"The limiter's {kind} hook has been taken from the app."]


def test_posts_without_a_limit_are_noted(app: Flask, limiter: VenueLimit) -> None:
    """By endpoint; not what is limited, is exempt, or changes nothing."""
    limit = limiter.limit("5/minute", name="answer", key=by_participant, per_address="500/minute")
    app.add_url_rule("/answers", "answers", limit(lambda: "ok"), methods=["POST"])
    app.add_url_rule("/hook", "hook", limiter.exempt(lambda: "ok"), methods=["POST"])
    app.add_url_rule("/", "home", lambda: "ok")
    assert findings(app) == []
    app.add_url_rule("/rename", "rename", lambda: "ok", methods=["GET", "POST"])
    assert told(app, "VL405") == ["No limit covers a POST to: rename."]


def test_of_many_the_first_are_named(app: Flask, limiter: VenueLimit) -> None:
    """And how many more there are."""
    limiter.limit("5/minute", name="joining", key=by_ip, methods={"GET"}).everywhere()
    for n in range(10):
        app.add_url_rule(f"/{n}", f"v{n}", lambda: "ok", methods=["POST"])
    assert told(app, "VL405") == ["No limit covers a POST to: v0, v1, v2, v3, v4, v5, v6, v7 and 2 more."]


def test_a_route_where_the_limit_page_lies_is_found(limited: Flask) -> None:
    """The app's own view is never called there."""
    limited.add_url_rule("/too-many-requests", "sorry", lambda: "sorry")
    assert told(limited, "VL406") == [
        "The route /too-many-requests of sorry lies where the limiter answers itself."
    ]


def test_a_robots_txt_of_the_apps_own_is_found(app: Flask) -> None:
    """Where ours is served; without it there is nothing in the way."""
    app.add_url_rule("/robots.txt", "robots", lambda: "")
    app.config["VENUELIMIT_ROBOTS_TXT"] = True
    VenueLimit(app, storage=MemoryStorage()).limit("9/minute", name="it", key=by_ip).everywhere()
    assert len(told(app, "VL406")) == 1


def test_a_view_that_is_called_static_is_noted(limited: Flask) -> None:
    """It is exempt by its name; Flask's own is meant to be."""
    blueprint = Blueprint("shop", __name__, static_folder="shop")
    limited.register_blueprint(blueprint)
    assert findings(limited) == []
    limited.add_url_rule("/upload", "static", upload, methods=["POST"])
    assert told(limited, "VL407") == [
        f"No limit touches these views, because they are called static: static ({__name__}.upload)."
    ]

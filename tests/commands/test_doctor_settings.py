"""What ``flask venuelimit doctor`` finds in an app's settings."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from tests.commands.doctor import findings, told


def venue(**settings: Any) -> Flask:
    """An app that counts in memory, and has one limit, with further settings."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_STORAGE_URI="memory://")
    app.config.update(settings)
    VenueLimit(app).limit("1200/minute", name="global", key=by_ip).everywhere()
    return app


def test_without_storage_budgets_are_named() -> None:
    """Nobody counts, and what that leaves open is said."""
    app = Flask("venue")
    VenueLimit(app).limit("5/minute", name="checkout", budget=True).everywhere()
    (what,) = told(app, "VL001")
    assert what.startswith("Limiting is off: no storage is set")
    assert what.endswith("These budgets are open: checkout.")


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (False, "Limiting is off: VENUELIMIT_ENABLED says so, and every limit admits every request."),
        ("maybe", "VENUELIMIT_ENABLED is neither true nor false, so every request fails."),
    ],
)
def test_a_switch_that_is_off_is_found(value: object, what: str) -> None:
    """As it is now: it is read at each request."""
    app = venue()
    app.config["VENUELIMIT_ENABLED"] = value
    assert told(app, "VL002") == [what]


def test_a_misspelt_setting_is_found() -> None:
    """With what it may have been meant to be."""
    assert told(venue(VENUELIMIT_HEADER="x"), "VL003") == [
        "VENUELIMIT_HEADER is not a setting of flask_venuelimit; did you mean VENUELIMIT_HEADERS?"
    ]


def test_an_override_without_its_limit_is_found() -> None:
    """Before the first request fails of it."""
    (what,) = told(venue(VENUELIMIT_LIMITS={"globe": "9/minute"}), "VL004")
    assert what.startswith("VENUELIMIT_LIMITS names 'globe', but no limit has this name.")


def test_settings_that_came_too_late_are_found() -> None:
    """``init_app`` has read others, by which requests go."""
    app = venue()
    app.config.update(VENUELIMIT_ON_ERROR="deny", SECRET_KEY="another", VENUELIMIT_TRUSTED_PROXIES="unix")
    later = "was changed after init_app, which goes by the value it had then."
    assert told(app, "VL005") == [
        f"VENUELIMIT_SALT or SECRET_KEY {later}",
        f"VENUELIMIT_ON_ERROR {later}",
        f"VENUELIMIT_TRUSTED_PROXIES or VENUELIMIT_FORWARDED_HEADER {later}",
    ]


def test_a_late_setting_that_cannot_be_kept_is_found() -> None:
    """By its name; its value may be a secret."""
    app = venue()
    app.config["VENUELIMIT_KEY_PREFIX"] = "{braces}"
    assert told(app, "VL005") == ["VENUELIMIT_KEY_PREFIX was set after init_app, to what cannot be kept."]


def test_nothing_has_changed_where_the_salt_is_drawn() -> None:
    """An app without a secret has a salt that is drawn, and would be drawn anew."""
    app = Flask("venue")
    VenueLimit(app)
    assert told(app, "VL005") == []


@pytest.mark.parametrize("name", ["FLASK_VENUELIMIT_ON_ERROR", "VENUELIMIT_ON_ERROR"])
def test_settings_that_only_the_environment_has_are_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The app does not load them, or not by this name."""
    monkeypatch.setenv(name, "deny")
    assert told(venue(), "VL006") == [
        f"The environment has {name}, but app.config has no VENUELIMIT_ON_ERROR."
    ]
    assert told(venue(VENUELIMIT_ON_ERROR="allow"), "VL006") == []


def test_settings_without_an_effect_are_found() -> None:
    """A storage that another one outranks, options of it, a header of proxies that nobody trusts."""
    app = Flask("venue")
    app.config.update(
        SECRET_KEY="long and random",
        VENUELIMIT_STORAGE_URI="redis://localhost",
        VENUELIMIT_STORAGE_OPTIONS={"socket_timeout": 1},
        VENUELIMIT_FORWARDED_HEADER="X-Real-IP",
    )
    VenueLimit(app, storage=MemoryStorage())
    found = told(app, "VL007")
    assert [what.split()[0] for what in found] == [
        "VENUELIMIT_STORAGE_URI",
        "VENUELIMIT_STORAGE_OPTIONS",
        "VENUELIMIT_FORWARDED_HEADER",
    ]


@pytest.mark.parametrize("secret", ["dev", b"dev", "change-me-please", "my super secret key!", "ChangeMe"])
def test_a_weak_secret_is_found(secret: str | bytes) -> None:
    """Short, or out of a tutorial; it is not repeated."""
    (finding,) = findings(venue(SECRET_KEY=secret))
    assert finding["code"] == "VL008"
    assert str(secret) not in finding["what"]


def test_a_salt_that_rotates_with_the_key_is_found() -> None:
    """Counts begin anew with each key, unless the salt is its own."""
    rotated: dict[str, Any] = {"SECRET_KEY_FALLBACKS": ["the last long and random one"]}
    assert len(told(venue(**rotated), "VL009")) == 1
    assert told(venue(**rotated, VENUELIMIT_SALT="grains of salt"), "VL009") == []


def test_waits_without_jitter_are_found() -> None:
    """Everybody would come back at once."""
    assert len(told(venue(VENUELIMIT_RETRY_JITTER=0), "VL010")) == 1

"""Without storage, or switched off: everything is admitted, and it is said aloud."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import ConfigurationError, FixedWindow, MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, statuses


def limited(limiter: VenueLimit, app: Flask) -> Any:
    """A limit that lets nobody pass, on ``/``."""
    limit = limiter.limit(FixedWindow(0, 60), name="closed", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    return limit


def test_without_storage_every_limit_admits(app: Flask) -> None:
    """A fresh clone runs: nobody counts, and no header says otherwise."""
    limiter = VenueLimit(app)
    limited(limiter, app)
    limiter.failures("0/minute", name="f").everywhere()
    answer = caller(app).get("/")
    assert answer.status_code == 200
    assert [name for name, _ in answer.headers if "ratelimit" in name.lower()] == []
    assert statuses(caller(app), "/nowhere", 3) == [404] * 3


def test_without_storage_one_warning_says_so(app: Flask, warnings: list[str]) -> None:
    """At the start it is told, once, that limiting is off and which setting turns it on."""
    limiter = VenueLimit(app)
    limited(limiter, app)
    statuses(caller(app), "/", 3)
    (warning,) = warnings
    assert "limiting is off" in warning
    assert "VENUELIMIT_STORAGE_URI" in warning


def test_without_storage_no_salt_is_needed(warnings: list[str]) -> None:
    """An app without SECRET_KEY runs, and its pages too."""
    app = Flask("bare", template_folder=None)
    limited(VenueLimit(app), app)
    assert statuses(caller(app), "/", 1) + statuses(caller(app), "/too-many-requests", 1) == [200, 200]


def test_without_storage_a_decision_is_nobody_s(app: Flask) -> None:
    """What nobody counted has all its quota and no wait."""
    limit = VenueLimit(app).limit("5/minute", name="it", key=by_ip)
    for decision in (limit.hit(5, subject=C), limit.hit(subject=C), limit.peek(subject=C)):
        assert (decision.allowed, decision.remaining, decision.quota) == (True, 5, 5)
        assert (decision.retry_after, decision.reset_after, decision.delay) == (0.0, 0.0, 0.0)
    with limit.guard(9, subject=C) as decision:
        limit.refund(decision)
    limit.reset(C)


def test_an_empty_uri_is_none(app: Flask, warnings: list[str]) -> None:
    """A variable that is set and empty, as compose files do, is no storage."""
    app.config["VENUELIMIT_STORAGE_URI"] = ""
    limited(VenueLimit(app), app)
    assert statuses(caller(app), "/", 1) == [200]
    assert len(warnings) == 1


@pytest.mark.parametrize("value", [True, "true", "1", "yes", 1])
def test_storage_may_be_required(app: Flask, value: Any) -> None:
    """``VENUELIMIT_REQUIRE_STORAGE`` makes an error of the warning; the app does not start."""
    app.config["VENUELIMIT_REQUIRE_STORAGE"] = value
    with pytest.raises(ConfigurationError) as caught:
        VenueLimit(app)
    assert str(caught.value) == (
        "VENUELIMIT_REQUIRE_STORAGE is set, but there is no storage, so no limit would count. "
        "Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379."
    )


@pytest.mark.parametrize("given", ["object", "uri"])
def test_storage_that_is_required_and_there_is_fine(app: Flask, given: str) -> None:
    """An object in the constructor is storage as much as a URI is."""
    app.config["VENUELIMIT_REQUIRE_STORAGE"] = True
    app.config["VENUELIMIT_STORAGE_URI"] = "memory://" if given == "uri" else None
    limiter = VenueLimit(app, storage=MemoryStorage() if given == "object" else None)
    limited(limiter, app)
    assert statuses(caller(app), "/", 1) == [429]


@pytest.mark.parametrize("off", [False, "false", "0", "off", 0])
@pytest.mark.parametrize("on", [True, "true", None])
def test_limiting_is_switched_at_each_request(app: Flask, limiter: VenueLimit, off: Any, on: Any) -> None:
    """``VENUELIMIT_ENABLED`` is read when a request comes, so a test can switch it; None is unset."""
    limited(limiter, app)
    seen = statuses(caller(app), "/", 1)
    for value in (off, on):
        app.config["VENUELIMIT_ENABLED"] = value
        seen += statuses(caller(app), "/", 1)
    assert seen == [429, 200, 429]


def test_switched_off_nothing_is_charged_nor_shown(app: Flask, limiter: VenueLimit) -> None:
    """Requests and hits by hand leave the count as it is; answers carry no limit state."""
    limit = limiter.limit("5/minute", name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    app.config["VENUELIMIT_ENABLED"] = False
    answer = caller(app).get("/")
    assert [name for name, _ in answer.headers if "ratelimit" in name.lower()] == []
    hit = limit.hit(5, subject=C)
    assert (hit.allowed, hit.remaining, hit.retry_after, hit.reset_after) == (True, 5, 0.0, 0.0)
    app.config["VENUELIMIT_ENABLED"] = True
    assert limit.peek(subject=C).remaining == 5


def test_switched_off_nobody_is_asked(app: Flask, limiter: VenueLimit) -> None:
    """Neither keys nor predicates run while limiting is off."""
    asked: list[int] = []
    limiter.exempt_if(lambda: asked.append(1))
    limiter.limit("5/minute", name="it", key=lambda: asked.append(2)).everywhere()
    app.config["VENUELIMIT_ENABLED"] = False
    statuses(caller(app), "/", 2)
    assert asked == []


def test_an_app_may_start_switched_off(app: Flask, storage: Any) -> None:
    """A test configuration that turns limiting off is enough."""
    app.config["VENUELIMIT_ENABLED"] = False
    limited(VenueLimit(app, storage=storage), app)
    assert statuses(caller(app), "/", 3) == [200] * 3

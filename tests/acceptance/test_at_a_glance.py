"""The first page of the contract, typed in as it stands there."""

from __future__ import annotations

import logging

import pytest
from flask import Blueprint, Flask
from flask.testing import FlaskClient

import flask_venuelimit
from flask_venuelimit import (
    ConfigurationError,
    SlidingWindow,
    TokenBucket,
    VenueLimit,
    by_bearer,
    by_ip,
    by_participant,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import items, room, signed_in, statuses

limiter = VenueLimit()
limiter.limit(SlidingWindow(1200, per=60), name="global", key=by_ip).everywhere()
auth_failures = limiter.failures("60/minute", name="auth-failures")
api = limiter.limit(TokenBucket(capacity=20, rate=240, per=60), name="api", key=by_bearer)
bp = Blueprint("quiz", __name__)


@bp.post("/answers")
@limiter.limit("10/minute", name="submit-answer", key=by_participant, per_address="1000/minute")
def submit_answer() -> str:
    return "noted"


@bp.get("/export")
@auth_failures
@api(cost=20)
def export() -> str:
    return "everything"


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    monkeypatch.setenv("FLASK_VENUELIMIT_STORAGE_URI", "memory://")
    monkeypatch.setenv("FLASK_SECRET_KEY", "long and random")
    app = Flask(__name__)
    app.config.from_prefixed_env()
    limiter.init_app(app)
    app.register_blueprint(bp)
    return signed_in(app, participant_id="p1")


def test_every_response_tells_of_all_limits_that_decided_it(client: FlaskClient) -> None:
    """One answer tells of the limit on everything and of the view's own."""
    answer = client.post("/answers")
    assert items(answer, "RateLimit-Policy") == {
        "global": {"q": 1200, "w": 60},
        "submit-answer": {"q": 10, "w": 60},
    }
    assert items(answer, "RateLimit") == {
        "global": {"r": 1199, "t": 60},
        "submit-answer": {"r": 9, "t": 60},
    }


def test_a_participant_has_ten_answers_a_minute(client: FlaskClient) -> None:
    """The eleventh answer within a minute is refused, whatever else there is room for."""
    assert statuses(client, "/answers", 11, method="POST") == [200] * 10 + [429]


def test_whoever_is_not_known_shares_the_building_s_thousand(client: FlaskClient) -> None:
    """Without a participant the address stands in, and has the policy made for it."""
    stranger = client.application.test_client()
    assert items(stranger.post("/answers"), "RateLimit-Policy")["submit-answer"]["q"] == 1000


def test_one_export_empties_the_bucket(client: FlaskClient) -> None:
    """A view that costs 20 takes all of a bucket of 20, and the next caller of that token waits."""
    token = {"Authorization": "Bearer t"}
    first, second = (client.get("/export", headers=token) for _ in range(2))
    assert (first.status_code, room(first, "api")) == (200, 0)
    assert (second.status_code, room(second, "api"), room(second, "auth-failures")) == (429, 0, 59)


def test_an_error_of_configuration_is_a_value_error() -> None:
    """Whoever catches ValueError around the start of an app catches ours."""
    assert issubclass(ConfigurationError, ValueError)


def test_a_manual_clock_moves_when_told() -> None:
    """The clock for tests reads what it was advanced to."""
    clock = ManualClock()
    before = clock()
    clock.advance(1.5)
    assert clock() - before == 1.5


def test_warnings_come_from_one_logger(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    """What the extension warns about is logged under its own name."""
    flask_venuelimit.VenueLimit(Flask("without storage"))
    assert [(r.name, r.levelno) for r in caplog.records] == [("flask_venuelimit", logging.WARNING)]

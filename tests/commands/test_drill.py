"""``flask venuelimit drill``: every limit is driven into, and nothing of the app is touched."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from flask import Flask, request

from flask_venuelimit import (
    Concurrency,
    Decision,
    FixedWindow,
    Key,
    LeakyBucket,
    SlidingLog,
    SlidingWindow,
    TokenBucket,
    VenueLimit,
    by_bearer,
    by_ip,
    by_participant,
    by_user,
    limit_refused,
)
from tests.acceptance.callers import caller, statuses
from tests.commands.drilling import drilled, forbidden, said, venue, verdicts


def test_each_limit_has_a_line_for_each_check() -> None:
    """Refusal, recovery and memory, in the order of declaration, and how many there were of each verdict."""
    app, limiter = venue()
    limiter.limit("1200/minute", name="global", key=by_ip).everywhere()
    limiter.limit("10/minute", name="answer", key=by_participant)
    answer = drilled(app)
    assert answer.code == 0
    assert [line.split(":")[0] for line in answer.lines[:6]] == [
        *(f"ok {check} global" for check in ("refusal", "recovery", "memory")),
        *(f"ok {check} answer" for check in ("refusal", "recovery", "memory")),
    ]
    assert answer.lines[6:] == ["", "6 checks: 6 ok, 0 not driven, 0 FAILED"]


def test_what_is_shown_of_a_shared_address() -> None:
    """The hint, the page for a browser; how a room comes back; and how much is held meanwhile."""
    app, limiter = venue()
    limiter.limit(FixedWindow(20, per=60), name="it", key=by_ip)
    answer = drilled(app)
    assert said(answer, "refusal", "it").startswith("ok: 429, Retry-After 6")
    assert said(answer, "refusal", "it").endswith(
        ", application/json; a browser: 303 to /too-many-requests, 429, text/html"
    )
    recovery = said(answer, "recovery", "it")
    assert recovery.startswith("ok: 50 at one address come back after 60 to 66 s, at most ")
    assert "; at most " in recovery
    assert recovery.split(" a second get in, all within ")[1] in {
        f"{seconds} s" for seconds in range(120, 200)
    }
    assert said(answer, "memory", "it") == (
        "ok: 1200 others come: 400 keys held in memory, of at most 400; who was refused still is"
    )


@pytest.mark.parametrize("key", [by_ip, by_user], ids=["shared", "own"])
@pytest.mark.parametrize(
    "policy",
    [
        FixedWindow(5, per=60),
        SlidingWindow(1, per=86_400),
        SlidingWindow(5, per=0.1),
        SlidingLog(1_000_000, per=60),
        TokenBucket(20, rate=240, per=60),
        LeakyBucket(5),
        LeakyBucket(5, max_delay=2),
        LeakyBucket(1, per=60, max_delay=120),
        Concurrency(3),
        [TokenBucket(20, rate=4), Concurrency(2)],
        ["5/minute", "20/hour"],
    ],
    ids=str,
)
def test_every_policy_can_be_driven(policy: Any, key: Key) -> None:
    """However much it holds, and however long it makes wait: nobody waits for it."""
    app, limiter = venue()
    limiter.limit(policy, name="it", key=key)
    assert verdicts(drilled(app)) == ["ok"] * 3


@pytest.mark.parametrize(
    "terms",
    [
        {"cost": 4},
        {"cost": forbidden},
        {"budget": True},
        {"per_process": True},
        {"on_error": "deny"},
        {"refund_if": forbidden},
        {"unless": forbidden},
        {"methods": {"POST"}},
        {"message": "Slow down, please."},
        {"key": Key("tenant", forbidden) & by_user},
        {"key": by_bearer},
        {"key": forbidden},
    ],
    ids=lambda terms: ", ".join(terms),
)
def test_every_sort_of_limit_can_be_driven(terms: dict[str, Any]) -> None:
    """And none of the app's own functions is asked."""
    app, limiter = venue()
    limiter.identify_user(forbidden)
    limiter.exempt_if(forbidden)
    limiter.limit("10/minute", name="it", **terms)
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_a_failure_limit_is_driven_by_failures() -> None:
    """Successes would get their charge back, and nobody would be refused."""
    app, limiter = venue()
    limiter.failures("10 per 15 minutes", name="auth")
    answer = drilled(app)
    assert verdicts(answer) == ["ok"] * 3
    assert "50 at one address" in said(answer, "recovery", "auth")


def test_no_wait_is_promised_where_none_helps() -> None:
    """A closed door has no hint, which is right, and is not waited at."""
    app, limiter = venue()
    limiter.limit("0/minute", name="closed", key=by_ip)
    answer = drilled(app)
    assert answer.code == 0
    assert said(answer, "refusal", "closed").startswith("ok: 429, no Retry-After, since no wait helps, ")
    assert said(answer, "recovery", "closed").startswith("not driven: no wait helps")


def test_a_shadow_limit_lets_pass() -> None:
    """Over its limit too; so there is nobody who could recover."""
    app, limiter = venue()
    limiter.limit("5/minute", name="trial", key=by_user, shadow=True)
    answer = drilled(app)
    assert answer.code == 0
    assert said(answer, "refusal", "trial") == "ok: over the limit, and let pass: it only watches"
    assert said(answer, "recovery", "trial") == "not driven: a shadow limit refuses nobody"


def test_a_policy_that_requests_tell_cannot_be_driven() -> None:
    """That is said, and is no failure."""
    app, limiter = venue()
    limiter.limit(lambda: request.args["policy"], name="told", key=by_user, per_address="5/minute")
    answer = drilled(app)
    assert answer.code == 0
    assert said(answer, "memory", "told") == "not driven: its policy is told at each request"
    assert verdicts(answer) == ["not", "not", "not", "ok", "ok", "ok"]


def test_a_building_is_driven_apart_from_a_person() -> None:
    """Each with its own number: fifty people at one address share the larger."""
    app, limiter = venue()
    limiter.limit("10/minute", name="answer", key=by_participant, per_address="1000/minute")
    answer = drilled(app)
    assert "50 with a bucket each" in said(answer, "recovery", "answer")
    assert "50 at one address" in said(answer, "recovery", "answer, for an address")


def test_the_app_s_own_numbers_are_driven() -> None:
    """VENUELIMIT_LIMITS may have closed a door."""
    app, limiter = venue(LIMITS={"it": "0/minute"})
    limiter.limit("10/minute", name="it", key=by_ip)
    assert verdicts(drilled(app)) == ["ok", "not", "ok"]


def test_unnamed_limits_are_driven_endpoint_by_endpoint() -> None:
    """And where each method has a bucket, method by method."""
    app, limiter = venue()
    limit = limiter.limit("5/minute", key=by_user, per_method=True)
    app.add_url_rule("/one", "one", limit(forbidden), methods=["GET", "PUT"])
    app.add_url_rule("/two", "two", limit(forbidden))
    lines = drilled(app).lines
    assert [line.split(": ")[0] for line in lines if " refusal " in line] == [
        "ok refusal one (GET)",
        "ok refusal one (PUT)",
        "ok refusal two (GET)",
    ]


def test_no_view_and_no_hook_runs() -> None:
    """A drill of a shop orders nothing."""
    app, limiter = venue()
    app.add_url_rule("/order", "order", limiter.limit("5/minute", name="it", key=by_ip)(forbidden))
    for hook in (app.before_request, app.after_request, app.teardown_request, app.teardown_appcontext):
        hook(forbidden)
    app.url_value_preprocessor(forbidden)
    app.teardown_appcontext_funcs.clear()  # Flask's command line tears an app context down itself
    assert verdicts(drilled(app)) == ["ok"] * 3


def test_nobody_s_count_changes() -> None:
    """Who had used two of three has one left."""
    app, limiter = venue()
    app.add_url_rule("/", "home", limiter.limit(FixedWindow(3, per=60), name="it", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 2) == [200, 200]
    drilled(app)
    assert statuses(caller(app), "/", 2) == [200, 429]


def test_nobody_hears_of_a_drill(caplog: pytest.LogCaptureFixture) -> None:
    """No receiver of the signal, of whichever sender, and no log."""
    heard: list[Decision] = []

    def hear(_: Flask, decision: Decision) -> None:
        heard.append(decision)

    app, limiter = venue()
    limiter.limit("5/minute", name="it", key=by_ip)
    with caplog.at_level(logging.INFO, logger="flask_venuelimit"), limit_refused.connected_to(hear):
        assert verdicts(drilled(app)) == ["ok"] * 3
    assert (heard, caplog.text) == ([], "")


def test_an_app_that_limits_nothing_fails() -> None:
    """Nobody would be refused there, and that is no drill."""
    app, limiter = venue(ENABLED=False)
    limiter.limit("5/minute", name="it", key=by_ip)
    answer = drilled(app)
    assert answer.code == 1
    assert answer.text.startswith("Error: Limiting is off in this app, so nobody is ever refused: set ")


def test_an_app_without_limits_says_so() -> None:
    """There is nothing to drive into."""
    assert drilled(venue()[0]).lines == ["No limits are declared."]


def test_settings_that_do_not_fit_are_explained() -> None:
    """In a sentence, as everywhere."""
    answer = drilled(venue(LIMITS={"nope": "1/minute"})[0])
    assert answer.code == 1
    assert "VENUELIMIT_LIMITS names 'nope', but no limit has this name." in answer.text


def test_a_sketch_is_drilled_as_one() -> None:
    """What arrives is counted in a fixed number of bytes."""
    app, limiter = venue(STORAGE_URI="memory://?sketch=8")
    limiter.limit("5/minute", name="it", key=by_ip)
    answer = drilled(app)
    assert verdicts(answer) == ["ok"] * 3
    assert "0 keys held in memory beside 1 MiB of counters" in said(answer, "memory", "it")


def test_a_limiter_that_serves_several_apps_is_drilled_in_each() -> None:
    """Under that app's settings."""
    limiter = VenueLimit()
    limiter.limit("5/minute", name="it", key=by_ip)
    apps = [Flask(name, template_folder=None, static_folder=None) for name in ("one", "two")]
    for app, mode in zip(apps, ("redirect", "inline"), strict=True):
        app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://", VENUELIMIT_PAGE_MODE=mode)
        limiter.init_app(app)
    ends = [said(drilled(app), "refusal", "it").partition("browser: ")[2] for app in apps]
    assert ends == ["303 to /too-many-requests, 429, text/html", "429, text/html"]

"""Metrics for Prometheus, in one process: what is counted, and what stands in no label."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import redis
from flask import Flask
from prometheus_client import CollectorRegistry
from redis.backoff import NoBackoff
from redis.retry import Retry

from flask_venuelimit import (
    Concurrency,
    ConfigurationError,
    FixedWindow,
    MemoryStorage,
    RedisStorage,
    VenueLimit,
    by_ip,
    by_participant,
)
from flask_venuelimit.prometheus import CALLS, OUTCOMES, Metrics
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import A, C, caller, commands, signed_in, statuses
from tests.observing.scraping import scrape, values
from tests.servers import StoreServer

DECISIONS, SECONDS = "venuelimit_decisions_total", "venuelimit_storage_seconds_count"
FAILURES = "venuelimit_storage_failures_total"
FAILING, COUNTING = "venuelimit_storage_failing", "venuelimit_counting"
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.fixture
def registry() -> CollectorRegistry:
    """A registry of this test's own."""
    return CollectorRegistry()


def make_app(**settings: object) -> Flask:
    """An app without folders of its own, and a view that no limit decorates."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_STORAGE_URI="memory://", **settings)
    app.add_url_rule("/", "home", lambda: "ok")
    return app


@pytest.fixture
def app() -> Flask:
    """An app that counts in memory."""
    return make_app()


@pytest.fixture
def limiter(app: Flask, registry: CollectorRegistry) -> VenueLimit:
    """A limiter that is observed."""
    limiter = VenueLimit(app)
    Metrics(limiter, app, registry=registry)
    return limiter


def test_decisions_are_counted_by_limit_and_outcome(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """Who was admitted, who was refused, and who would have been."""
    limiter.limit(FixedWindow(3, 60), name="global", key=by_ip).everywhere()
    limiter.limit(FixedWindow(1, 60), name="watched", key=by_ip, shadow=True).everywhere()
    assert statuses(caller(app), "/", 5) == [200] * 3 + [429] * 2
    assert values(scrape(registry), DECISIONS) == {
        ("global", "admitted"): 3,
        ("global", "refused"): 2,
        ("watched", "admitted"): 1,
        ("watched", "shadow_refused"): 4,
    }


def test_what_nobody_could_count_is_told_apart(registry: CollectorRegistry) -> None:
    """While storage fails a limit lets pass uncounted, or denies, as its ``on_error`` says."""
    app = make_app()
    app.config["VENUELIMIT_STORAGE_URI"] = "redis://localhost:1"
    limiter = VenueLimit(app)
    Metrics(limiter, app, registry=registry)
    limiter.limit("3/minute", name="global", key=by_ip).everywhere()
    app.add_url_rule("/buy", "buy", limiter.limit("3/minute", name="checkout", budget=True)(lambda: "ok"))
    assert [caller(app).get(path).status_code for path in ("/", "/buy")] == [200, 503]
    assert values(scrape(registry), DECISIONS) == {
        ("global", "uncounted"): 2,
        ("checkout", "denied"): 1,
    }


def test_outcomes_are_the_promised_ones() -> None:
    """There are five, whatever becomes of a request."""
    assert OUTCOMES == ("admitted", "refused", "shadow_refused", "uncounted", "denied")


def test_calls_by_hand_are_counted_and_looks_are_not(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """Also those that no request asked for, such as a queue's worker's."""
    mails = limiter.limit("2/hour", name="mails", key=by_ip)
    app.add_url_rule("/mail", "mail", lambda: str(mails.hit().allowed))
    for _ in range(2):
        mails.hit(subject=C)
        mails.peek(subject=C)
    assert caller(app).get("/mail").text == "False"
    assert values(scrape(registry), DECISIONS) == {("mails", "admitted"): 2, ("mails", "refused"): 1}


def test_a_request_that_ends_in_an_exception_is_counted(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """A decision is counted when it is made, whatever becomes of the request."""
    app.testing = True
    app.add_url_rule("/broken", "broken", limiter.limit("2/hour", key=by_ip)(lambda: str(1 // 0)))
    with pytest.raises(ZeroDivisionError):
        caller(app).get("/broken")
    assert values(scrape(registry), DECISIONS) == {("broken", "admitted"): 1}


def test_paths_without_a_route_share_a_label(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """However many a scanner tries; a limit without a name is called by its endpoint."""
    limiter.limit("9/hour", key=by_ip).everywhere()
    for number in range(50):
        caller(app).get(f"/wp-admin/{number}")
    caller(app).get("/")
    assert set(values(scrape(registry), DECISIONS)) == {
        ("unmatched", "admitted"),
        ("unmatched", "refused"),
        ("home", "admitted"),
    }


def test_no_label_holds_anything_of_a_client(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """No key, path, method, header or identity, nor a digest of one."""
    limit = limiter.limit("9/hour", name="it", key=by_participant)
    app.add_url_rule("/<path:secret>", "view", limit(lambda secret: "ok"), methods=["GET", "POST"])
    signed_in(app, participant_id="secret").post("/secret", headers={"Authorization": "Bearer secret"})
    caller(app, A).get("/secret?secret", headers={"X-Forwarded-For": "secret"})
    told = {(name, value) for each in scrape(registry) for name, value in each.labels.items() if name != "le"}
    calls = {("call", call) for call in ("decide", "peek", "refund", "renew", "reset")}
    assert told == calls | {("limit", "it"), ("outcome", "admitted")}


@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_calls_of_the_storage_are_timed(
    kind: str, app: Flask, registry: CollectorRegistry, request: pytest.FixtureRequest
) -> None:
    """By what is asked: to decide, to look, to give back, to forget."""
    given = None if kind == "memory" else RedisStorage(request.getfixturevalue("valkey_client"))
    limiter = VenueLimit(app, storage=given)
    Metrics(limiter, app, registry=registry)
    failures = limiter.failures("9/hour", name="failures").everywhere()
    statuses(caller(app), "/", 2)
    failures.peek(subject=C)
    failures.reset(C)
    found = scrape(registry)
    assert values(found, SECONDS) == {("decide",): 2, ("refund",): 2, ("peek",): 1, ("reset",): 1}
    spent = values(found, "venuelimit_storage_seconds_sum")
    assert all(0 < seconds < 5 for seconds in spent.values())


def test_what_a_renewal_takes_is_timed(clock: ManualClock, registry: CollectorRegistry) -> None:
    """A streamed body renews its slot."""
    app = make_app()
    limiter = VenueLimit(app, storage=MemoryStorage(clock=clock))
    Metrics(limiter, app, registry=registry)

    def stream() -> Any:
        for _ in range(3):
            clock.advance(50)
            yield "part"

    app.add_url_rule("/stream", "stream", limiter.limit(Concurrency(1, lease=60), key=by_ip)(stream))
    assert caller(app).get("/stream").text == "part" * 3
    assert values(scrape(registry), SECONDS)[("renew",)] >= 1


def test_failures_of_the_storage_are_counted_by_their_class(registry: CollectorRegistry) -> None:
    """And a gauge says whether storage is asked at present; while it is not, there are no calls."""
    app = make_app()
    with StoreServer() as server:
        app.config["VENUELIMIT_STORAGE_URI"] = server.url
        limiter = VenueLimit(app)
        Metrics(limiter, app, registry=registry)
        limiter.limit("9/hour", name="global", key=by_ip).everywhere()
        statuses(caller(app), "/", 2)
        assert values(scrape(registry), FAILING) == {}
    statuses(caller(app), "/", 3)
    found = scrape(registry)
    ((error,), count), *others = values(found, FAILURES).items()
    assert (error.endswith("Error"), count, others) == (True, 1, [])
    assert values(found, SECONDS) == {("decide",): 3}
    assert values(found, FAILING) == {(): 1}


def hasty(server: StoreServer) -> redis.Redis:
    """A client that waits for an answer as long as an app does, and tries once."""
    return redis.Redis.from_url(server.hasty_url, socket_timeout=0.1, retry=Retry(NoBackoff(), 0))


def test_a_storage_that_answers_again_is_not_failing(registry: CollectorRegistry, clock: ManualClock) -> None:
    """The gauge goes back to 0 with the request that finds it out."""
    app = make_app()
    with StoreServer() as server, hasty(server) as client:
        limiter = VenueLimit(app, storage=RedisStorage(client, clock=clock))
        Metrics(limiter, app, registry=registry)
        limiter.limit("9/hour", name="global", key=by_ip).everywhere()
        server.pause()
        statuses(caller(app), "/", 1)
        server.resume()
        assert values(scrape(registry), FAILING) == {(): 1}
        clock.advance(1)
        statuses(caller(app), "/", 1)
        assert values(scrape(registry), FAILING) == {}


def test_a_gauge_says_whether_limits_count(
    app: Flask, limiter: VenueLimit, registry: CollectorRegistry
) -> None:
    """It follows ``VENUELIMIT_ENABLED`` at once."""
    seen = []
    for enabled in (True, False, "yes"):
        app.config["VENUELIMIT_ENABLED"] = enabled
        seen.append(values(scrape(registry), COUNTING))
    assert seen == [{(): 1}, {}, {(): 1}]


def test_without_storage_nothing_counts(registry: CollectorRegistry) -> None:
    """The gauge says what the warning at start said; calls by hand are uncounted."""
    app = make_app()
    app.config["VENUELIMIT_STORAGE_URI"] = None
    limiter = VenueLimit(app)
    Metrics(limiter, app, registry=registry)
    limiter.limit("1/hour", name="it", key=by_ip).everywhere().hit(subject=C)
    statuses(caller(app), "/", 2)
    found = scrape(registry)
    assert (values(found, COUNTING), values(found, SECONDS)) == ({}, {})
    assert values(found, DECISIONS) == {("it", "uncounted"): 1}


def test_apps_of_one_limiter_are_counted_together(registry: CollectorRegistry) -> None:
    """Limits count where all of them count."""
    limiter = VenueLimit()
    limiter.limit("1/hour", name="it", key=by_ip).everywhere()
    metrics = Metrics(limiter, registry=registry)
    assert values(scrape(registry), COUNTING) == {}
    apps = [make_app(), make_app()]
    for app in apps:
        limiter.init_app(app)
        metrics.init_app(app)
        statuses(caller(app), "/", 3)
    assert values(scrape(registry), DECISIONS) == {("it", "admitted"): 2, ("it", "refused"): 4}
    assert values(scrape(registry), COUNTING) == {(): 1}
    apps[0].config["VENUELIMIT_ENABLED"] = False
    assert values(scrape(registry), COUNTING) == {}


def test_a_factory_may_run_twice(registry: CollectorRegistry) -> None:
    """A registry takes a name once; whoever observes into it shares what is there."""
    for _ in range(2):
        app = make_app()
        limiter = VenueLimit(app)
        Metrics(limiter, app, registry=registry)
        limiter.limit("1/hour", name="it", key=by_ip).everywhere()
        statuses(caller(app), "/", 1)
    assert values(scrape(registry), DECISIONS) == {("it", "admitted"): 2}


def test_an_app_that_is_gone_says_nothing_any_longer(registry: CollectorRegistry) -> None:
    """The registry keeps no app, and what has been counted stays."""
    app = make_app(VENUELIMIT_ENABLED=False)
    limiter = VenueLimit(app)
    Metrics(limiter, app, registry=registry)
    gone = weakref.ref(app)
    del app, limiter
    gc.collect()
    assert gone() is None
    kept = make_app()
    Metrics(VenueLimit(kept), kept, registry=registry)
    assert values(scrape(registry), COUNTING) == {(): 1}


def test_an_app_that_is_not_served_is_refused(app: Flask, registry: CollectorRegistry) -> None:
    """The text says what to call first."""
    VenueLimit(app)
    with pytest.raises(ConfigurationError) as caught:
        Metrics(VenueLimit(), app, registry=registry)
    assert str(caught.value) == (
        "the app 'venue' is not served by the VenueLimit that Metrics was given. Call limiter.init_app(app) "
        "first."
    )


def test_an_app_is_not_counted_twice(app: Flask, limiter: VenueLimit, registry: CollectorRegistry) -> None:
    """The second time is an error, and not a doubling that nobody notices."""
    with pytest.raises(ConfigurationError) as caught:
        Metrics(limiter, app, registry=registry)
    assert str(caught.value) == (
        "the app 'venue' has Metrics already, and would be counted twice. Call init_app once."
    )


def test_observing_sends_storage_nothing(valkey_client: redis.Redis, registry: CollectorRegistry) -> None:
    """A request makes the one call it makes without metrics; neither counting nor a scrape adds another."""
    app = make_app()
    limiter = VenueLimit(app, storage=valkey_client)
    Metrics(limiter, app, registry=registry)
    limiter.limit("1/hour", name="it", key=by_ip).everywhere()
    statuses(caller(app), "/", 1)
    with commands(valkey_client) as seen:
        statuses(caller(app, A), "/", 1)
        scrape(registry)
    assert seen == ["EVALSHA"]


def test_without_the_extra_the_error_says_what_to_install() -> None:
    """The package itself works without it."""
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "import flask_venuelimit\n"
        "try: import flask_venuelimit.prometheus\n"
        "except ImportError as error: print(error)"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout == (
        "flask_venuelimit.prometheus needs prometheus-client, which is not installed. Install the extra: "
        "pip install 'flask-venuelimit[prometheus]'\n"
    )


def test_every_metric_is_written_down(registry: CollectorRegistry) -> None:
    """The table has each metric that a scrape finds, with its labels, and no other."""
    app = make_app()
    app.config["VENUELIMIT_STORAGE_URI"] = "redis://localhost:1"
    Metrics(limiter := VenueLimit(app), app, registry=registry)
    limiter.limit("1/hour", name="it", key=by_ip).hit(subject=C)
    found = {}
    for sample in scrape(registry):
        name = re.sub("_(bucket|count|sum)$", "", sample.name)
        found[name] = [label for label in sample.labels if label != "le"]
    rows = re.findall(r"^\| `(venuelimit_\w+)` \| (.*?) ?\|", DOCS.read_text(), re.MULTILINE)
    assert {name: re.findall(r"`(\w+)`", labels) for name, labels in rows} == found


def test_every_outcome_and_call_is_written_down() -> None:
    """The table of outcomes is complete, and so is the list of calls."""
    text = DOCS.read_text()
    assert re.findall(r"^\| `(\w+)` \| [^|`]+ \|$", text, re.MULTILINE) == list(OUTCOMES)
    *most, last = (f"`{call}`" for call in CALLS)
    assert f"`call` is {', '.join(most)} or {last}." in " ".join(text.split())

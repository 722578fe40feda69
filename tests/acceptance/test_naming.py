"""What a limit is called, and what shares a bucket because of it."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask

from flask_venuelimit import (
    ConfigurationError,
    FixedWindow,
    MemoryStorage,
    RedisStorage,
    SlidingWindow,
    TokenBucket,
    VenueLimit,
    by_ip,
    by_user,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, statuses

Storage = MemoryStorage | RedisStorage


def test_an_unnamed_limit_is_called_by_its_endpoint(app: Flask, limiter: VenueLimit) -> None:
    """A view's one limit without a name bears the endpoint's."""
    bp = Blueprint("quiz", __name__)
    bp.add_url_rule("/", "home", limiter.limit("5/minute")(lambda: "ok"))
    app.register_blueprint(bp)
    assert list(items(caller(app).get("/"), "RateLimit")) == ["quiz.home"]


def test_further_ones_are_numbered_from_the_outside_in(app: Flask, limiter: VenueLimit) -> None:
    """Decorators from the outside in, then the blueprint's, then the app's; named ones take no number."""
    bp = Blueprint("quiz", __name__)
    limiter.limit("5/minute", key=by_ip).everywhere()
    limiter.limit("4/minute", key=by_ip)(bp)
    view = limiter.limit("3/minute", key=by_ip)(lambda: "ok")
    view = limiter.limit("2/minute", key=by_ip, name="named")(view)
    bp.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(view))
    app.register_blueprint(bp)
    called = {name: told["q"] for name, told in items(caller(app).get("/"), "RateLimit-Policy").items()}
    assert called == {"quiz.home": 1, "named": 2, "quiz.home#2": 3, "quiz.home#3": 4, "quiz.home#4": 5}


def test_a_view_limit_is_numbered_as_if_it_were_at_the_front(app: Flask, limiter: VenueLimit) -> None:
    """When a limit is decided does not change what it is called."""
    view = limiter.limit("2/minute", key=by_ip)(lambda: "ok")
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=lambda: "x")(view))
    called = {name: told["q"] for name, told in items(caller(app).get("/"), "RateLimit-Policy").items()}
    assert called == {"home": 1, "home#2": 2}


def test_a_name_does_not_depend_on_the_method(app: Flask, limiter: VenueLimit) -> None:
    """A limit for POST only leaves the number of the next one as it is for GET."""
    view = limiter.limit("2/minute", key=by_ip)(lambda: "ok")
    view = limiter.limit("1/minute", key=by_ip, methods={"POST"})(view)
    app.add_url_rule("/", "home", view, methods=["GET", "POST"])
    client = caller(app)
    assert set(items(client.get("/"), "RateLimit")) == {"home#2"}
    assert set(items(client.post("/"), "RateLimit")) == {"home", "home#2"}


def test_an_unnamed_limit_counts_each_endpoint_apart(app: Flask, limiter: VenueLimit) -> None:
    """One limit without a name on two views is two buckets."""
    limit = limiter.limit("1/minute", key=by_ip)
    app.add_url_rule("/a", "a", limit(lambda: "a"))
    app.add_url_rule("/b", "b", limit(lambda: "b"))
    client = caller(app)
    assert [client.get(path).status_code for path in ("/a", "/b", "/a", "/b")] == [200, 200, 429, 429]


def test_a_limit_named_as_an_endpoint_is_another_limit(app: Flask, limiter: VenueLimit) -> None:
    """A failure limit called ``login`` spends and refunds nothing that the view ``login`` counts."""
    failures = limiter.failures("5/minute", name="login")
    app.add_url_rule("/other", "other", failures(lambda: ("", 401)))
    app.add_url_rule("/", "login", failures(limiter.limit("5/minute", key=by_ip)(lambda: "ok")))
    assert statuses(caller(app), "/other", 3) == [401] * 3
    assert statuses(caller(app), "/", 6) == [200] * 5 + [429]


def test_a_named_limit_is_one_bucket_for_all_it_covers(app: Flask, limiter: VenueLimit) -> None:
    """A view, a blueprint and another view spend from one bucket."""
    bp = Blueprint("quiz", __name__)
    limit = limiter.limit("3/minute", name="shared", key=by_ip)
    limit(bp)
    bp.add_url_rule("/bp", "home", lambda: "bp")
    app.register_blueprint(bp)
    app.add_url_rule("/a", "a", limit(lambda: "a"))
    app.add_url_rule("/b", "b", limit(lambda: "b"))
    client = caller(app)
    assert [client.get(path).status_code for path in ("/a", "/b", "/bp", "/a")] == [200, 200, 200, 429]


def test_unmatched_requests_share_a_bucket(app: Flask, limiter: VenueLimit) -> None:
    """Whatever matches no route is ``unmatched``, however many paths are made up."""
    limiter.limit("3/minute", key=by_ip).everywhere()
    app.add_url_rule("/form", "form", lambda: "ok", methods=["POST"])
    client = caller(app)
    assert [client.get(path).status_code for path in ("/x", "/y", "/form", "/z")] == [404, 404, 405, 429]
    assert client.get("/").get_json()["limit"] == "unmatched"
    assert statuses(client, "/form", 1, method="POST") == [200]


def test_a_hundred_unknown_urls_meet_a_failure_limit(app: Flask, limiter: VenueLimit) -> None:
    """A scanner that tries a hundred paths is answered 429 from the 21st on."""
    limiter.failures("20/minute", name="not-found").everywhere()
    client = caller(app)
    seen = [client.get(f"/{n}.php").status_code for n in range(100)]
    assert seen == [404] * 20 + [429] * 80


@pytest.mark.parametrize("name", ["", "  ", "naïve", "two\nlines", "tab\t", 7, b"bytes"])
def test_a_name_that_no_header_can_carry_is_refused(limiter: VenueLimit, name: Any) -> None:
    """Names are printable ASCII; the error quotes the one at fault."""
    with pytest.raises(ConfigurationError) as caught:
        limiter.limit("1/minute", name=name)
    assert str(caught.value) == (
        f"a limit's name is {name!r}. Use printable ASCII: the name is sent in header fields."
    )


@pytest.mark.parametrize("name", ['quoted "name"', r"back\slash", "with space", "a;b=c, d", "x" * 300])
def test_any_printable_name_survives_the_header(app: Flask, limiter: VenueLimit, name: str) -> None:
    """A name with quotes, commas or backslashes is read back as it was given."""
    limiter.limit("5/minute", name=name, key=by_ip).everywhere()
    assert items(caller(app).get("/"), "RateLimit") == {name: {"r": 4, "t": 60}}


def test_an_endpoint_beyond_ascii_is_limited_all_the_same(app: Flask, limiter: VenueLimit) -> None:
    """A view whose name is no ASCII gets its limit, and a response with readable header fields."""
    app.add_url_rule("/", "größe", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    client = caller(app)
    assert [told["q"] for told in items(client.get("/"), "RateLimit-Policy").values()] == [1]
    assert client.get("/").status_code == 429


# -- declaring twice ----------------------------------------------------------------------------


def test_an_equal_limit_is_the_same_one(limiter: VenueLimit) -> None:
    """A factory that runs twice declares its limits twice, and gets the ones it has."""

    def declare() -> list[Any]:
        return [
            limiter.limit("5/minute", name="a"),
            limiter.limit(TokenBucket(5, 1), name="b", key=by_ip, cost=2, methods={"POST"}, message="No."),
            limiter.limit("5/minute", name="c", key=lambda: "x", unless=lambda: False),
            limiter.failures("5/minute", name="d"),
            limiter.limit(["5/minute", "50/hour"], name="e", per_address="9/minute"),
        ]

    first, second = declare(), declare()
    assert [one is other for one, other in zip(first, second, strict=True)] == [True] * 5


def test_two_spellings_of_one_policy_are_equal(limiter: VenueLimit) -> None:
    """A string makes a SlidingWindow: both declare the same limit."""
    limit = limiter.limit("5/minute", name="a")
    assert limiter.limit(SlidingWindow(5, per=60), name="a") is limit
    assert limiter.limit(["5 per 60 seconds"], name="a") is limit


@pytest.mark.parametrize(
    "terms",
    [
        {"policy": "6/minute"},
        {"policy": FixedWindow(5, 60)},
        {"key": by_user},
        {"key": lambda: "x"},
        {"cost": 2},
        {"methods": {"GET"}},
        {"per_address": "9/minute"},
        {"message": "No."},
        {"unless": lambda: False},
        {"refund_if": lambda response: True},
    ],
)
def test_a_different_limit_of_the_same_name_is_refused(limiter: VenueLimit, terms: dict[str, Any]) -> None:
    """One name means one thing; the error says which name."""
    limiter.limit("5/minute", name="taken")
    with pytest.raises(ConfigurationError, match="'taken' is declared twice, and differently"):
        limiter.limit(**{"policy": "5/minute", "name": "taken", **terms})


def test_unnamed_limits_are_never_the_same(app: Flask, limiter: VenueLimit) -> None:
    """Two equal limits without a name are two limits."""
    assert limiter.limit("5/minute") is not limiter.limit("5/minute")


# -- another number -----------------------------------------------------------------------------


def left_after(storage: Storage, old: Any, new: Any, hits: int = 3, advance: Any = None) -> int:
    """Use a limit under one policy, deploy the app with another, and tell what is left then."""
    rooms = []
    for policy, count in ((old, hits), (new, 0)):
        app = Flask("venue")
        app.config.update(SECRET_KEY="long and random")
        limit = VenueLimit(app, storage=storage).limit(policy, name="it", key=by_ip)
        app.add_url_rule("/", "home", limit(lambda: "ok"))
        assert statuses(caller(app), "/", count) == [200] * count
        rooms.append(limit.peek(subject=C).remaining)
    return rooms[-1]


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("5/minute", "9/minute", 6),
        ("5/minute", "2/minute", 0),
        (FixedWindow(5, 60), FixedWindow(9, 60), 6),
        (FixedWindow(5, 60), FixedWindow(2, 60), 0),
        (TokenBucket(5, 1), TokenBucket(9, 1), 6),
        (TokenBucket(5, 1), TokenBucket(5, 7, per=60), 2),
        (TokenBucket(5, 1), TokenBucket(2, 1), 0),
    ],
)
def test_a_changed_number_keeps_the_usage(storage: Storage, old: Any, new: Any, left: int) -> None:
    """Who used three has used three after the deployment that changes the number."""
    assert left_after(storage, old, new) == left


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        ("5/minute", "5/hour", 5),
        ("5/minute", FixedWindow(5, 60), 5),
        (FixedWindow(5, 60), TokenBucket(5, 1), 5),
        (TokenBucket(5, 1), "5/minute", 5),
        ("5/minute", ["5/minute", "50/hour"], 2),
    ],
)
def test_a_changed_kind_or_window_starts_anew(storage: Storage, old: Any, new: Any, left: int) -> None:
    """Another way of counting cannot read the old counts, and never errs on them."""
    assert left_after(storage, old, new) == left


def test_a_refusal_under_a_lowered_number_says_when_to_come_back(
    storage: Storage, clock: ManualClock
) -> None:
    """Usage above the new number leaves no room, and the wait told is long enough."""
    apps = []
    for number in (9, 2):
        apps.append(app := Flask("venue"))
        app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)
        limit = VenueLimit(app, storage=storage).limit(f"{number}/minute", name="it", key=by_ip)
        app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(caller(apps[0]), "/", 9) == [200] * 9
    refusal = caller(apps[1]).get("/")
    clock.advance(int(refusal.headers["Retry-After"]))
    assert (refusal.status_code, caller(apps[1]).get("/").status_code) == (429, 200)

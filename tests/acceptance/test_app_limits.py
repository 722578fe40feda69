"""``VENUELIMIT_LIMITS``: an app's own numbers, for limits that a module declares; and numbers that change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Blueprint, Flask

from flask_venuelimit import (
    FixedWindow,
    MemoryStorage,
    RedisStorage,
    TokenBucket,
    VenueLimit,
    by_ip,
    by_participant,
)
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import C, caller, items, left, message, signed_in, statuses

Storage = MemoryStorage | RedisStorage
Deploy = Callable[..., Flask]


def venue(limiter: VenueLimit, limits: Any = None, **settings: Any) -> Flask:
    """An app under a limiter, with numbers of its own, that passes errors on."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_LIMITS=limits, VENUELIMIT_RETRY_JITTER=0, **settings)
    app.testing = True
    limiter.init_app(app)
    app.add_url_rule("/", "home", lambda: "ok")
    return app


@pytest.fixture
def deploy(storage: Storage) -> Deploy:
    """Deploy the app anew, on the same storage, with a limit of these policies everywhere."""

    def deploy(policy: Any, limits: Any = None, **terms: Any) -> Flask:
        limiter = VenueLimit(storage=storage)
        limiter.limit(policy, name="it", key=by_ip, **terms).everywhere()
        return venue(limiter, limits)

    return deploy


# -- the setting ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", ["2/minute", "2/minute; 9/hour", FixedWindow(2, 60), TokenBucket(2, 1), ["2/minute", "9/hour"]]
)
def test_an_app_has_its_own_number(deploy: Deploy, policy: Any) -> None:
    """A text, a policy or a list takes the place of what is declared."""
    assert statuses(caller(deploy("9/minute", {"it": policy})), "/", 3) == [200, 200, 429]


def test_each_app_has_its_own(storage: Storage) -> None:
    """One module's limit, three apps, three numbers."""
    limiter = VenueLimit(storage=storage)
    limiter.limit("3/minute", name="it", key=by_ip).everywhere()
    own = [None, {"it": "1/minute"}, {"it": "4/minute"}]
    apps = [venue(limiter, limits, VENUELIMIT_KEY_PREFIX=f"app{n}") for n, limits in enumerate(own)]
    assert [statuses(caller(app), "/", 5).count(200) for app in apps] == [3, 1, 4]


def test_limits_it_does_not_name_keep_their_numbers(storage: Storage) -> None:
    """Only what is named changes."""
    limiter = VenueLimit(storage=storage)
    for name in ("one", "two"):
        limiter.limit(FixedWindow(5, 60), name=name, key=by_ip).everywhere()
    answer = caller(venue(limiter, {"two": FixedWindow(9, 60)})).get("/")
    assert {name: item["q"] for name, item in items(answer, "RateLimit-Policy").items()} == {
        "one": 5,
        "two": 9,
    }


def test_the_environment_may_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON, or one limit at a time, as Flask reads prefixed variables."""
    monkeypatch.setenv("FLASK_VENUELIMIT_LIMITS", '{"it": "2/minute"}')
    monkeypatch.setenv("FLASK_VENUELIMIT_LIMITS__other", "1/minute")
    app = Flask("venue", template_folder=None)
    app.config["SECRET_KEY"] = "s"
    app.config.from_prefixed_env()
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("9/minute", name="it", key=by_ip)(lambda: "ok"))
    app.add_url_rule("/other", "other", limiter.limit("9/minute", name="other", key=by_ip)(lambda: "ok"))
    assert statuses(caller(app), "/", 3) + statuses(caller(app), "/other", 2) == [200, 200, 429, 200, 429]


def test_it_holds_by_hand_too(deploy: Deploy, storage: Storage) -> None:
    """In and out of a request, also in a view that is exempt."""
    limiter = VenueLimit(storage=storage)
    limit = limiter.limit("9/minute", name="it", key=by_ip)
    app = venue(limiter, {"it": "2/minute"})
    app.add_url_rule("/view", "view", lambda: str(limit.peek().quota))
    app.add_url_rule("/exempt", "exempt", limiter.exempt(lambda: str(limit.peek().quota)))
    assert [caller(app).get(path).text for path in ("/view", "/exempt")] == ["2", "2"]
    assert [limit.hit(subject=C).allowed for _ in range(3)] == [True, True, False]
    limit.reset(C)
    assert left(limit) == 2


def test_the_address_s_policy_stays(storage: Storage) -> None:
    """What is sized for a building is not what is said of a person."""
    limiter = VenueLimit(storage=storage)
    limiter.limit("9/minute", name="it", key=by_participant, per_address="3/minute").everywhere()
    app = venue(limiter, {"it": "1/minute"})
    assert statuses(signed_in(app, participant_id="p"), "/", 2) == [200, 429]
    assert statuses(caller(app), "/", 4) == [200, 200, 200, 429]


def test_it_may_change_what_a_function_tells(deploy: Deploy) -> None:
    """A number in the setting outranks a policy told at each request."""
    assert statuses(caller(deploy(lambda: "9/minute", {"it": "2/minute"})), "/", 3) == [200, 200, 429]


def test_a_limit_declared_after_init_app_is_known_at_the_first_request(storage: Storage) -> None:
    """Names are looked up when the first request comes, as views may bring limits until then."""
    limiter = VenueLimit(storage=storage)
    app = venue(limiter, {"late": "1/minute"})
    limiter.limit("9/minute", name="late", key=by_ip).everywhere()
    assert statuses(caller(app), "/", 2) == [200, 429]


# -- what it may not say -------------------------------------------------------------------------


def test_an_unknown_name_is_an_error_at_the_first_request(deploy: Deploy) -> None:
    """It names the setting, and the limits there are."""
    assert message(caller(deploy("9/minute", {"jion": "5/minute"})).get, "/") == (
        "VENUELIMIT_LIMITS names 'jion', but no limit has this name. Declared are: it."
    )


def test_the_error_stays_until_it_is_put_right(deploy: Deploy) -> None:
    """A wrong setting is no matter of the first request alone."""
    app = deploy("9/minute", {"jion": "5/minute"})
    for _ in range(3):
        assert "VENUELIMIT_LIMITS" in message(caller(app).get, "/")
    app.testing = False
    assert statuses(caller(app), "/", 1) == [500]


@pytest.mark.parametrize("value", ["5/fortnight", "", None, 5, [], ["5/minute", 7], "-1/minute"])
def test_no_policy_is_an_error_at_the_start(value: Any) -> None:
    """It names the setting and the limit, and quotes what cannot be read."""
    told = message(venue, VenueLimit(storage=MemoryStorage()), {"it": value})
    assert told.startswith("VENUELIMIT_LIMITS has for 'it' what is no policy: ")


@pytest.mark.parametrize("value", ["it=5/minute", ["5/minute"], 5, {1: "5/minute"}])
def test_another_shape_is_an_error_at_the_start(value: Any) -> None:
    """The setting is names and policies."""
    told = message(venue, VenueLimit(storage=MemoryStorage()), value)
    assert told.startswith(f"VENUELIMIT_LIMITS is {value!r}. ")


@pytest.mark.parametrize("where", ["limit", "view", "blueprint", "everywhere"])
def test_a_cost_over_the_new_limit_is_an_error(storage: Storage, where: str) -> None:
    """A view that could never be admitted again is told of, wherever its cost was set."""
    limiter = VenueLimit(storage=storage)
    limit = limiter.limit("30/minute", name="it", key=by_ip, cost=20 if where == "limit" else 1)
    app = venue(limiter, {"it": "10/minute"})
    if where == "view":
        app.add_url_rule("/dear", "dear", limit(cost=20)(lambda: "ok"))
    elif where == "blueprint":
        limit(cost=20)(Blueprint("quiz", __name__))
    elif where == "everywhere":
        limit.everywhere(cost=20)
    told = message(caller(app).get, "/")
    assert "VENUELIMIT_LIMITS" in told
    assert "'it'" in told
    assert "a cost of 20 can never be admitted by 10/minute" in told


def test_a_cost_that_fits_is_fine(deploy: Deploy) -> None:
    """Two of ten, and none of the third."""
    assert statuses(caller(deploy("99/minute", {"it": "10/minute"}, cost=5)), "/", 3) == [200, 200, 429]


def test_closing_a_limit_is_no_mistake(deploy: Deploy) -> None:
    """A limit of 0 shuts the door, whatever a request costs."""
    answer = caller(deploy("9/minute", {"it": "0/minute"}, cost=3)).get("/")
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, False)


# -- numbers that change between deployments -----------------------------------------------------


@pytest.mark.parametrize("where", ["code", "setting"])
def test_a_larger_number_keeps_what_was_used(deploy: Deploy, where: str) -> None:
    """Two of two used, then three allowed: one more, then none."""
    assert statuses(caller(deploy("2/minute")), "/", 3) == [200, 200, 429]
    again = deploy("3/minute") if where == "code" else deploy("2/minute", {"it": "3/minute"})
    assert statuses(caller(again), "/", 2) == [200, 429]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("9/minute", "5/minute"),
        (FixedWindow(9, 60), FixedWindow(5, 60)),
        (TokenBucket(9, 1), TokenBucket(5, 1)),
    ],
)
def test_a_smaller_number_never_errs(deploy: Deploy, before: Any, after: Any, warnings: list[str]) -> None:
    """Seven used of what is now five: refused or full at most, nothing negative, and nothing logged."""
    statuses(caller(deploy(before)), "/", 7)
    answer = caller(deploy(after)).get("/")
    assert 0 <= items(answer, "RateLimit")["it"]["r"] <= 5
    assert warnings == []


def test_a_bucket_s_capacity_and_rate_are_its_number(deploy: Deploy, clock: ManualClock) -> None:
    """Both may change without making it full again: three are still missing, at the new rate."""
    assert statuses(caller(deploy(TokenBucket(3, 1))), "/", 4) == [200, 200, 200, 429]
    again = caller(deploy(TokenBucket(5, 2)))
    assert statuses(again, "/", 3) == [200, 200, 429]
    clock.advance(0.5)
    assert statuses(again, "/", 2) == [200, 429]


@pytest.mark.parametrize(
    "after", ["2/hour", FixedWindow(2, 60), TokenBucket(2, 1), "2 per 61 seconds", ["2/hour", "2/day"]]
)
def test_another_kind_or_window_starts_anew(deploy: Deploy, after: Any, warnings: list[str]) -> None:
    """What was counted otherwise says nothing of it, and never errs."""
    assert statuses(caller(deploy("2/minute")), "/", 3) == [200, 200, 429]
    assert statuses(caller(deploy(after)), "/", 3) == [200, 200, 429]
    assert warnings == []


def test_going_back_finds_the_old_count(deploy: Deploy, clock: ManualClock) -> None:
    """A window tried out and taken back has not made anybody's old one forget."""
    statuses(caller(deploy("2/minute")), "/", 2)
    statuses(caller(deploy("2/hour")), "/", 1)
    assert statuses(caller(deploy("2/minute")), "/", 1) == [429]


def test_a_policy_more_starts_anew_beside_the_old_one(deploy: Deploy) -> None:
    """A second policy has its own count; the first keeps what was used."""
    statuses(caller(deploy("3/minute")), "/", 2)
    assert statuses(caller(deploy("3/minute; 2/hour")), "/", 2) == [200, 429]


def test_what_was_charged_before_may_be_given_back_after(storage: Storage) -> None:
    """A refund across a change of number undoes its own charge."""
    limiter = VenueLimit(storage=storage)
    limit = limiter.limit("2/minute", name="it", key=by_ip)
    before, after = venue(limiter), venue(limiter, {"it": "3/minute"})
    with before.app_context():
        charged = limit.hit(2, subject=C)
    with after.app_context():
        assert left(limit) == 1
        limit.refund(charged)
        assert left(limit) == 3

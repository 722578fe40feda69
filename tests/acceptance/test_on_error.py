"""What becomes of requests while storage fails: ``allow``, ``local``, ``deny``, by limit and by app."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask

from flask_venuelimit import Decision, FixedWindow, Limit, VenueLimit, by_ip
from tests.acceptance.callers import C, caller, items, left, message, statuses
from tests.acceptance.decorators import known_late
from tests.servers import StoreServer, wait_until


@pytest.fixture
def limiter(app: Flask, server: StoreServer) -> VenueLimit:
    """A limiter over a server that can be killed."""
    app.config["VENUELIMIT_STORAGE_URI"] = server.url
    return VenueLimit(app)


def covering(app: Flask, *limits: Limit, path: str = "/", status: int = 200) -> None:
    """Put limits on a view, the first one outermost."""
    view: Any = lambda: ("ok", status)  # noqa: E731
    for limit in reversed(limits):
        view = limit(view)
    app.add_url_rule(path, path, view)


OUTCOMES = {"allow": [200] * 4, "local": [200, 200, 429, 429], "deny": [503] * 4}


@pytest.mark.parametrize("on_error", OUTCOMES)
@pytest.mark.parametrize("key", [by_ip, known_late])
def test_a_limit_says_what_becomes_of_its_requests(
    app: Flask, limiter: VenueLimit, server: StoreServer, on_error: str, key: Any
) -> None:
    """At every point: pass uncounted, be counted in this process, or be turned away."""
    covering(app, limiter.limit(FixedWindow(2, 60), name="it", key=key, on_error=on_error))
    server.kill()
    assert statuses(caller(app), "/", 4) == OUTCOMES[on_error]


@pytest.mark.parametrize("on_error", OUTCOMES)
def test_an_app_says_it_for_all_its_limits(app: Flask, server: StoreServer, on_error: str) -> None:
    """``VENUELIMIT_ON_ERROR`` is what a limit does that says nothing itself."""
    app.config.update(VENUELIMIT_STORAGE_URI=server.url, VENUELIMIT_ON_ERROR=on_error)
    covering(app, VenueLimit(app).limit(FixedWindow(2, 60), name="it", key=by_ip))
    server.kill()
    assert statuses(caller(app), "/", 4) == OUTCOMES[on_error]


@pytest.mark.parametrize("own", OUTCOMES)
@pytest.mark.parametrize("app_s", OUTCOMES)
def test_a_limit_s_own_word_outranks_the_app_s(app: Flask, server: StoreServer, own: str, app_s: str) -> None:
    """Whatever the app says, ``on_error`` of the limit is what happens."""
    app.config.update(VENUELIMIT_STORAGE_URI=server.url, VENUELIMIT_ON_ERROR=app_s)
    covering(app, VenueLimit(app).limit(FixedWindow(2, 60), name="it", key=by_ip, on_error=own))
    server.kill()
    assert statuses(caller(app), "/", 4) == OUTCOMES[own]


def test_each_app_has_its_word(server: StoreServer) -> None:
    """One limiter, two apps, two settings."""
    limiter = VenueLimit()
    limiter.limit(FixedWindow(9, 60), name="it", key=by_ip).everywhere()
    apps = {word: Flask(word, template_folder=None) for word in ("allow", "deny")}
    for word, app in apps.items():
        app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI=server.url, VENUELIMIT_ON_ERROR=word)
        limiter.init_app(app)
    server.kill()
    assert [statuses(caller(app), "/", 1) for app in apps.values()] == [[404], [503]]


@pytest.mark.parametrize("word", ["open", "", "ALLOW", True])
def test_another_word_is_an_error(app: Flask, limiter: VenueLimit, word: Any) -> None:
    """A limit's at its declaration, an app's at ``init_app``, and both say what may be said."""
    assert message(limiter.limit, "5/minute", on_error=word) == (
        f"on_error is {word!r}. Use one of: allow, local, deny."
    )
    other = Flask("other")
    other.config.update(SECRET_KEY="s", VENUELIMIT_ON_ERROR=word)
    assert message(VenueLimit, other) == f"VENUELIMIT_ON_ERROR is {word!r}. Use one of: allow, local, deny."


# -- local ---------------------------------------------------------------------------------------


def test_what_is_counted_here_is_shown(app: Flask, limiter: VenueLimit, server: StoreServer) -> None:
    """A limit that counts in this process tells what is left; one that does not count shows nothing."""
    local = limiter.limit(FixedWindow(2, 60), name="local", key=by_ip, on_error="local")
    covering(app, local, limiter.limit(FixedWindow(5, 60), name="allow", key=by_ip))
    server.kill()
    client = caller(app)
    assert items(client.get("/"), "RateLimit") == {"local": {"r": 1, "t": 60}}
    statuses(client, "/", 1)
    refused = client.get("/")
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert refused.get_json()["violated-policies"] == ["local"]


def test_what_is_counted_here_is_given_back_here(
    app: Flask, limiter: VenueLimit, server: StoreServer
) -> None:
    """A failure limit goes on counting failures only."""
    failures = limiter.failures(FixedWindow(2, 60), name="f", on_error="local")
    covering(app, failures, path="/right")
    covering(app, failures, path="/wrong", status=401)
    server.kill()
    assert statuses(caller(app), "/right", 5) + statuses(caller(app), "/wrong", 3) == [200] * 5 + [
        401
    ] * 2 + [429]


def test_limits_counted_here_charge_all_or_none(app: Flask, limiter: VenueLimit, server: StoreServer) -> None:
    """What one of them refuses is not charged to the other; failures are."""
    wide, narrow = (
        limiter.limit(FixedWindow(n, 60), name=f"{n}", key=by_ip, on_error="local") for n in (9, 1)
    )
    failures = limiter.failures(FixedWindow(9, 60), name="f", on_error="local")
    covering(app, failures, wide, narrow)
    server.kill()
    assert statuses(caller(app), "/", 4) == [200, 429, 429, 429]
    assert (left(wide), left(failures)) == (8, 6)


def test_by_hand_it_is_counted_here_too(limiter: VenueLimit, server: StoreServer) -> None:
    """Hit, peek, refund and reset mean this process while the server is away."""
    limit = limiter.limit(FixedWindow(3, 60), name="it", key=by_ip, on_error="local")
    server.kill()
    charged = limit.hit(2, subject=C)
    assert (left(limit), limit.hit(2, subject=C).allowed) == (1, False)
    limit.refund(charged)
    limit.refund(charged)
    assert left(limit) == 3
    limit.hit(3, subject=C)
    limit.reset(C)
    assert left(limit) == 3


def test_the_server_s_count_is_the_one_that_stays(
    app: Flask, limiter: VenueLimit, server: StoreServer
) -> None:
    """When it is back, what this process counted meanwhile is neither charged there nor given back there."""
    limit = limiter.limit(FixedWindow(3, 60), name="it", key=by_ip, on_error="local")
    covering(app, limit)
    server.kill()
    here = limit.hit(2, subject=C)
    server.start()
    wait_until(lambda: limit.peek(subject=C).remaining == 3, what="the server is asked")
    limit.hit(subject=C)
    limit.refund(here)
    assert left(limit) == 2


# -- several in one point ------------------------------------------------------------------------


def test_one_that_denies_turns_the_request_away(app: Flask, limiter: VenueLimit, server: StoreServer) -> None:
    """Of three limits on a view one needs a count: 503, in its name, and nobody else is charged."""
    allow, local, deny = (
        limiter.limit(FixedWindow(9, 60), name=word, key=by_ip, on_error=word)
        for word in ("allow", "local", "deny")
    )
    covering(app, allow, local, deny)
    server.kill()
    answer = caller(app).get("/")
    assert (answer.status_code, answer.get_json()["limit"]) == (503, "deny")
    assert left(local) == 9


def test_turned_away_is_a_failure(app: Flask, limiter: VenueLimit, server: StoreServer) -> None:
    """A failure limit counted here is charged for the 503 beside it."""
    failures = limiter.failures(FixedWindow(9, 60), name="f", on_error="local")
    covering(app, failures, limiter.limit("9/minute", key=by_ip, on_error="deny"))
    server.kill()
    assert statuses(caller(app), "/", 3) == [503] * 3
    assert left(failures) == 6


def test_a_limit_that_counted_and_refuses_says_so(
    app: Flask, limiter: VenueLimit, server: StoreServer
) -> None:
    """Over its number a local limit's 429 tells more than that another cannot be checked."""
    local = limiter.limit(FixedWindow(1, 60), name="local", key=by_ip, on_error="local")
    covering(app, local, limiter.limit("9/minute", name="deny", key=by_ip, on_error="deny"))
    server.kill()
    local.hit(subject=C)
    answer = caller(app).get("/")
    assert (answer.status_code, answer.get_json()["limit"]) == (429, "local")


@pytest.mark.parametrize("path", ["/", "/view"])
def test_a_denying_limit_denies_where_it_covers(
    app: Flask, limiter: VenueLimit, server: StoreServer, path: str
) -> None:
    """Other views go on."""
    covering(app, limiter.limit("9/minute", key=by_ip, on_error="deny"), path="/view")
    covering(app, limiter.limit("9/minute", key=by_ip))
    server.kill()
    assert statuses(caller(app), path, 2) == [503 if path == "/view" else 200] * 2


def test_a_shadow_limit_never_denies(
    app: Flask, limiter: VenueLimit, server: StoreServer, told: list[Decision]
) -> None:
    """One that only watches does not turn anybody away because nobody can count."""
    covering(app, limiter.limit("9/minute", name="it", key=by_ip, on_error="deny", shadow=True))
    server.kill()
    answer = caller(app).get("/")
    assert (answer.status_code, "RateLimit" in answer.headers) == (200, False)
    assert [(decision.limit, decision.shadow) for decision in told] == [("it", True)]


# -- a counter that cannot be read ---------------------------------------------------------------


def spoil(server: StoreServer) -> None:
    """Put a list where each counter is, as somebody else's code might."""
    with server.client() as client:
        for key in client.scan_iter():
            client.delete(key)
            client.lpush(key, "spoilt")


@pytest.mark.parametrize("on_error", OUTCOMES)
def test_a_counter_of_a_wrong_type_fails_its_own_limit(
    app: Flask, limiter: VenueLimit, server: StoreServer, on_error: str
) -> None:
    """Its ``on_error`` decides; the server goes on being asked for others."""
    limit = limiter.limit(FixedWindow(2, 60), name="it", key=by_ip, on_error=on_error)
    covering(app, limit)
    covering(app, limiter.limit(FixedWindow(1, 60), key=by_ip), path="/other")
    limit.hit(subject=C)
    spoil(server)
    assert statuses(caller(app), "/", 4) == OUTCOMES[on_error]
    assert statuses(caller(app), "/other", 2) == [200, 429]


@pytest.mark.parametrize(("on_error", "remaining"), [("allow", 5), ("local", 6), ("deny", 9)])
def test_beside_a_counter_of_a_wrong_type_all_or_none_holds(
    app: Flask, limiter: VenueLimit, server: StoreServer, on_error: str, remaining: int
) -> None:
    """What its limit turns away is not charged to the others of the point; failures are."""
    spoilt = limiter.limit(FixedWindow(3, 60), name="spoilt", key=by_ip, on_error=on_error)
    other = limiter.limit(FixedWindow(9, 60), name="other", key=by_ip)
    failures = limiter.failures(FixedWindow(9, 60), name="f")
    spoilt.hit(subject=C)
    spoil(server)
    covering(app, failures, other, spoilt, status=401)
    statuses(caller(app), "/", 4)
    assert (left(other), left(failures)) == (remaining, 5)


def test_a_counter_of_a_wrong_type_is_told_of_once(
    app: Flask, limiter: VenueLimit, server: StoreServer, warnings: list[str]
) -> None:
    """One line for the key, not one a request, and what to change."""
    limit = limiter.limit(FixedWindow(2, 60), name="it", key=by_ip)
    covering(app, limit)
    limit.hit(subject=C)
    spoil(server)
    statuses(caller(app), "/", 4)
    (warning,) = warnings
    assert "VENUELIMIT_KEY_PREFIX" in warning

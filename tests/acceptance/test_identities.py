"""Who is asking, as apps know it: each way, the stage it belongs to, and what a forgery gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from flask import Flask, g, request
from flask.testing import FlaskClient
from flask_session import Session

from flask_venuelimit import Key, Limit, Stage, VenueLimit, by_bearer, by_identity, by_ip, by_user
from tests.acceptance.callers import A, C, caller, signed_in, statuses
from tests.acceptance.identities import (
    OTHER_SECRET,
    ApiKeys,
    bearer,
    checked_subject,
    claimed,
    current_name,
    limit_home,
    token,
    use_api_keys,
    use_flask_login,
    use_plain_sessions,
    use_tokens,
    without,
)

Kind = Callable[[], str]


@pytest.fixture
def hooks(app: Flask) -> list[str]:
    """The paths whose requests have reached the app's own hooks."""
    seen: list[str] = []

    @app.before_request
    def note() -> None:
        seen.append(request.path)

    return seen


@pytest.fixture
def kind(app: Flask, limiter: VenueLimit, hooks: list[str]) -> Kind:
    """What kind of bucket ``/`` charged last: it has two a minute for a user, three for a building."""
    return limit_home(app, limiter, by_user, per_address="3/minute")


@pytest.fixture
def door(app: Flask, limiter: VenueLimit) -> Limit:
    """What stands in front of credentials that cost nothing to invent: three failures from an address."""
    return limiter.failures("3/minute", name="auth-failures").everywhere()


# -- Flask-Login ---------------------------------------------------------------------------------


@pytest.fixture
def login(app: Flask) -> Callable[..., FlaskClient]:
    """Somebody who has logged in by Flask-Login, from an address of her own."""
    use_flask_login(app)

    def login(name: str, address: str = C, query: str = "") -> FlaskClient:
        client = caller(app, address)
        assert client.get(f"/login/{name}{query}").text == "welcome"
        return client

    return login


def test_flask_login_s_session_is_known_at_the_front(
    login: Callable[..., FlaskClient], kind: Kind, hooks: list[str]
) -> None:
    """Nothing to set: a user has one bucket in all her browsers, and is refused before any hook."""
    ann, ann_elsewhere, bob = login("ann"), login("ann", A), login("bob")
    hooks.clear()
    assert statuses(ann, "/", 1) + statuses(ann_elsewhere, "/", 2) == [200, 200, 429]
    assert statuses(bob, "/", 2) == [200, 200]
    assert kind() == "user"
    assert hooks == ["/"] * 4


def test_whoever_logs_out_is_the_address_again(login: Callable[..., FlaskClient], kind: Kind) -> None:
    """The session decides with each request."""
    ann = login("ann")
    assert statuses(ann, "/", 3) == [200, 200, 429]
    ann.get("/logout")
    assert statuses(ann, "/", 1) == [200]
    assert kind() == "ip"


remembered = pytest.mark.filterwarnings("ignore:.*utcnow:DeprecationWarning")


@remembered
def test_a_remember_cookie_alone_is_the_address_at_the_front(
    login: Callable[..., FlaskClient], kind: Kind
) -> None:
    """Only the app can read it: until Flask-Login has made a session of it, the building's limit holds."""
    ann = without(login("ann", query="?remember=1"), "session")
    assert statuses(ann, "/", 1) == [200]
    assert kind() == "ip"
    assert ann.get("/me").text == "ann"
    assert statuses(ann, "/", 3) == [200, 200, 429]
    assert kind() == "user"


@remembered
@pytest.mark.parametrize("stage", Stage)
def test_flask_login_can_be_asked_about_the_remember_cookie(
    limiter: VenueLimit, login: Callable[..., FlaskClient], kind: Kind, hooks: list[str], stage: Stage
) -> None:
    """``identify_user`` with ``current_user.get_id`` knows both cookies, at either stage."""
    limiter.identify_user(stage=stage)(current_name)
    ann = without(login("ann", query="?remember=1"), "session")
    ann_elsewhere = login("ann", A)
    hooks.clear()
    assert statuses(ann, "/", 2) + statuses(ann_elsewhere, "/", 1) == [200, 200, 429]
    assert kind() == "user"
    assert len(hooks) == (2 if stage is Stage.FRONT else 3)


def test_a_forged_remember_cookie_is_nobody(
    app: Flask, limiter: VenueLimit, login: Callable[..., FlaskClient], kind: Kind
) -> None:
    """Without the app's signature it names no user, and each new one is the same address."""
    limiter.identify_user(current_name)
    seen = []
    for name in ("ann", "bob", "eve", "zoe"):
        forger = caller(app)
        forger.set_cookie("remember_token", f"{name}|{'0' * 128}")
        seen += statuses(forger, "/", 1)
    assert seen == [200, 200, 200, 429]
    assert kind() == "ip"


# -- sessions ------------------------------------------------------------------------------------


def test_a_plain_session_is_known_at_the_front(app: Flask, kind: Kind, hooks: list[str]) -> None:
    """``session["user_id"]`` is signed: no look-up, no hook, and nobody else can write it."""
    use_plain_sessions(app)
    ann = caller(app)
    ann.get("/as?user_id=7")
    hooks.clear()
    assert statuses(ann, "/", 2) + statuses(signed_in(app, A, user_id="7"), "/", 1) == [200, 200, 429]
    assert hooks == ["/", "/"]


def test_user_0_is_somebody(app: Flask, kind: Kind) -> None:
    """The first row of some tables."""
    assert statuses(signed_in(app, user_id=0), "/", 3) == [200, 200, 429]
    assert kind() == "user"


@pytest.fixture
def server_side(app: Flask, valkey_client: redis.Redis) -> Flask:
    """The app, with its sessions in Redis by Flask-Session."""
    app.config.update(SESSION_TYPE="redis", SESSION_REDIS=valkey_client)
    Session(app)
    use_plain_sessions(app)
    return app


def test_a_session_on_the_server_is_known_at_the_front(
    server_side: Flask, kind: Kind, hooks: list[str]
) -> None:
    """Flask has opened it by then, by Flask-Session as by itself; nothing to set."""
    ann, bob = caller(server_side), caller(server_side)
    ann.get("/as?user_id=7")
    bob.get("/as?user_id=8")
    hooks.clear()
    assert statuses(ann, "/", 3) + statuses(bob, "/", 2) == [200, 200, 429, 200, 200]
    assert kind() == "user"
    assert hooks == ["/"] * 4


def test_a_made_up_session_id_is_nobody(server_side: Flask, kind: Kind) -> None:
    """An id that the server never gave out opens an empty session: the address stands in."""
    seen = []
    for n in range(4):
        forger = caller(server_side)
        forger.set_cookie("session", f"made-up-{n}")
        seen += statuses(forger, "/", 1)
    assert seen == [200, 200, 200, 429]
    assert kind() == "ip"


def test_looking_at_a_session_on_the_server_leaves_it_alone(server_side: Flask, kind: Kind) -> None:
    """A view that does not touch the session sends no ``Vary: Cookie`` for the limiter's sake."""
    server_side.config["SESSION_REFRESH_EACH_REQUEST"] = False
    ann = caller(server_side)
    ann.get("/as?user_id=7")
    answers = [ann.get("/") for _ in range(3)]
    assert [(each.status_code, "Cookie" in each.vary) for each in answers] == [
        (200, False),
        (200, False),
        (429, False),
    ]


# -- JSON Web Tokens -----------------------------------------------------------------------------


def test_a_token_that_the_app_has_checked_names_the_user_at_the_view(
    app: Flask, limiter: VenueLimit, kind: Kind
) -> None:
    """Two tokens of one user are one user; where she connects from says nothing."""
    use_tokens(app)
    limiter.identify_user(lambda: g.user)
    ann = [token("ann"), token("ann", session=2), token("ann", session=3)]
    peers = (C, A, "2001:db8::1")
    seen = [statuses(caller(app, peer), "/", 1, headers=each) for peer, each in zip(peers, ann, strict=True)]
    assert seen == [[200], [200], [429]]
    assert statuses(caller(app), "/", 1, headers=token("bob")) == [200]


def test_a_signature_can_be_checked_at_the_front(
    app: Flask, limiter: VenueLimit, kind: Kind, hooks: list[str]
) -> None:
    """It needs no look-up, so a refused user costs no hook; a false token is the address's."""
    limiter.identify_user(stage=Stage.FRONT)(checked_subject)
    assert statuses(caller(app), "/", 3, headers=token("ann")) == [200, 200, 429]
    assert len(hooks) == 2
    forged = [token(name, OTHER_SECRET) for name in "abcd"]
    assert [statuses(caller(app), "/", 1, headers=each)[0] for each in forged] == [200, 200, 200, 429]


def test_false_tokens_run_into_the_door(app: Flask, limiter: VenueLimit, door: Limit, kind: Kind) -> None:
    """Each is turned away by the app, and after three failures the address is; good ones cost nothing."""
    use_tokens(app)
    limiter.identify_user(lambda: g.user)
    assert [statuses(caller(app), "/", 1, headers=token(n))[0] for n in "abcdef"] == [200] * 6
    forged = [token(n, OTHER_SECRET) for n in "abc"] + [bearer("junk")]
    assert [statuses(caller(app), "/", 1, headers=each)[0] for each in forged] == [401, 401, 401, 429]


def test_a_claimed_token_is_a_bucket_for_who_types_it(app: Flask, limiter: VenueLimit, door: Limit) -> None:
    """``by_bearer`` checks nothing: new texts have room, so failures are counted in front by address."""
    use_tokens(app)
    kind = limit_home(app, limiter, by_bearer)
    assert statuses(caller(app), "/", 3, headers=token("ann")) == [200, 200, 429]
    assert kind() == "bearer"
    assert [statuses(caller(app), "/", 1, headers=bearer(text))[0] for text in "abc"] == [401, 401, 429]


# -- API keys ------------------------------------------------------------------------------------


@pytest.fixture
def keys(app: Flask, tmp_path: Path) -> ApiKeys:
    """Two owners with two keys and one, in a database."""
    keys = ApiKeys(tmp_path)
    for key, owner in (("k1", 1), ("k2", 1), ("k3", 2)):
        keys.add(key, owner)
    return keys


def test_an_api_key_that_was_looked_up_names_its_owner_at_the_view(
    app: Flask, limiter: VenueLimit, keys: ApiKeys, kind: Kind
) -> None:
    """Both keys of an owner share the owner's bucket, and the database is asked once a request."""
    use_api_keys(app, keys)
    limiter.identify_user(lambda: g.owner)
    sent = ("k1", "k2", "k1", "k3")
    seen = [caller(app).get("/", headers={"X-API-Key": key}).status_code for key in sent]
    assert seen == [200, 200, 429, 200]
    assert keys.asked == 4


def test_guessed_api_keys_stop_reaching_the_database(
    app: Flask, limiter: VenueLimit, keys: ApiKeys, door: Limit, kind: Kind
) -> None:
    """The failure limit in front is by address and decided before the look-up."""
    use_api_keys(app, keys)
    limiter.identify_user(lambda: g.owner)
    seen = [caller(app).get("/", headers={"X-API-Key": f"guess {n}"}).status_code for n in range(9)]
    assert seen == [401] * 3 + [429] * 6
    assert keys.asked == 3


# -- tenants and operations ----------------------------------------------------------------------

by_tenant = Key("tenant", lambda: request.headers.get("X-Tenant"), stage=Stage.FRONT)
by_operation = Key("operation", lambda: request.args.get("operation"))


def test_user_1_of_realm_21_is_not_user_11_of_realm_2(app: Flask, limiter: VenueLimit) -> None:
    """Case F7: ``by_tenant & by_user`` keeps the two apart, and each user of a tenant is one."""
    kind = limit_home(app, limiter, by_tenant & by_user, "1/minute")
    users = [("21", "1"), ("2", "11"), ("21", "11"), ("2", "1")]
    clients = [(signed_in(app, user_id=user), {"X-Tenant": realm}) for realm, user in users]
    assert [statuses(client, "/", 2, headers=tenant) for client, tenant in clients] == [[200, 429]] * 4
    assert kind() == "tenant&user"


def test_a_tenant_has_a_ceiling_over_its_users(app: Flask, limiter: VenueLimit) -> None:
    """One limit for each user and one for all of a tenant: whichever is used up first refuses."""
    view = limiter.limit("2/minute", name="user", key=by_tenant & by_user)(lambda: "ok")
    app.add_url_rule("/", "home", limiter.limit("3/minute", name="tenant", key=by_tenant)(view))
    one, two = (signed_in(app, user_id=user) for user in "ab")
    seen = [statuses(each, "/", 2, headers={"X-Tenant": "t"}) for each in (one, two)]
    assert seen == [[200, 200], [200, 429]]
    assert statuses(two, "/", 1, headers={"X-Tenant": "u"}) == [200]


def test_an_operation_is_a_dimension_like_any_other(app: Flask, limiter: VenueLimit) -> None:
    """Behind one endpoint, each user has room for each operation."""
    limit_home(app, limiter, by_identity & by_operation, "1/minute")
    ann = signed_in(app, user_id="ann")
    operations = ("read", "read", "write", "write")
    assert [ann.get(f"/?operation={each}").status_code for each in operations] == [200, 429, 200, 429]


def test_without_a_tenant_the_address_stands_in(app: Flask, limiter: VenueLimit) -> None:
    """Half a pair is nobody, and its policy is the building's."""
    kind = limit_home(app, limiter, by_tenant & by_user, "1/minute", per_address="3/minute")
    clients = [signed_in(app, user_id=user) for user in "abcd"]
    assert [statuses(client, "/", 1)[0] for client in clients] == [200, 200, 200, 429]
    assert kind() == "ip"


@pytest.mark.parametrize("stage", Stage)
def test_a_tenant_may_be_looked_up_by_a_coroutine(app: Flask, limiter: VenueLimit, stage: Stage) -> None:
    """An ``async def`` key can be half of a pair, at either stage, under an ``async def`` view."""

    async def tenant() -> str:
        return claimed()

    @app.get("/")
    @limiter.limit("1/minute", key=Key("tenant", tenant, stage=stage) & by_ip)
    async def home() -> str:
        return limiter.decisions[0].subject.partition(":")[0]

    answers = [caller(app).get("/", headers=bearer(text)) for text in "aab"]
    assert [each.status_code for each in answers] == [200, 429, 200]
    assert answers[2].text == "tenant&ip"

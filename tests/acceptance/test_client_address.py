"""Who the client is behind proxies: whom an app trusts, what their headers say, and what no header can do."""

from __future__ import annotations

from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.middleware.proxy_fix import ProxyFix

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip, by_participant, by_user
from tests.acceptance.callers import A, C, caller, signed_in, statuses, whose_bucket

#: A proxy inside the trusted network.
P = "192.0.2.10"
TRUSTED = "192.0.2.0/28"
OVERLOOKED = (
    "a request came from a private or local address with a {} header, and no proxy is trusted: if a proxy "
    "stands there, everybody behind it shares its address. Set VENUELIMIT_TRUSTED_PROXIES to where it "
    "connects from (and VENUELIMIT_FORWARDED_HEADER, if that is not X-Forwarded-For), or use werkzeug's "
    "ProxyFix."
)
NO_ADDRESS = (
    "a request came without a usable peer address; all such requests share one bucket. Behind a proxy on a "
    "unix socket, have it name the client in X-Forwarded-For, and set VENUELIMIT_TRUSTED_PROXIES to unix."
)


def venue(limit: str = "5/minute", **settings: Any) -> Flask:
    """An app that answers with the client's address, with its settings and a limit by address."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", **{f"VENUELIMIT_{name}": value for name, value in settings.items()})
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit(limit, key=by_ip)(lambda: str(limiter.client_address())))
    return app


def fix(app: Flask, **options: int) -> Flask:
    """Put a ProxyFix around an app."""
    app.wsgi_app = ProxyFix(app.wsgi_app, **options)  # type: ignore[method-assign]
    return app


def asked(client: FlaskClient, *chains: str, header: str = "X-Forwarded-For") -> list[int]:
    """The statuses of requests with these values of a header, one after the other."""
    return [client.get("/", headers={header: chain}).status_code for chain in chains]


# -- trusted proxies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "value", "address"),
    [
        ("X-Forwarded-For", "203.0.113.30, 198.51.100.45, 192.0.2.1", "198.51.100.45"),
        ("X-Forwarded-For", "203.0.113.66, 192.0.2.5, 198.51.100.7", C),
        ("X-Forwarded-For", "203.0.113.9, unknown", P),
        ("X-Forwarded-For", "2001:db8:0:1234::5", "2001:db8:0:1200::/56"),
        ("Forwarded", "for=198.51.100.17, for=192.0.2.5", "198.51.100.17"),
        ("Forwarded", 'for="x, for=198.51.100.7', C),
        ("Forwarded", 'For="[2001:db8:cafe::17]:4711"', "2001:db8:cafe::/56"),
        ("X-Real-IP", "198.51.100.7:49152", C),
        ("X-Real-IP", "203.0.113.9, 198.51.100.7", P),
        ("CF-Connecting-IP", "::ffff:c633:6407", C),
    ],
)
def test_a_trusted_proxy_names_the_client(header: str, value: str, address: str) -> None:
    """``client_address()`` is the normalised text of whom the proxy names, or else the proxy's own."""
    app = venue(TRUSTED_PROXIES=[TRUSTED], FORWARDED_HEADER=header)
    assert caller(app, P).get("/", headers={header: value}).text == address


def test_clients_behind_a_proxy_have_buckets_of_their_own() -> None:
    """Through one proxy, each client is counted for itself, and new ports or spellings gain nothing."""
    proxy = caller(venue("1/minute", TRUSTED_PROXIES=TRUSTED), P)
    chains = (C, A, f"{C}:49152", f"::ffff:{C}", f"junk, {C}", f"{A}, {C}, 192.0.2.5")
    assert asked(proxy, *chains) == [200, 200, 429, 429, 429, 429]


def test_six_made_up_addresses_are_one_stranger() -> None:
    """Case A9: who is not trusted changes nothing by a header, whether somebody is trusted or nobody."""
    made_up = [f"198.51.100.{n}" for n in range(6)]
    for trusted in ("", TRUSTED, "cloudflare, private, loopback"):
        stranger = caller(venue(TRUSTED_PROXIES=trusted), A)
        assert asked(stranger, *made_up) == [200] * 5 + [429]


def test_what_lies_left_of_the_client_changes_nothing() -> None:
    """However long or broken the left of a header is, the bucket stays the same."""
    proxy = caller(venue("3/minute", TRUSTED_PROXIES=TRUSTED), P)
    left = ("", "1.2.3.4, " * 5_000, '"\\', "192.0.2.1, 192.0.2.2, ", ", , ,", "\xff\x00")
    assert asked(proxy, *(f"{each},{C}" for each in left)) == [200] * 3 + [429] * 3


def test_settings_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """``FLASK_VENUELIMIT_TRUSTED_PROXIES`` is text with commas, or a list as JSON."""
    for text in ("192.0.2.0/28, loopback", '["192.0.2.0/28", "loopback"]'):
        monkeypatch.setenv("FLASK_VENUELIMIT_TRUSTED_PROXIES", text)
        app = Flask("venue")
        app.config.from_prefixed_env()
        limiter = VenueLimit(app)
        app.add_url_rule("/", "home", lambda limiter=limiter: str(limiter.client_address()))
        chain = {"X-Forwarded-For": f"{A}, {C}, 127.0.0.1"}
        assert caller(app, P).get("/", headers=chain).text == C


# -- unix sockets, and no address at all ---------------------------------------------------------


def test_a_peer_on_a_unix_socket_may_be_trusted(warnings: list[str]) -> None:
    """``"unix"`` believes a peer that has no address, and only that."""
    app = venue("1/minute", TRUSTED_PROXIES="unix")
    assert asked(caller(app, ""), C, A, C) == [200, 200, 429]
    assert asked(caller(app, "203.0.113.51"), "203.0.113.52", "203.0.113.53") == [200, 429]
    assert warnings == []


def test_nobody_s_address_is_invented(warnings: list[str]) -> None:
    """Where the socket's peer names nobody either, all share ``no-address``; a warning says what to do."""
    app = venue("2/minute", TRUSTED_PROXIES="unix")
    socket = caller(app, "")
    assert [socket.get("/").text for _ in range(2)] == ["None", "None"]
    assert asked(socket, "unknown", C) == [429, 200]
    assert warnings == [NO_ADDRESS]


# -- ProxyFix ------------------------------------------------------------------------------------


def around(when: str) -> Flask:
    """An app with a ProxyFix, put there before the limiter or after it."""
    app = Flask("venue")
    app.config["SECRET_KEY"] = "s"
    if when == "before":
        fix(app)
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: "ok"))
    return app if when == "before" else fix(app)


@pytest.mark.parametrize("when", ["before", "after"])
def test_proxy_fix_is_believed_whenever_it_was_put_there(when: str, warnings: list[str]) -> None:
    """Its address is Flask's, and so the client's; there is nothing to warn about."""
    proxy = caller(around(when), "127.0.0.1")
    assert asked(proxy, C, A, f"{A}, {C}", f"{C}:1234") == [200, 200, 429, 429]
    assert warnings == []


@pytest.mark.parametrize("peer", [P, A])
def test_the_trusted_peer_is_the_one_before_proxy_fix(peer: str) -> None:
    """With proxies named, the connection decides: who comes past them cannot choose an address."""
    app = fix(venue(TRUSTED_PROXIES=TRUSTED))
    seen = caller(app, peer).get("/", headers={"X-Forwarded-For": f"203.0.113.9, {C}, 192.0.2.5"}).text
    assert seen == (C if peer == P else A)


def test_without_proxy_fix_and_trust_the_peer_is_the_client() -> None:
    """No header is read, whoever sends it."""
    assert caller(venue(), P).get("/", headers={"X-Forwarded-For": C}).text == P


# -- the warning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", "10.0.0.1", "fd00::1", "192.168.1.1:4711"])
@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_a_header_that_nobody_reads_is_warned_about_once(peer: str, header: str, warnings: list[str]) -> None:
    """A proxy close by seems to send it, and everybody behind it would be one client."""
    asked(caller(venue(), peer), C, A, C, header=header)
    assert warnings == [OVERLOOKED.format(header)]


@pytest.mark.parametrize(
    ("peer", "header", "settings"),
    [
        (A, "X-Forwarded-For", {}),
        ("2001:db8::1", "Forwarded", {}),
        ("127.0.0.1", "X-Forwarded-For", {"TRUSTED_PROXIES": "loopback"}),
        ("127.0.0.1", "X-Forwarded-For", {"TRUSTED_PROXIES": TRUSTED}),
        ("127.0.0.1", "X-Forwarded-Proto", {}),
    ],
)
def test_strangers_and_the_trusted_are_not_warned_about(
    peer: str, header: str, settings: dict[str, Any], warnings: list[str]
) -> None:
    """Anybody on the internet may send a header, and a log must not fill with that."""
    asked(caller(venue(**settings), peer), C, header=header)
    assert warnings == []


@pytest.mark.parametrize(("x_for", "warned"), [(0, 1), (1, 0), (2, 1)])
def test_a_proxy_fix_that_leaves_the_address_alone_has_not_acted(
    x_for: int, warned: int, warnings: list[str]
) -> None:
    """Told of no address, or of more proxies than there are, it lets everybody share the proxy's."""
    asked(caller(fix(venue(), x_for=x_for), "127.0.0.1"), C)
    assert len(warnings) == warned


def test_a_client_on_the_proxy_s_own_machine_is_not_warned_about(warnings: list[str]) -> None:
    """A developer's browser, the proxy and the app may all be 127.0.0.1."""
    asked(caller(fix(venue()), "127.0.0.1"), "127.0.0.1")
    assert warnings == []


# -- exempt networks -----------------------------------------------------------------------------

#: Where monitoring lives, who may not be limited.
EXEMPT = "203.0.113.0/24"


def test_an_exempt_network_is_the_client_s() -> None:
    """Named by a trusted proxy, a client from there is not limited; others are."""
    proxy = caller(venue("0/minute", TRUSTED_PROXIES=TRUSTED, EXEMPT_NETWORKS=EXEMPT), P)
    assert asked(proxy, A, f"{C}, {A}, 192.0.2.5", C, f"{A}, {C}") == [200, 200, 429, 429]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP"])
@pytest.mark.parametrize("trusted", ["", TRUSTED])
@pytest.mark.parametrize("peer", [C, A])
def test_no_stranger_s_header_reaches_an_exemption(header: str, trusted: str, peer: str) -> None:
    """Neither from outside nor from an exempt peer, which may be a proxy that nobody told of."""
    stranger = caller(venue("0/minute", TRUSTED_PROXIES=trusted, EXEMPT_NETWORKS=EXEMPT), peer)
    assert asked(stranger, A, f"for={A}", "junk", "", header=header) == [429] * 4
    assert statuses(stranger, "/", 1) == [200 if peer == A else 429]


@pytest.mark.parametrize("chain", ["unknown", f"{A}, unknown", "", f"{A}, 0.0.0.0", f"{A};"])
def test_a_header_that_cannot_be_read_does_not_make_a_proxy_exempt(chain: str) -> None:
    """The proxy's own network may be exempt, but not whoever comes through it nameless."""
    proxy = caller(venue("0/minute", TRUSTED_PROXIES=TRUSTED, EXEMPT_NETWORKS=TRUSTED), P)
    assert asked(proxy, chain) == [429]
    assert statuses(proxy, "/", 1) == [200]


@pytest.mark.parametrize(("x_for", "status"), [(0, 429), (1, 200), (2, 429)])
def test_proxy_fix_vouches_only_for_an_address_it_took(x_for: int, status: int) -> None:
    """Where it left the proxy's address as it is, the world would come from there."""
    app = fix(venue("0/minute", EXEMPT_NETWORKS=f"{EXEMPT}, {TRUSTED}"), x_for=x_for)
    assert asked(caller(app, P), A) == [status]


# -- the address in keys -------------------------------------------------------------------------


def test_a_pair_with_the_address_keeps_its_other_half(app: Flask, limiter: VenueLimit) -> None:
    """``by_participant & by_ip`` is a bucket for each participant at each address."""
    whose = whose_bucket(app, limiter, by_participant & by_ip)
    people = [signed_in(app, address, participant_id=p) for address in (C, A) for p in ("p1", "p2")]
    assert [statuses(person, "/", 2) for person in people] == [[200, 429]] * 4
    assert whose().startswith("participant&ip:")


def test_the_address_is_always_known(app: Flask, limiter: VenueLimit) -> None:
    """``by_ip | by_user`` is the address, whoever is signed in there."""
    whose = whose_bucket(app, limiter, by_ip | by_user)
    assert [statuses(signed_in(app, C, user_id=u), "/", 1) for u in "ab"] == [[200], [429]]
    assert whose().startswith("ip:")


def test_a_pair_without_an_address_is_nobody(app: Flask, limiter: VenueLimit) -> None:
    """``a & b`` is both or none: without a peer all share ``no-address``."""
    whose = whose_bucket(app, limiter, by_participant & by_ip)
    assert [statuses(signed_in(app, "", participant_id=p), "/", 1) for p in "ab"] == [[200], [429]]
    assert whose().startswith("no-address:")


@pytest.mark.parametrize("spelling", ["2001:db8:0:1234::5", "2001:DB8:0:12ff::1", "2001:db8:0:1200::/56"])
def test_a_pair_given_by_hand_finds_the_same_bucket(app: Flask, limiter: VenueLimit, spelling: str) -> None:
    """The address in it is normalised like the one a request came from."""
    limit = limiter.limit("1/minute", name="pair", key=by_participant & by_ip)
    app.add_url_rule("/", "home", limit(lambda: "ok"))
    assert statuses(signed_in(app, "2001:db8:0:1201::9", participant_id="p"), "/", 1) == [200]
    assert limit.peek(subject=("p", spelling)).remaining == 0
    assert limit.peek(subject=("q", spelling)).remaining == 1


@pytest.mark.parametrize("peer", [C, "2001:db8:0:1234::5", "::1", "[::1]:443", f"::ffff:{C}"])
def test_what_client_address_says_names_the_bucket(app: Flask, limiter: VenueLimit, peer: str) -> None:
    """What a log or a page shows of a client can be given back by hand, this machine's own address too."""
    limit = limiter.limit("1/minute", name="it", key=by_ip)
    app.add_url_rule("/", "home", limit(lambda: str(limiter.client_address())))
    assert limit.peek(subject=caller(app, peer).get("/").text).remaining == 0

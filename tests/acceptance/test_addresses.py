"""The client address, where nothing is said about proxies: what Flask reports, in one spelling."""

from __future__ import annotations

import pytest
from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from tests.acceptance.callers import A, C, caller, statuses


@pytest.fixture
def limiter(app: Flask) -> VenueLimit:
    """A limiter whose app tells the client's address, once a minute for each."""
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("1/minute", key=by_ip)(lambda: str(limiter.client_address())))
    return limiter


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (C, C),
        ("198.51.100.7:49152", C),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("::ffff:c000:201", "192.0.2.1"),
        ("0:0:0:0:0:ffff:c000:0201", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("2001:db8:1234:5678::192.0.2.1", "2001:db8:1234:5600::/56"),
        ("2001:db8:0:1234::5", "2001:db8:0:1200::/56"),
        ("[2001:db8:1:2300::5]:4711", "2001:db8:1:2300::/56"),
        ("2001:DB8:1:23FF::9", "2001:db8:1:2300::/56"),
        ("fe80::1%eth0", "fe80::/56"),
        ("::1", "::/56"),
        ("0.0.0.0", "None"),
        ("::", "None"),
        ("unix:", "None"),
        ("", "None"),
        ("198.51.100", "None"),
    ],
)
def test_an_address_has_one_spelling(app: Flask, limiter: VenueLimit, peer: str, address: str) -> None:
    """Ports and zones are dropped, mapped IPv4 is IPv4, IPv6 is cut to its network."""
    assert caller(app, peer).get("/").text == address


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("198.51.100.7:49152", "198.51.100.7:50001"),
        ("[2001:db8:1:2300::5]:4711", "2001:db8:1:23ff::9"),
        ("::ffff:192.0.2.1", "::ffff:c000:201"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1234:56ab:1:2:3:4", "2001:DB8:1234:56CD::9"),
    ],
)
def test_all_spellings_of_an_address_share_a_bucket(
    app: Flask, limiter: VenueLimit, one: str, other: str
) -> None:
    """A new port, case or interface does not make a new client."""
    assert statuses(caller(app, one), "/", 1) + statuses(caller(app, other), "/", 1) == [200, 429]


def test_the_next_network_is_somebody_else(app: Flask, limiter: VenueLimit) -> None:
    """A /56 is a client, its neighbour another."""
    peers = ("2001:db8:1234:56ab:1:2:3:4", "2001:db8:1234:5700::1")
    assert [statuses(caller(app, peer), "/", 1) for peer in peers] == [[200], [200]]


@pytest.mark.parametrize(("prefix", "address"), [(64, "2001:db8:0:1234::/64"), ("48", "2001:db8::/48")])
def test_how_much_of_ipv6_is_a_client_is_a_setting(prefix: int | str, address: str) -> None:
    """``VENUELIMIT_IPV6_PREFIX`` sets the bits that name a client."""
    app = Flask("venue")
    app.config.update(SECRET_KEY="s", VENUELIMIT_IPV6_PREFIX=prefix)
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", lambda: str(limiter.client_address()))
    assert caller(app, "2001:db8:0:1234::5").get("/").text == address


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP"])
def test_no_header_is_read_unless_it_is_trusted(app: Flask, limiter: VenueLimit, header: str) -> None:
    """A caller who makes up a forwarded address for each request gains nothing."""
    client = caller(app, A)
    made_up = [{header: f"198.51.100.{n}"} for n in range(3)]
    assert [client.get("/", headers=headers).status_code for headers in made_up] == [200, 429, 429]


def test_an_app_s_own_proxy_fix_is_believed(app: Flask, limiter: VenueLimit) -> None:
    """What ProxyFix makes of the address is what Flask reports, and so what is limited."""
    app.wsgi_app = ProxyFix(app.wsgi_app)  # type: ignore[method-assign]
    proxy = caller(app, "192.0.2.10")
    assert [proxy.get("/", headers={"X-Forwarded-For": peer}).status_code for peer in (C, A, C)] == [
        200,
        200,
        429,
    ]


def test_outside_a_request_there_is_no_address(app: Flask, limiter: VenueLimit) -> None:
    """Nobody is connected in a shell: None."""
    assert limiter.client_address() is None
    with app.app_context():
        assert limiter.client_address() is None

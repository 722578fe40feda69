"""What ``flask venuelimit nginx`` prints, as nginx keeps it in front of the app, with real requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from typing import Any, NamedTuple

import pytest
from flask import Flask

from flask_venuelimit import VenueLimit, by_ip
from tests.commands.terminal import typed
from tests.fronts.asking import ONE, OTHER
from tests.fronts.nginx import run_config
from tests.servers import connect, free_port, run_app

#: Has nginx believe a header in which a test names any client.
NAMED = "http {\n    set_real_ip_from 127.0.0.0/8;\n    real_ip_header X-Test-Client;\n"
Front = Callable[..., "Answers"]


class Answer(NamedTuple):
    """What came back: the status, the fields, the body."""

    status: int
    fields: dict[str, str]
    body: str

    @property
    def ours(self) -> bool:
        """Whether the app answered, and not nginx for it."""
        return "RateLimit" in self.fields or self.status == 200


class Answers:
    """Asks nginx at an address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, path: str = "/", source: str = ONE, method: str = "GET", **fields: str) -> Answer:
        """One answer."""
        connection = HTTPConnection("venue.example")
        connection.sock = connect(self._address, source)
        connection.request(method, path, headers={name.replace("_", "-"): fields[name] for name in fields})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return Answer(answer.status, dict(answer.getheaders()), body)

    def statuses(self, times: int, *where: str, **options: str) -> list[int]:
        """The statuses of so many requests in a row."""
        return [self.ask(*where, **options).status for _ in range(times)]


def venue(**settings: Any) -> tuple[Flask, VenueLimit]:
    """An app with a home and a way in."""
    app = Flask("venue", template_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
    app.config.update(VENUELIMIT_TRUSTED_PROXIES="127.0.0.1")
    app.config.update({f"VENUELIMIT_{name}": value for name, value in settings.items()})
    app.add_url_rule("/", "home", lambda: "ok", methods=["GET", "POST"])
    return app, VenueLimit(app)


@pytest.fixture
def front(nginx: str) -> Iterator[Front]:
    """Serves an app, and nginx in front of it by the configuration that the command prints."""
    with ExitStack() as running:

        def front(app: Flask, http: str = "http {") -> Answers:
            address = f"127.0.0.1:{free_port()}"
            upstream = running.enter_context(run_app(app))
            text = typed(app, "nginx", "--listen", address, "--upstream", upstream).text
            running.enter_context(run_config(nginx, text.replace("http {", http, 1), address))
            return Answers(address)

        yield front


@pytest.fixture
def everywhere(front: Front) -> Answers:
    """nginx in front of an app under three a minute from an address."""
    app, limiter = venue()
    limiter.limit("3/minute", name="global", key=by_ip).everywhere()
    return front(app)


def test_the_limit_and_the_burst_pass_and_nginx_cuts_off_the_rest(everywhere: Answers) -> None:
    """Three are admitted, three are refused by the app with a page's worth of words, and then it is nginx."""
    answers = [everywhere.ask() for _ in range(10)]
    assert [each.status for each in answers] == [200] * 3 + [429] * 7
    assert [each.ours for each in answers] == [True] * 6 + [False] * 4


def test_another_address_has_its_own(everywhere: Answers) -> None:
    """As in the app."""
    everywhere.statuses(10)
    assert [everywhere.ask("/", OTHER).status for _ in range(4)] == [200, 200, 200, 429]


def test_nginx_refuses_as_the_app_does(everywhere: Answers) -> None:
    """The same JSON but for the limit's name, a Retry-After, and not to be stored."""
    answers = [everywhere.ask() for _ in range(7)]
    of_app, of_nginx = json.loads(answers[5].body), json.loads(answers[6].body)
    assert of_app.keys() - of_nginx.keys() == {"limit", "violated-policies"}
    assert {**of_app, **of_nginx, "retry_after": of_app["retry_after"]} == of_app
    fields = answers[6].fields
    assert fields["Retry-After"] == str(of_nginx["retry_after"]) == "20"
    assert (fields["Content-Type"], fields["Cache-Control"]) == ("application/json", "no-store")
    assert fields["Vary"] == answers[5].fields["Vary"]


def test_a_person_is_led_to_the_page(everywhere: Answers) -> None:
    """Which is never refused; a script that says so is no person, nor is a prefetch."""
    everywhere.statuses(10)
    answer = everywhere.ask(Sec_Fetch_Mode="navigate")
    assert (answer.status, answer.fields["Location"]) == (303, "/too-many-requests")
    assert "Retry-After" not in answer.fields
    assert everywhere.statuses(20, answer.fields["Location"]) == [200] * 20
    assert everywhere.ask(Sec_Fetch_Mode="cors").status == 429
    assert everywhere.ask(Sec_Fetch_Mode="navigate", Sec_Purpose="prefetch").status == 429


def test_the_page_inline_is_the_app_s_alone(front: Front) -> None:
    """Where the app redirects nobody, nginx redirects nobody."""
    app, limiter = venue(PAGE_MODE="inline")
    limiter.limit("1/minute", name="global", key=by_ip).everywhere()
    assert front(app).statuses(4, Sec_Fetch_Mode="navigate") == [200, 429, 429, 429]


def test_what_is_exempt_is_exempt_in_nginx(everywhere: Answers) -> None:
    """Assets, preflights and the page spend nothing of it, so the full measure is left."""
    for _ in range(10):
        everywhere.ask("/static/nothing.css")
        everywhere.ask("/too-many-requests/static/page.css")
        everywhere.ask(method="OPTIONS")
    assert [everywhere.ask().ours for _ in range(7)] == [True] * 6 + [False]


def test_a_limit_on_a_route_is_kept_there_alone(front: Front) -> None:
    """By path and method."""
    app, limiter = venue()
    join = limiter.limit("2/minute", name="join", key=by_ip, methods={"POST"})
    app.add_url_rule("/games/<int:id>", "join", join(lambda id: "ok"), methods=["GET", "POST"])
    answers = front(app)
    assert answers.statuses(20) == answers.statuses(20, "/games/7") == [200] * 20
    posted = [answers.ask(f"/games/{id}", method="POST") for id in range(6)]
    assert [each.ours for each in posted] == [True] * 4 + [False] * 2


def test_an_exempt_network_is_never_refused(front: Front) -> None:
    """Neither by the app nor by nginx."""
    app, limiter = venue(EXEMPT_NETWORKS="127.0.0.3/32", TRUSTED_PROXIES="127.0.0.1")
    limiter.limit("1/minute", name="global", key=by_ip).everywhere()
    answers = front(app)
    assert answers.statuses(9, "/", OTHER) == [200] * 9
    assert answers.statuses(3, "/", ONE) == [200, 429, 429]


def test_an_ipv6_network_is_one_client(front: Front) -> None:
    """All addresses of a /56 share what there is; the next one has its own, and an IPv4 address too."""
    app, limiter = venue()
    limiter.limit("2/minute", name="global", key=by_ip).everywhere()
    answers = front(app, NAMED)

    def spend(*clients: str) -> list[bool]:
        return [answers.ask(X_Test_Client=client).ours for client in clients]

    household = ["2001:db8:0:1200::1", "2001:db8:0:12ff:a:b:c:d", "2001:db8:0:1234::", "2001:db8:0:1200::a"]
    assert spend(*household * 2) == [True] * 4 + [False] * 4
    assert (
        spend("2001:db8:0:1300::1", "2001:db8:0:11ff::1", "2001:db8::1", "2001:db9:0:1200::1") == [True] * 4
    )
    assert spend(*["198.51.100.10", "::ffff:198.51.100.10"] * 3) == [True] * 4 + [False] * 2
    assert spend("198.51.100.11") == [True]

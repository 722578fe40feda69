"""What the redirect to the limit page carries, and where the page may lead back to."""

from __future__ import annotations

import hashlib
import math
import time
from urllib.parse import quote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from itsdangerous import URLSafeTimedSerializer
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from flask_venuelimit.page import way_back
from flask_venuelimit.page.token import Ticket, issue, read
from flask_venuelimit.testing import ManualClock

SALT = b"one salt"


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The wall clock, which stands still at a day in 2026."""
    clock = ManualClock(1_780_000_000.25)
    monkeypatch.setattr(time, "time", clock)
    return clock


def signer() -> URLSafeTimedSerializer:
    options = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    return URLSafeTimedSerializer(SALT, salt=b"flask-venuelimit limit page", signer_kwargs=options)


def read_back(text: str | None) -> Ticket:
    ticket = read(SALT, text)
    assert ticket is not None
    return ticket


def test_a_token_tells_what_was_put_into_it(wall_clock: ManualClock) -> None:
    """Limit, end of the wait, way back, sentence and whose it was arrive unchanged."""
    for shared in (True, False, None):
        ticket = read_back(issue(SALT, "join", 3, "/quiz?round=2", "Slow down, ümläut.", shared))
        assert ticket == Ticket("join", wall_clock() + 3, "/quiz?round=2", "Slow down, ümläut.", shared)


def test_a_token_is_short(wall_clock: ManualClock) -> None:
    """An ordinary refusal's URL stays in two lines of a terminal."""
    assert len(issue(SALT, "submit-answer", 60, "/g/ABCD/answers", shared=True)) < 140


def test_a_token_of_before_is_read(wall_clock: ManualClock) -> None:
    """It did not say whose the limit was, and neither does the page."""
    until = wall_clock() + 3
    text = signer().dumps(["join", until, "/quiz", "Slow down."])
    assert read(SALT, text) == Ticket("join", until, "/quiz", "Slow down.", None)


def test_the_wait_runs_on_the_wall_clock(wall_clock: ManualClock) -> None:
    """It is rounded up while it lasts, and 0 from its end on."""
    ticket = read_back(issue(SALT, "join", 3))
    assert ticket.wait() == 3
    wall_clock.advance(2.001)
    assert ticket.wait() == 1
    wall_clock.advance(0.999)
    assert ticket.wait() == 0


@given(st.floats(1e9, 4e9), st.integers(1, 100_000))
def test_whoever_follows_at_once_is_told_the_same_wait(now: float, seconds: int) -> None:
    """Rounding makes no second out of a split one, whatever the clock shows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: now)
        assert read_back(issue(SALT, "join", seconds)).wait() == seconds


def test_a_token_is_read_for_an_hour_after_its_wait(wall_clock: ManualClock) -> None:
    """Whoever comes later sees the plain page."""
    text = issue(SALT, "join", 60)
    wall_clock.advance(60 + 3600)
    assert read(SALT, text) is not None
    wall_clock.advance(0.01)
    assert read(SALT, text) is None


def test_a_token_without_a_wait_is_read_for_an_hour(wall_clock: ManualClock) -> None:
    """Where no wait helps there is none to be over, so the hour runs from the refusal."""
    text = issue(SALT, "closed", None)
    assert read_back(text).wait() is None
    wall_clock.advance(3602)
    assert read(SALT, text) is None


def test_a_token_of_another_salt_is_none() -> None:
    """Only this app's own refusals make its page speak."""
    assert read(b"another salt", issue(SALT, "join", 3)) is None


def test_a_changed_token_is_none() -> None:
    """Not one character of it may differ."""
    text = issue(SALT, "join", 3, "/quiz")
    changed = [text[:i] + ("A" if text[i] != "A" else "B") + text[i + 1 :] for i in range(len(text) - 1)]
    assert {read(SALT, each) for each in changed} == {None}


@pytest.mark.parametrize(
    "payload",
    [
        *({}, [], ["join"], [1, 2, None, None], ["a", "b", None, None], [None] * 4, [None] * 5, ["a"] * 6),
        *(["a", until, None, None] for until in (math.inf, math.nan, 1e308, 10**400)),
    ],
)
def test_a_token_of_another_release_is_none(payload: object) -> None:
    """A rightly signed payload of some other shape is not guessed at."""
    assert read(SALT, signer().dumps(payload)) is None


@given(st.one_of(st.none(), st.text(st.characters()), st.text("abcXYZ09-_.=", max_size=80)))
def test_no_text_whatsoever_fails(text: str | None) -> None:
    """A stranger's token is nothing, never an error."""
    assert read(SALT, text) is None


def test_a_long_sentence_is_cut() -> None:
    """The token has to fit into a URL."""
    message = read_back(issue(SALT, "join", 3, None, "x" * 5000)).message
    assert message == "x" * 299 + "…"


def test_a_foreign_way_back_is_not_even_issued() -> None:
    """It is checked at the door, and once more when it is used."""
    assert read_back(issue(SALT, "join", 3, "//evil.example")).way_back is None


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/quiz",
        "/a/b//c",
        "/?next=//evil.example",
        "/q?x=%0d%0a%5c",
        "/pub/caf%C3%A9",
        "/100%25",
        "/a:b@c",
    ],
)
def test_a_local_path_is_a_way_back(path: str) -> None:
    """A query is data and may hold anything that is percent-encoded."""
    assert way_back.local(path) == path


FOREIGN = [
    "",
    "quiz",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/\t/evil.example",
    "/\r/evil.example",
    "/\n/evil.example",
    "/\x00/evil.example",
    "\t//evil.example",
    " //evil.example",
    "/ /evil.example",
    "/%2Fevil.example",
    "/%5Cevil.example",
    "/%5cevil.example",
    "/%09/evil.example",
    "/%0d%0aSet-Cookie:x",
    "/%00",
    "/%252Fevil.example",
    "/%25252525252Fevil.example",
    "/.//evil.example",
    "/..//evil.example",
    "/%2e%2e//evil.example",
    "/quiz\n",
    "javascript:alert(1)",
    "/javascript:alert(1)\\",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "https://evil.example/",
    "http:evil.example",
    "/café",
    "/\u2028/evil.example",
    "/\uff0fevil.example",
]


@pytest.mark.parametrize("path", FOREIGN)
def test_anything_doubtful_is_no_way_back(path: str) -> None:
    """Other hosts, other schemes, and every disguise of them."""
    assert way_back.local(path) is None


@pytest.mark.parametrize("value", [None, 7, b"/quiz", ["/quiz"]])
def test_what_is_no_text_is_no_way_back(value: object) -> None:
    """A payload may hold anything."""
    assert way_back.local(value) is None


def test_a_way_back_has_at_most_a_thousand_characters() -> None:
    """Longer ones would not fit into a URL twice."""
    assert way_back.local("/" + "a" * 999) is not None
    assert way_back.local("/" + "a" * 1000) is None


@given(st.text(st.sampled_from("/\\.%2f5c09ae:@?#\t\r\n\x00 evil"), max_size=30).map(lambda text: "/" + text))
def test_a_way_back_stays_on_the_site(path: str) -> None:
    """However it is put together, a browser that resolves it stays on the host."""
    found = way_back.local(path)
    assert (
        found is None
        or urlsplit(urljoin("https://pub.example/too-many-requests", found)).netloc == "pub.example"
    )


def asked(path: str, query: str = "", method: str = "GET", script: str = "") -> Request:
    overrides = {"PATH_INFO": path.encode().decode("latin-1"), "SCRIPT_NAME": script, "QUERY_STRING": query}
    return Request(EnvironBuilder(method=method, environ_overrides=overrides).get_environ())


@pytest.mark.parametrize(
    ("path", "query", "back"),
    [
        ("/quiz", "", "/quiz"),
        ("/quiz", "round=2&x=%2F", "/quiz?round=2&x=%2F"),
        ("/café/a b", "", f"/{quote('café')}/a%20b"),
        ("/50%", "", "/50%25"),
        ("/a?b", "", "/a%3Fb"),
        ("/quiz", 'q="<\\>"', "/quiz?q=%22%3C%5C%3E%22"),
        ("", "", "/"),
    ],
)
def test_the_way_back_is_what_was_asked_for(path: str, query: str, back: str) -> None:
    """A GET's own path and query, encoded as a URL has them."""
    assert way_back.of(asked(path, query)) == back


def test_the_way_back_keeps_the_prefix() -> None:
    """SCRIPT_NAME is part of the link."""
    assert way_back.of(asked("/quiz", script="/pub")) == "/pub/quiz"


@pytest.mark.parametrize("method", ["POST", "HEAD", "PUT"])
def test_only_a_get_can_be_gone_back_to(method: str) -> None:
    """A link sends a GET; what another method asked for is not to be had by one."""
    assert way_back.of(asked("/quiz", method=method)) is None


@pytest.mark.parametrize("path", ["//evil.example", "/\\evil.example", "/\t/evil.example", "/\x00", "/\r\nx"])
def test_a_hostile_path_is_no_way_back(path: str) -> None:
    """What a server decoded is checked as it is, not as it was sent."""
    assert way_back.of(asked(path)) is None

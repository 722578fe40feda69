"""The way to the limit page and back: what the redirect carries, and what a forged one gains."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from flask import Flask

from flask_venuelimit import FixedWindow, Limit, MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.testing import ManualClock
from tests.acceptance.callers import NAVIGATING, C, caller, statuses
from tests.acceptance.pages import Links, sent_away

PAGE = "/too-many-requests"


def test_the_redirect_s_page_ends_in_429_until_the_wait_is_over(
    app: Flask, closed: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the wall clock: 429 with what is left of the wait, then 200; over an hour later the plain page."""
    location, begun, passed = sent_away(app), time.time(), ManualClock()
    monkeypatch.setattr(time, "time", lambda: begun + passed())
    seen = []
    for seconds in (0, 30, 31, 3600):
        passed.advance(seconds)
        answer = caller(app).get(location)
        seen.append((answer.status_code, answer.headers.get("Retry-After"), "everything" in answer.text))
    assert seen == [(429, "60", True), (429, "30", True), (200, None, True), (200, None, False)]


def test_the_page_leads_back(app: Flask, closed: Limit) -> None:
    """A GET's own path and query are the way back."""
    answer = caller(app).get(sent_away(app, "/quiz/%C3%BC?round=2&team=a%26b"))
    assert "/quiz/%C3%BC?round=2&team=a%26b" in Links(answer).found


def test_a_post_leads_nowhere_back(app: Flask, closed: Limit) -> None:
    """A form that was refused cannot be linked to."""
    app.add_url_rule("/send", "send", lambda: "sent", methods=["POST"])
    client = caller(app)
    client.get("/")
    answer = client.post("/send", headers=NAVIGATING, follow_redirects=True)
    assert [link for link in Links(answer).found if "static" not in link] == []


@pytest.mark.parametrize("long", [1000, 1001])
def test_the_way_back_has_at_most_a_thousand_characters(app: Flask, closed: Limit, long: int) -> None:
    """A longer one is left out, and the page is there all the same."""
    path = "/" + "a" * (long - 1)
    answer = caller(app).get(sent_away(app, path))
    assert (answer.status_code, path in Links(answer).found) == (429, long == 1000)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "//evil.example/%2e%2e",
        "/\\evil.example",
        "/\\/evil.example",
        "/\t/evil.example",
        "/\r\n/evil.example",
        "/\x00/evil.example",
        "///evil.example",
        "javascript:alert(1)",
        "/%09/evil.example",
        "/%5cevil.example",
        "/.//evil.example",
        "https://evil.example/",
    ],
)
@pytest.mark.parametrize("mode", ["redirect", "inline"])
def test_no_link_on_the_page_leaves_the_site(path: str, mode: str) -> None:
    """Whatever path was asked for, the page leads nowhere else, and is no 500."""
    app = Flask("venue", template_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_PAGE_MODE=mode)
    VenueLimit(app, storage=MemoryStorage()).limit(FixedWindow(0, 60), key=by_ip).everywhere()
    raw = {"PATH_INFO": path, "REQUEST_URI": path, "RAW_URI": path}
    answer = caller(app).get("/", headers=NAVIGATING, environ_overrides=raw, follow_redirects=False)
    if mode == "redirect":
        assert answer.headers["Location"].startswith(f"{PAGE}?")
        answer = caller(app).get(answer.headers["Location"])
    assert answer.status_code == 429
    targets = [urlsplit(urljoin("https://pub.example/x/", link)) for link in Links(answer).found]
    assert {(target.scheme, target.netloc) for target in targets} == {("https", "pub.example")}


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "\x00", "ü", "." * 5000, "W10.aaaa.bbbb"])
def test_a_forged_token_gives_the_plain_page(app: Flask, closed: Limit, token: str) -> None:
    """Nobody can make the page say what they like, nor make it fail."""
    plain = caller(app).get(PAGE)
    answer = caller(app).get(PAGE, query_string={"t": token})
    assert (answer.status_code, answer.text) == (200, plain.text)


def test_a_token_that_was_changed_gives_the_plain_page(app: Flask, closed: Limit) -> None:
    """One character more, fewer or other, and it is no token."""
    location, plain = sent_away(app), caller(app).get(PAGE).text
    changed = [location[:-1], location + "A", location[:-5] + "AAAAA", location.replace("?", "?x&", 1)[:-2]]
    assert [caller(app).get(path).text == plain for path in changed] == [True] * 4


def test_another_app_s_token_gives_the_plain_page(app: Flask, closed: Limit) -> None:
    """A token is signed under the salt, and another salt does not take it."""
    other = Flask("other", template_folder=None)
    other.config["SECRET_KEY"] = "another"
    VenueLimit(other, storage=MemoryStorage())
    assert statuses(caller(other), sent_away(app), 1) == [200]


def test_a_second_process_takes_the_token(app: Flask, closed: Limit) -> None:
    """Which worker renders the page makes no difference, even one that has no storage."""
    other = Flask("other", template_folder=None)
    other.config["SECRET_KEY"] = app.config["SECRET_KEY"]
    VenueLimit(other)
    assert statuses(caller(other), sent_away(app), 1) == [429]


def test_the_redirect_holds_nothing_readable_of_the_caller(app: Flask, closed: Limit) -> None:
    """Limit, wait and way back; not whom it was about."""
    assert C not in sent_away(app)


def test_an_app_s_own_page_is_shown(tmp_path: Any) -> None:
    """``venuelimit/too_many_requests.html`` in the app's templates takes the page's place."""
    (tmp_path / "venuelimit").mkdir()
    (tmp_path / "venuelimit" / "too_many_requests.html").write_text("<p>One pint at a time: {{ limit }}")
    app = Flask("venue", template_folder=str(tmp_path))
    app.config["SECRET_KEY"] = "s"
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("0/minute", name="bar", key=by_ip)(lambda: "ok"))
    answer = caller(app).get("/", headers=NAVIGATING, follow_redirects=True)
    assert answer.text == "<p>One pint at a time: bar"
    assert (answer.headers["Cache-Control"], answer.headers["X-Robots-Tag"]) == (
        "no-store",
        "noindex, nofollow",
    )

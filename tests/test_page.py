"""The limit page as a browser or a crawler gets it over HTTP."""

from __future__ import annotations

import re
import time
from urllib.parse import quote

import pytest
from flask import abort, session
from werkzeug.test import TestResponse
from werkzeug.wrappers import Response

from flask_venuelimit.page import token
from flask_venuelimit.page.texts import TEXTS
from flask_venuelimit.page.views import protect, robots_txt
from flask_venuelimit.testing import ManualClock
from tests.refusing import NAVIGATE, SETTINGS, followed, overriding, refusing_app

PAGE = "/too-many-requests"


@pytest.fixture
def wall_clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The wall clock, which stands still at a day in 2026."""
    clock = ManualClock(1_780_000_000.25)
    monkeypatch.setattr(time, "time", clock)
    return clock


def renderings() -> dict[str, TestResponse]:
    return {
        "plain": refusing_app().test_client().get(PAGE),
        "forged": refusing_app().test_client().get(f"{PAGE}?t=forged"),
        "waiting": followed(refusing_app()),
        "closed": followed(refusing_app(wait=None)),
        "inline": refusing_app(page_mode="inline").test_client().get("/quiz", headers=NAVIGATE),
        "unavailable": refusing_app(unavailable=True).test_client().get("/quiz", headers=NAVIGATE),
        "overridden": followed(overriding("mine")),
    }


def test_every_rendering_keeps_out_of_caches_and_indexes() -> None:
    """Plain, redirected, inline, overridden: the same four headers."""
    for response in renderings().values():
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Robots-Tag"] == "noindex, nofollow"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_our_own_page_says_so_in_the_document_too() -> None:
    """The robots meta and the status are in every rendering of our template."""
    pages = renderings()
    del pages["overridden"]
    for name, response in pages.items():
        assert '<meta name="robots" content="noindex, nofollow">' in response.text
        assert ("HTTP 503" if name == "unavailable" else "HTTP 429") in response.text


def test_a_plain_visit_is_a_200() -> None:
    """Nobody who looks at the page was refused for it."""
    response = refusing_app().test_client().get(PAGE)
    assert response.status_code == 200
    assert "Retry-After" not in response.headers


def test_whoever_was_redirected_ends_in_a_429(wall_clock: ManualClock) -> None:
    """A script or crawler that follows learns the truth, and the time that is left."""
    client = refusing_app(wait=90.0).test_client()
    location = client.get("/quiz", headers=NAVIGATE).location
    wall_clock.advance(30.5)
    response = client.get(location)
    assert response.status_code == 429
    assert 60 <= int(response.headers["Retry-After"]) <= 69


def test_when_the_wait_is_over_the_page_is_a_200_with_the_way_back(wall_clock: ManualClock) -> None:
    """From the very moment on, and for an hour."""
    client = refusing_app(wait=3.0).test_client()
    location = client.get("/quiz?round=2", headers=NAVIGATE).location
    wall_clock.advance(3.0)
    response = client.get(location)
    assert response.status_code == 200
    assert "Retry-After" not in response.headers
    assert 'href="/quiz?round=2"' in response.text


def test_a_token_of_long_ago_gives_the_plain_page(wall_clock: ManualClock) -> None:
    """A bookmark of a refusal is the same as no token at all."""
    client = refusing_app().test_client()
    location = client.get("/quiz", headers=NAVIGATE).location
    wall_clock.advance(3 + 3601)
    assert client.get(location).text == client.get(PAGE).text


def test_where_no_wait_helps_the_429_has_no_hint() -> None:
    """No Retry-After, no countdown."""
    response = followed(refusing_app(wait=None))
    assert response.status_code == 429
    assert "Retry-After" not in response.headers
    assert "data-limit-wait" not in response.text


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "%00", "%ff%fe", "é", "." * 5000])
def test_no_token_fails(text: str) -> None:
    """Missing or forged, it is the plain page, never an error."""
    client = refusing_app().test_client()
    assert client.get(f"{PAGE}?t={text}").text == client.get(PAGE).text


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "/\\evil.example", "/\t/evil.example", "/\r\nevil", "/\x00", "/javascript:alert(1)"],
)
@pytest.mark.parametrize("mode", ["redirect", "inline"])
def test_no_link_on_the_page_leaves_the_site(path: str, mode: str) -> None:
    """Whatever path was refused, and on either way to the page."""
    app = refusing_app(page_mode=mode)
    response = app.test_client().get(
        "/", headers=NAVIGATE, environ_overrides={"PATH_INFO": path}, follow_redirects=True
    )
    assert response.status_code == 429
    links = re.findall(r'(?:href|src)="([^"]*)"', response.text)
    assert links
    assert all(re.match(r"/[\w-]", link) for link in links)


def test_what_a_token_holds_is_escaped() -> None:
    """Neither a sentence nor a path becomes markup."""
    text = token.issue(SETTINGS.salt, "<b>join</b>", 9, "/quiz?a=1&b='x'", "<script>alert(1)</script>")
    page = refusing_app().test_client().get(f"{PAGE}?t={text}").text
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<b>" not in page
    assert 'href="/quiz?a=1&amp;b=&#39;x&#39;"' in page


def test_a_limits_own_sentence_is_the_pages() -> None:
    """``message`` stands in for the usual explanation."""
    assert "<p>One answer at a time.</p>" in followed(refusing_app(message="One answer at a time.")).text


def test_without_javascript_the_wait_is_in_words_and_the_link_is_there(wall_clock: ManualClock) -> None:
    """The script only improves on what the document says."""
    page = followed(refusing_app(wait=90.0, retry_jitter=0.0)).text
    assert ">90 seconds</span>" in page
    assert 'href="/quiz?round=2"' in page


@pytest.mark.parametrize(
    ("kind", "heading"),
    [
        ("ip", "Too many people from this network at once"),
        ("no-address", "Too many people from this network at once"),
        ("participant", "You are going a little fast"),
        ("user", "You are going a little fast"),
        ("bearer", "You are going a little fast"),
        ("custom", "You are going a little fast"),
        ("tenant", "You are going a little fast"),
    ],
)
@pytest.mark.parametrize("mode", ["redirect", "inline"])
def test_the_heading_says_whose_limit_it_was(kind: str, heading: str, mode: str) -> None:
    """A whole network's, or one person's; nobody is told off for a room full of people."""
    app = refusing_app(kind=kind, page_mode=mode)
    page = app.test_client().get("/quiz", headers=NAVIGATE, follow_redirects=True).text
    assert f"<h1>{heading}</h1>" in page
    assert f"<title>{heading} (HTTP 429)</title>" in page


def test_a_plain_visit_blames_nobody() -> None:
    """Nothing was refused, so the page says when it is shown, and offers no button."""
    page = refusing_app().test_client().get(PAGE).text
    assert "<h1>Too many requests</h1>" in page
    assert "You see this page when" in page
    assert "limit-button" not in page


@pytest.mark.parametrize(
    ("kind", "wait", "jitter", "spread"),
    [("ip", 60.0, 0.1, 1), ("ip", 5.0, 0.1, 2), ("ip", 60.0, 0.0, 0), ("participant", 5.0, 0.1, 0)],
)
def test_a_room_is_not_sent_back_in_one_second(kind: str, wait: float, jitter: float, spread: int) -> None:
    """The countdown of a network's limit has a part by chance, unless jitter is off; a person is alone."""
    page = followed(refusing_app(wait=wait, kind=kind, retry_jitter=jitter)).text
    assert f'data-limit-spread="{spread}"' in page


def test_the_page_speaks_the_readers_language() -> None:
    """``Accept-Language`` chooses; document and header field say which, and that it was chosen by it."""
    response = followed(refusing_app(wait=90.0, retry_jitter=0), language="de-AT, de;q=0.9, en;q=0.5")
    assert '<html lang="de">' in response.text
    assert "<h1>Zu viele Leute auf einmal aus diesem Netz</h1>" in response.text
    assert ">90 Sekunden</span>" in response.text
    assert response.headers["Content-Language"] == "de"
    assert "Accept-Language" in response.headers["Vary"]


def test_every_rendering_says_its_language() -> None:
    """English where nothing is asked for; an app's own page that names none is not said to be in any."""
    pages = renderings()
    assert "Content-Language" not in pages.pop("overridden").headers
    for response in pages.values():
        assert response.headers["Content-Language"] == "en"
        assert "Accept-Language" in response.headers["Vary"]


def test_a_refusal_inline_depends_on_all_that_it_is_chosen_by() -> None:
    """Page or JSON, and in which language."""
    answer = refusing_app(page_mode="inline").test_client().get("/", headers=NAVIGATE)
    assert set(answer.vary) == {"Accept", "Sec-Fetch-Mode", "Accept-Language"}


def test_a_form_that_was_refused_has_no_link_but_a_way_back() -> None:
    """What was typed is on the page before: the script offers it, the text says so without."""
    client = refusing_app().test_client()
    page = client.post("/quiz", headers=NAVIGATE, follow_redirects=True).text
    assert re.search(r"<button [^>]*data-limit-back hidden>Go back</button>", page)
    assert "<p data-limit-hint>Use your browser’s back button.</p>" in page
    assert "data-limit-way-back" not in page


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_where_limits_cannot_be_checked_nobody_is_told_to_slow_down(method: str) -> None:
    """A 503 has a heading and words of its own, no countdown, and a button that is awake."""
    client = refusing_app(unavailable=True, wait=30.0, retry_jitter=0).test_client()
    page = client.open("/quiz", method=method, headers=NAVIGATE).text
    assert "<h1>This is not possible right now</h1>" in page
    assert "The trouble is on our side, not yours. Nothing has been carried out." in page
    assert "It is worth another try in 30 seconds." in page
    assert "limit-button" in page
    assert [word for word in ("data-limit-wait", "progress", "fast", "Too many", "429") if word in page] == []


def test_head_works() -> None:
    """The same headers, and no body."""
    client = refusing_app().test_client()
    get, head = client.get(PAGE), client.head(PAGE)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers == get.headers


def test_other_methods_are_not_answered() -> None:
    """The page can be looked at, and that is all."""
    app = refusing_app()
    app.before_request_funcs[None].pop()
    assert app.test_client().post(PAGE).status_code == 405


def test_an_auth_gate_does_not_bounce_the_page() -> None:
    """It is answered before the app's own hooks, and so are its assets."""
    app = refusing_app()
    app.before_request(lambda: abort(401))
    client = app.test_client()
    for link in re.findall(r'(?:href|src)="([^"]*static[^"]*)"', client.get(PAGE).text):
        response = client.get(link)
        assert response.status_code == 200
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_assets_are_kept_by_browsers() -> None:
    """Cached for a while, then asked for by ETag; what is no asset is not found."""
    client = refusing_app().test_client()
    first = client.get(f"{PAGE}/static/page.css")
    again = client.get(f"{PAGE}/static/page.css", headers={"If-None-Match": first.headers["ETag"]})
    assert "max-age=3600" in first.headers["Cache-Control"]
    assert again.status_code == 304


@pytest.mark.parametrize("name", ["none.css", "../views.py", "%2e%2e/views.py", ""])
def test_only_assets_are_served(name: str) -> None:
    """Nothing else of the package can be had."""
    app = refusing_app()
    app.before_request_funcs[None].pop()
    assert app.test_client().get(f"{PAGE}/static/{name}").status_code == 404


def test_the_page_is_there_on_every_host() -> None:
    """By path alone, also where routes belong to hosts."""
    app = refusing_app()
    app.url_map.host_matching = True
    assert app.test_client().get(PAGE, headers={"Host": "any.pub.example"}).status_code == 200


def test_the_page_is_under_the_prefix_with_everything_it_links() -> None:
    """SCRIPT_NAME stands in front of assets and way back."""
    client = refusing_app().test_client()
    location = client.get("/quiz", headers=NAVIGATE, environ_overrides={"SCRIPT_NAME": "/pub"}).location
    page = client.get(location.removeprefix("/pub"), environ_overrides={"SCRIPT_NAME": "/pub"}).text
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert "/pub/quiz" in links
    assert all(link.startswith("/pub/") for link in links)


@pytest.mark.parametrize("path", ["/slow-down", "/help/zu-viele", "/größer"])
def test_the_page_lives_where_it_is_put(path: str) -> None:
    """VENUELIMIT_PAGE_PATH moves it, links and all."""
    response = followed(refusing_app(page_path=path))
    assert response.status_code == 429
    assert f'href="{quote(path)}/static/page.css"' in response.text


def test_the_page_never_touches_the_session() -> None:
    """No Vary: Cookie, no cookie, though the app's other templates read the session."""
    app = refusing_app()
    app.secret_key = "a secret for tests"
    app.context_processor(lambda: {"who": session.get("who")})
    for response in (app.test_client().get(PAGE), followed(app)):
        assert "Cookie" not in response.headers.get("Vary", "")
        assert "Set-Cookie" not in response.headers


def test_the_page_works_under_a_strict_content_security_policy() -> None:
    """Nothing inline, no data URLs, no other host: ``default-src 'self'`` is enough."""
    page = followed(refusing_app()).text
    assert not re.search(r"<style|\sstyle=|\son\w+=|data:|https?://|<script(?! src=)", page)


@pytest.mark.parametrize("language", TEXTS)
def test_the_page_with_everything_is_small(language: str) -> None:
    """It is sent to people of whom there are too many: under 15 KB, header fields included."""
    client, app = refusing_app().test_client(), refusing_app(message="x" * 300)
    page = followed(app, language=language)
    links = re.findall(r'(?:href|src)="([^"]*static[^"]*)"', page.text)
    answers = [page, *map(client.get, links)]
    assert len(answers) == 4
    assert sum(len(answer.data) + len(str(answer.headers)) for answer in answers) < 15_000


def test_protecting_outranks_other_hooks() -> None:
    """What an app's after-request hooks put on all responses is replaced."""
    response = Response(headers={"Cache-Control": "public"})
    protect(response)
    assert response.headers.getlist("Cache-Control") == ["no-store"]


def test_robots_txt_keeps_crawlers_off() -> None:
    """The lines for robots.txt name the page's path as a URL has it."""
    assert robots_txt("/größer") == "User-agent: *\nDisallow: /gr%C3%B6%C3%9Fer\n"

"""Programs as they come: curl, requests and httpx and a real server, with what they send by themselves."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests
from flask import Flask

from flask_venuelimit import FixedWindow, MemoryStorage, VenueLimit, by_ip
from tests.parts import CURL, require
from tests.servers import run_app

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36"
)
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "User-Agent": CHROME}

Answer = tuple[int, dict[str, str], str]
Fetch = Callable[..., Answer]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """An address where everybody has to wait for a minute."""
    app = Flask("venue", static_folder=None, template_folder=None)
    app.config.update(SECRET_KEY="long and random", VENUELIMIT_RETRY_JITTER=0)
    limiter = VenueLimit(app, storage=MemoryStorage(clock=lambda: 0.0))
    app.add_url_rule("/orders", "orders", lambda: "never", methods=["GET", "POST"])
    limiter.limit(FixedWindow(1, 60), name="orders", key=by_ip).everywhere().hit(subject="127.0.0.1")
    with run_app(app) as address:
        yield f"{address}/orders"


def curl(
    url: str, *, method: str = "GET", headers: dict[str, str] | None = None, follow: bool = False
) -> Answer:
    options = [f"-H{name}: {value}" for name, value in (headers or {}).items()] + (["-L"] if follow else [])
    method_options = ["-dcoffee=1"] if method == "POST" else []
    command = [require(CURL), "--silent", "--show-error", "--max-time", "20", "--include"]
    run = subprocess.run(
        [*command, *options, *method_options, url], check=True, stdout=subprocess.PIPE, text=True
    )
    # one block of header fields for each answer on the way, then the body of the last
    *_, head, body = run.stdout.replace("\r\n", "\n").split("\n\n", 2 if follow else 1)
    first, *fields = head.splitlines()
    return int(first.split()[1]), {n.lower(): v for n, _, v in (f.partition(": ") for f in fields)}, body


def with_requests(url: str, *, method: str = "GET", headers: Any = None, follow: bool = False) -> Answer:
    answer = requests.request(method, url, headers=headers, allow_redirects=follow, timeout=20)
    return answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, answer.text


def with_httpx(url: str, *, method: str = "GET", headers: Any = None, follow: bool = False) -> Answer:
    answer = httpx.request(method, url, headers=headers, follow_redirects=follow, timeout=20)
    return answer.status_code, dict(answer.headers), answer.text


@pytest.fixture(params=[curl, with_requests, with_httpx])
def fetch(request: pytest.FixtureRequest) -> Fetch:
    """One of the three."""
    fetch: Fetch = request.param
    return fetch


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_program_is_refused_in_words_it_can_read(address: str, fetch: Fetch, method: str) -> None:
    """A 429 with JSON and the hint, never a redirect that looks like success."""
    status, headers, body = fetch(address, method=method)
    assert (status, headers["content-type"], headers["retry-after"]) == (429, "application/json", "60")
    assert headers["ratelimit"] == '"orders";r=0;t=60'
    assert headers["ratelimit-policy"] == '"orders";q=1;w=60'
    assert '"retry_after": 60' in body


def test_one_that_names_problem_json_gets_it(address: str, fetch: Fetch) -> None:
    """RFC 9457 by name."""
    status, headers, _ = fetch(address, headers={"Accept": "application/problem+json"})
    assert (status, headers["content-type"]) == (429, "application/problem+json")


def test_one_that_poses_as_a_browser_is_sent_to_the_page(address: str, fetch: Fetch) -> None:
    """What a scraper sends cannot be told from a browser of before Fetch Metadata."""
    status, headers, _ = fetch(address, headers=HTML)
    assert (status, headers["location"].partition("?")[0]) == (303, "/too-many-requests")
    assert not {"retry-after", "ratelimit", "ratelimit-reset"} & set(headers)


def test_and_if_it_follows_it_ends_in_a_429(address: str, fetch: Fetch) -> None:
    """With the hint: nobody takes the page for what was asked for."""
    status, headers, body = fetch(address, headers=HTML, follow=True)
    assert (status, "HTTP 429" in body) == (429, True)
    assert 1 <= int(headers["retry-after"]) <= 60
    assert headers["x-robots-tag"] == "noindex, nofollow"


def test_one_that_honours_the_hint_needs_nothing_of_ours(address: str) -> None:
    """``raise_for_status`` and the number are enough."""
    answer = requests.get(address, timeout=20)
    with pytest.raises(requests.HTTPError, match="429 Client Error: TOO MANY REQUESTS"):
        answer.raise_for_status()
    assert int(answer.headers["Retry-After"]) == answer.json()["retry_after"] == 60

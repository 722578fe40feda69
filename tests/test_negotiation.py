"""Who gets a page, and who gets JSON."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from flask_venuelimit.refusals import body_kind, wants_page
from tests.refusing import CHROME_ACCEPT, NAVIGATE

HTML = {"Accept": CHROME_ACCEPT}
IMG_ACCEPT = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"


def asked(headers: dict[str, str], method: str = "GET") -> Request:
    return Request(EnvironBuilder(method=method, headers=Headers(headers)).get_environ())


@pytest.mark.parametrize(
    ("headers", "method"),
    [
        (HTML, "GET"),
        (HTML, "HEAD"),
        (NAVIGATE | HTML, "POST"),
        (NAVIGATE | {"Accept": "*/*"}, "GET"),
        ({"Accept": "application/xhtml+xml"}, "GET"),
        ({"Accept": "TEXT/HTML;charset=utf-8"}, "GET"),
        ({"Accept": "text/html;q=0.5, */*"}, "GET"),
        ({"Accept": "text/html, application/json;q=0.9"}, "GET"),
    ],
)
def test_a_person_navigating_gets_the_page(headers: dict[str, str], method: str) -> None:
    """Browsers say that they navigate, and older ones that they want HTML most."""
    assert wants_page(asked(headers, method))


@pytest.mark.parametrize(
    "accept",
    [
        IMG_ACCEPT,
        "*/*",
        "",
        "text/*",
        "text/html;q=0, */*",
        "application/json, text/html",
        "text/html;q=0.8, application/json",
        "text/html;q=0.8, application/vnd.api+json;q=0.8",
    ],
)
def test_a_script_does_not_get_the_page(accept: str) -> None:
    """Images, fetches, API clients: nobody there would read it."""
    assert not wants_page(asked({"Accept": accept}))


def test_a_request_without_accept_does_not_get_the_page() -> None:
    """Silence is not a browser."""
    assert not wants_page(asked({}))


@pytest.mark.parametrize(
    "extra",
    [
        {"Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Mode": ""},
        {"Sec-Fetch-Dest": "image"},
        NAVIGATE | {"X-Requested-With": "XMLHttpRequest"},
        NAVIGATE | {"HX-Request": "true"},
        NAVIGATE | {"Sec-Purpose": "prefetch"},
        NAVIGATE | {"Sec-Purpose": "prefetch;prerender"},
        NAVIGATE | {"Purpose": "prefetch"},
    ],
)
def test_what_nobody_sees_never_gets_the_page(extra: dict[str, str]) -> None:
    """Scripted requests and prefetches are refused as such, whatever they accept."""
    assert not wants_page(asked(HTML | extra))


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods_no_person_sends_never_get_the_page(method: str) -> None:
    """Forms and links know GET and POST."""
    assert not wants_page(asked(NAVIGATE | HTML, method))


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({}, "json"),
        ({"Accept": "*/*"}, "json"),
        ({"Accept": "image/png"}, "json"),
        ({"Accept": "application/problem+json"}, "problem"),
        ({"Accept": "application/json, application/problem+json;q=0.5"}, "problem"),
        ({"Accept": "application/problem+json;q=0, application/json"}, "json"),
        ({"Accept": "text/html"}, "html"),
        ({"Accept": "text/html, application/xhtml+xml, */*;q=0.1"}, "html"),
        ({"Accept": "text/html, image/webp"}, "json"),
        ({"Accept": "text/html;q=0"}, "json"),
        ({"Accept": "text/html", "HX-Request": "true"}, "json"),
    ],
)
def test_everyone_else_gets_the_body_they_name(headers: dict[str, str], kind: str) -> None:
    """JSON by default, problem+json by name, HTML for those who name nothing else."""
    assert body_kind(asked(headers)) == kind

"""The limit page as views: the page, its assets, and the lines for robots.txt.

The page needs nothing of the app it stands in: no session, no storage, no hook, no context processor.
So it cannot be bounced by an auth gate, and it comes up when the rest does not.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

from flask import Blueprint, Response, abort, request
from werkzeug.wrappers import Request
from werkzeug.wrappers import Response as BaseResponse

from ..accepted import preferences
from ..settings import Settings
from . import token
from .rendering import View, language_of, render
from .texts import choose
from .token import Ticket

# the types are told, not guessed: nosniff makes a browser drop what a system's table calls otherwise
_TYPES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_ASSETS = {name: (Path(__file__).parent / "static" / name).read_bytes() for name in _TYPES}
_ASSET_MAX_AGE = 3_600
_NAME = "venuelimit"
_TOKEN = "t"
_ROBOTS = "/robots.txt"
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def blueprint(settings: Settings) -> Blueprint:
    """Make the blueprint ``venuelimit`` of one app: ``venuelimit.page`` and ``venuelimit.static``.

    The routes give the page a place in the URL map; requests are answered earlier, by :func:`respond`.
    """
    views = Blueprint(_NAME, __name__, template_folder="templates")

    def page() -> BaseResponse:
        return _page(request, settings)

    views.add_url_rule(settings.page_path, "page", page)
    views.add_url_rule(f"{settings.page_path}/static/<name>", "static", _asset)
    if settings.robots_txt:
        views.add_url_rule(_ROBOTS, "robots", lambda: _robots(request, settings))
    return views


def is_ours(endpoint: str) -> bool:
    """Whether an endpoint is one of :func:`blueprint`'s."""
    return endpoint.startswith(f"{_NAME}.")


def concerns(path: str, settings: Settings) -> bool:
    """Whether a path is the limit page's, one of its assets', or robots.txt where that is served.

    By path alone, on whatever host: no limit touches such a request, whatever its method.
    """
    if path.startswith(settings.page_path):
        rest = path[len(settings.page_path) :]
        return not rest or (rest.startswith("/static/") and rest.removeprefix("/static/") in _ASSETS)
    return path == _ROBOTS and settings.robots_txt


def respond(request: Request, settings: Settings) -> BaseResponse | None:
    """Answer a request that :func:`concerns` the limit page, ahead of the app's own hooks.

    Any method but GET and HEAD is None: routing has the right answer to that.
    """
    if request.method not in ("GET", "HEAD") or not concerns(request.path, settings):
        return None
    if request.path == settings.page_path:
        return _page(request, settings)
    if request.path == _ROBOTS:
        return _robots(request, settings)
    return _asset(request.path.rpartition("/")[2])


def redirect_target(request: Request, settings: Settings, text: str) -> str:
    """Give the relative URL of the limit page, SCRIPT_NAME included, that carries the token ``text``."""
    return f"{page_url(request, settings)}?{urlencode({_TOKEN: text})}"


def inline(
    request: Request, settings: Settings, ticket: Ticket, status: int, wait: int | None
) -> BaseResponse:
    """Show the page as the body of the refusal itself, with the refusal's status.

    :param wait: the seconds of Retry-After, or None.
    """
    return _show(_view(request, settings, ticket, wait, status), status)


def protect(response: BaseResponse) -> None:
    """Set the headers that every rendering of the page has; setting them again does no harm.

    ``no-store``, ``noindex, nofollow``, ``no-referrer``, ``nosniff``, and that it speaks several languages.
    """
    for name, value in _HEADERS.items():
        response.headers[name] = value
    if "*" not in response.vary:
        response.vary.add("Accept-Language")


def robots_txt(url: str) -> str:
    """Give the lines that keep crawlers off the limit page (RFC 9309).

    :param url: where the page lies, SCRIPT_NAME included.
    """
    return f"User-agent: *\nDisallow: {quote(url, safe='/%')}\n"


def _robots(request: Request, settings: Settings) -> BaseResponse:
    return Response(robots_txt(page_url(request, settings)), mimetype="text/plain")


def _page(request: Request, settings: Settings) -> BaseResponse:
    """Visited plainly or when the wait is over: 200. While it lasts: 429, so that scripts end in one."""
    ticket = token.read(settings.salt, _sent_token(request))
    if ticket is None:
        return _show(View(page_url(request, settings), _language(request)), 200)
    wait = ticket.wait()
    response = _show(_view(request, settings, ticket, wait, 429), 200 if wait == 0 else 429)
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


def _sent_token(request: Request) -> str | None:
    try:
        return request.args.get(_TOKEN)
    except UnicodeDecodeError:
        # werkzeug reads a query strictly, and a server may pass on bytes that are no UTF-8 (PEP 3333)
        return None


def _view(request: Request, settings: Settings, ticket: Ticket, wait: int | None, status: int) -> View:
    return View.of(
        ticket,
        wait,
        root=page_url(request, settings),
        status=status,
        language=_language(request),
        jitter=settings.retry_jitter,
    )


def _language(request: Request) -> str:
    return choose(preferences(request.headers.get("Accept-Language", "")))


def _show(view: View, status: int) -> BaseResponse:
    page = render(view)
    response = Response(page, status, mimetype="text/html")
    language = language_of(page)
    if language is not None:
        response.content_language.add(language)
    protect(response)
    return response


def _asset(name: str) -> BaseResponse:
    if name not in _ASSETS:
        abort(404)
    response = Response(_ASSETS[name], mimetype=_TYPES[name])
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.cache_control.public = True
    response.cache_control.max_age = _ASSET_MAX_AGE
    response.add_etag()
    return response.make_conditional(request)


def page_url(request: Request, settings: Settings) -> str:
    """Where the limit page lies, SCRIPT_NAME included, percent-encoded."""
    # exactly one slash in front: a SCRIPT_NAME that came from a header must not name another site
    return quote("/" + (request.root_path.strip("/") + settings.page_path).lstrip("/"))

"""What the limit page says, and which template says it: the app's where it has one, else our own."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

from flask import current_app, render_template
from jinja2 import Environment, FileSystemLoader, TemplateNotFound

from . import way_back as _way_back
from .texts import DEFAULT, in_words, texts
from .token import Ticket

TEMPLATE = "venuelimit/too_many_requests.html"

_logger = logging.getLogger("flask_venuelimit")
_FOLDER = Path(__file__).parent / "templates"
# an environment of our own, so that an app's delimiters, filters and loaders leave the page as it is
_environment = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True, auto_reload=False
)
_LANG = re.compile(r"<html\b[^>]*?\blang\s*=\s*[\"']?([A-Za-z0-9-]+)")
#: The document's first tag is looked for this far in.
_HEAD = 2_000


@dataclass(frozen=True)
class View:
    """What the template is given, each field by its name, with ``wait_words``, ``texts`` and ``in_words``.

    :param root: URL of the page; its assets lie below ``root + "/static/"``.
    :param language: what the reader likes best of the languages in :mod:`flask_venuelimit.page.texts`.
    :param status: 429, or 503 where limits cannot be checked.
    :param limit: the name of the limit that refused, or None on a plain visit.
    :param shared: whether a whole network has used the limit up (True) or one person (False); None where
        that is not known.
    :param message: the limit's own sentence, or None.
    :param wait: whole seconds to wait; 0 when it is over; None on a plain visit and where no wait helps.
    :param spread: up to how many seconds the countdown adds by chance, so that not all who were refused
        together come back together.
    :param way_back: a local path and query that is safe as a link, or None.
    """

    root: str
    language: str = DEFAULT
    status: int = 429
    limit: str | None = None
    shared: bool | None = None
    message: str | None = None
    wait: int | None = None
    spread: int = 0
    way_back: str | None = None

    @classmethod
    def of(
        cls,
        ticket: Ticket,
        wait: int | None,
        *,
        root: str,
        status: int = 429,
        language: str = DEFAULT,
        jitter: float = 0.0,
    ) -> View:
        """Make what is shown to the holder of ``ticket``; the way back is checked once more.

        :param jitter: by how much of itself a wait may grow, ``VENUELIMIT_RETRY_JITTER``.
        """
        back = _way_back.local(ticket.way_back)
        more = spread(wait, jitter) if ticket.shared else 0
        return cls(root, language, status, ticket.limit, ticket.shared, ticket.message, wait, more, back)


def spread(wait: int | None, jitter: float) -> int:
    """Up to how many seconds the countdown of a shared limit adds by chance.

    Retry-After is whole seconds, and has its own share of jitter in it where that comes to a second; then
    the page only spreads people over that second. Shorter waits have none, and are spread over two.
    """
    if not wait or not jitter:
        return 0
    return 1 if wait * jitter >= 1 else 2


def render(view: View) -> str:
    """Render the page. Needs an app context; a request context only where the app overrides it.

    The app's own ``venuelimit/too_many_requests.html`` is rendered as its other templates are. Where
    that fails, the error is logged and our own page is shown: whoever is refused is told so.
    """
    context = {
        **vars(view),
        "wait_words": in_words(view.wait, view.language),
        "texts": texts,
        "in_words": in_words,
    }
    try:
        if _overridden():
            return render_template(TEMPLATE, **context)
    except Exception:
        _logger.exception("The app's own %s failed; the built-in limit page is shown instead.", TEMPLATE)
    return _environment.get_template(TEMPLATE).render(context)


def language_of(page: str) -> str | None:
    """Read what language a page says it is in, or None: an app's own page may be in any."""
    found = _LANG.search(page, 0, _HEAD)
    return found and found[1]


def _overridden() -> bool:
    try:
        found = current_app.jinja_env.get_template(TEMPLATE).filename
    except TemplateNotFound:
        # an app with a loader of its own, which does not look into blueprints
        return False
    return found is None or Path(found) != _FOLDER / TEMPLATE

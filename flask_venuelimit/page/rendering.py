"""What the limit page says, and which template says it: the app's where it has one, else our own."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from pathlib import Path

from flask import current_app, render_template
from jinja2 import Environment, FileSystemLoader, TemplateNotFound

from . import way_back as _way_back
from .token import Ticket

TEMPLATE = "venuelimit/too_many_requests.html"

_logger = logging.getLogger("flask_venuelimit")
_FOLDER = Path(__file__).parent / "templates"
# an environment of our own, so that an app's delimiters, filters and loaders leave the page as it is
_environment = Environment(
    loader=FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
)
_UNITS = ((86_400, "day", 172_800), (3_600, "hour", 7_200), (60, "minute", 120), (1, "second", 0))


@dataclass(frozen=True)
class View:
    """What the template is given, each field by its name.

    :param root: URL of the page; its assets lie below ``root + "/static/"``.
    :param status: 429, or 503 where limits cannot be checked.
    :param limit: the name of the limit that refused, or None on a plain visit.
    :param message: the limit's own sentence, or None.
    :param wait: whole seconds to wait; 0 when it is over; None on a plain visit and where no wait helps.
    :param wait_words: the same in words, "about 2 minutes"; empty where there is nothing to wait for.
    :param way_back: a local path and query that is safe as a link, or None.
    """

    root: str
    status: int = 429
    limit: str | None = None
    message: str | None = None
    wait: int | None = None
    wait_words: str = ""
    way_back: str | None = None

    @classmethod
    def of(cls, ticket: Ticket, wait: int | None, *, root: str, status: int = 429) -> View:
        """Make what is shown to the holder of ``ticket``; the way back is checked once more."""
        back = _way_back.local(ticket.way_back)
        return cls(root, status, ticket.limit, ticket.message, wait, in_words(wait), back)


def in_words(seconds: int | None) -> str:
    """Say a wait as a person would: "1 second", "90 seconds", "about 3 minutes"; never too short."""
    if not seconds:
        return ""
    size, unit, _ = next(row for row in _UNITS if seconds >= row[2])
    count = -(-seconds // size)
    exact = "" if seconds % size == 0 else "about "
    return f"{exact}{count} {unit}{'' if count == 1 else 's'}"


def render(view: View) -> str:
    """Render the page. Needs an app context; a request context only where the app overrides it.

    The app's own ``venuelimit/too_many_requests.html`` is rendered as its other templates are. Where
    that fails, the error is logged and our own page is shown: whoever is refused is told so.
    """
    try:
        if _overridden():
            return render_template(TEMPLATE, **asdict(view))
    except Exception:
        _logger.exception("The app's own %s failed; the built-in limit page is shown instead.", TEMPLATE)
    return _environment.get_template(TEMPLATE).render(asdict(view))


def _overridden() -> bool:
    try:
        found = current_app.jinja_env.get_template(TEMPLATE).filename
    except TemplateNotFound:
        # an app with a loader of its own, which does not look into blueprints
        return False
    return found is None or Path(found) != _FOLDER / TEMPLATE

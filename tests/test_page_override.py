"""An app's own limit page, in its colours and words."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from flask import g
from jinja2 import FileSystemLoader

from tests.refusing import followed, overriding, refusing_app

PAGE = "/too-many-requests"


def test_an_app_changes_a_block() -> None:
    """Its template extends the page and says only what differs."""
    source = '{% extends "venuelimit/limit_page.html" %}{% block heading %}Last orders{% endblock %}'
    page = followed(overriding(source)).text
    assert "<h1>Last orders</h1>" in page
    assert "HTTP 429" in page


def test_an_apps_own_page_has_what_its_templates_have() -> None:
    """Context processors, url_for and the filters of its environment."""
    app = overriding("{{ pub }} {{ url_for('venuelimit.page') }} {{ limit }} {{ way_back }}")
    app.context_processor(lambda: {"pub": "The Limit"})
    assert followed(app).text == f"The Limit {PAGE} join /quiz?round=2"


def test_an_apps_own_page_in_its_template_folder_is_found(tmp_path: Path) -> None:
    """templates/venuelimit/too_many_requests.html is all it takes."""
    file = tmp_path / "templates" / "venuelimit/too_many_requests.html"
    file.parent.mkdir(parents=True)
    file.write_text("mine: {{ limit }}")
    app = refusing_app()
    app.jinja_loader = FileSystemLoader(tmp_path / "templates")
    assert followed(app).text == "mine: join"


@pytest.mark.parametrize("source", ["{{ user.name.first }}", "{% if %}", '{% extends "missing.html" %}'])
def test_where_an_apps_page_fails_ours_is_shown(source: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever is refused is told so; the developer finds the error in the log."""
    with caplog.at_level(logging.ERROR, "flask_venuelimit"):
        response = followed(overriding(source))
    assert response.status_code == 429
    assert "HTTP 429" in response.text
    assert caplog.records[0].exc_info


def test_a_context_processor_that_needs_a_hook_does_not_break_the_page() -> None:
    """The page comes before the hooks that would have set what it reads."""
    app = refusing_app()
    app.context_processor(lambda: {"name": g.user.name})
    assert followed(app).status_code == 429


def test_an_apps_delimiters_leave_our_page_as_it_is() -> None:
    """Our template is read by an environment of its own."""
    app = refusing_app()
    app.jinja_options = {"variable_start_string": "[[", "variable_end_string": "]]"}
    assert "HTTP 429 · join" in followed(app).text


ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "limit-page.md").read_text()
EXTENDS = '{% extends "venuelimit/limit_page.html" %}'


def test_an_app_of_one_language_keeps_the_page_to_it() -> None:
    """One line, and no reader gets half a page in another language."""
    app = overriding(EXTENDS + '{% set language = "en" %}')
    response = followed(app, language="de")
    assert '<html lang="en">' in response.text
    assert "You can go on in <span" in response.text
    assert response.headers["Content-Language"] == "en"


def test_an_app_adds_a_language() -> None:
    """It chooses by the request, says its sentences in blocks, and leaves the others as they are."""
    app = overriding(
        EXTENDS + '{% set language = request.accept_languages.best_match(["da", "de", "en"]) %}'
        '{% block heading %}{{ "Lidt for mange på én gang" if language == "da" else super() }}{% endblock %}'
    )
    danish, german = followed(app, language="da, en;q=0.5"), followed(app, language="de")
    assert "<title>Lidt for mange på én gang (HTTP 429)</title>" in danish.text
    assert danish.headers["Content-Language"] == "da"
    assert "<h1>Zu viele Leute auf einmal aus diesem Netz</h1>" in german.text


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("wait_text", "Back in {{ time }}, promise"),
        ("over_text", "Your table is ready"),
        ("action_text", "Knock again"),
        ("explanation", "The room is full"),
        ("status", "Error 429"),
    ],
)
def test_each_sentence_is_a_block(block: str, said: str) -> None:
    """What is said can be changed without touching what it is said in."""
    app = overriding(f"{EXTENDS}{{% block {block} %}}{said}{{% endblock %}}")
    page = followed(app).text
    assert said.partition("{{")[0] in page
    for part in ("data-limit-wait", "data-limit-time", "data-limit-over", "data-limit-way-back"):
        assert part in page


@pytest.mark.parametrize("source", re.findall(r"```html\+jinja\n(.*?)```", GUIDE, re.DOTALL))
@pytest.mark.parametrize("language", ["en", "de", "da"])
def test_what_the_guide_shows_works(source: str, language: str, caplog: pytest.LogCaptureFixture) -> None:
    """Each of its templates renders as it stands, whoever reads."""
    response = followed(overriding(source), language=language)
    assert caplog.records == []
    assert response.headers["Content-Language"] in source
    assert "HTTP 429" in response.text


def test_the_guide_names_every_block() -> None:
    """And none that is not there."""
    page = ROOT / "flask_venuelimit" / "page" / "templates" / "venuelimit" / "limit_page.html"
    rows = GUIDE.partition("| block | |")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in rows.splitlines() if row.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert named == set(re.findall(r"{% block (\w+)", page.read_text()))

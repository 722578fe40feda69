"""The documentation: it builds, its links lead somewhere, and what it shows can be used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from flask_venuelimit.edges import EDGES
from flask_venuelimit.settings import KNOWN
from tests.fronts.nginx import IN_FOLDER

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def blocks(language: str) -> list[tuple[str, str]]:
    """Every example in a language, and the page it stands on."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [(page.name, text) for page in PAGES for text in fence.findall(page.read_text())]


def test_the_pages_build_without_a_warning(tmp_path: Path) -> None:
    """Sphinx finds nothing to complain of: no broken link, no page that none leads to."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert {page.stem for page in PAGES} <= {page.stem for page in tmp_path.glob("*.html")}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.stem))
def test_what_is_shown_in_python_is_python(page: Path) -> None:
    """Every example can be pasted."""
    shown = [text for name, text in blocks("python") if name == page.name]
    assert all(isinstance(ast.parse(text), ast.Module) for text in shown)


def test_nginx_accepts_what_is_shown_for_it(nginx: str, tmp_path: Path) -> None:
    """The recipes for nginx are a configuration, as they stand."""
    shown = [text for _, text in blocks("nginx")]
    maps = [text for text in shown if text.startswith("map")]
    servers = [
        f"server {{ listen 127.0.0.1:{8080 + n}; {text} }}"
        for n, text in enumerate(shown)
        if text not in maps
    ]
    config = tmp_path / "nginx.conf"
    inside = "".join([IN_FOLDER.format(folder=tmp_path), *maps, *servers])
    config.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {inside} }}")
    command = [nginx, "-t", "-p", str(tmp_path), "-c", str(config), "-e", "stderr"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert len(servers) >= 3
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("setting", sorted(KNOWN))
def test_every_setting_is_written_down(setting: str) -> None:
    """What an app can set stands in the table of settings."""
    assert f"| `{setting}` |" in (DOCS / "settings.md").read_text()


@pytest.mark.parametrize("name", EDGES)
def test_every_known_edge_is_written_down(name: str) -> None:
    """With where it is from and when it was last looked at, where that can change."""
    (row,) = re.findall(rf"^\| `{name}` \|.*$", (DOCS / "addresses.md").read_text(), re.MULTILINE)
    assert EDGES[name].date in row or "RFC" in row

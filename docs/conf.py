"""How Sphinx builds these pages: ``python -m sphinx -W docs docs/_build``."""

from __future__ import annotations

project = "flask-venuelimit"
author = "the flask-venuelimit authors"
copyright = f"2026, {author}"

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = project
# pages link by anchors of their own headings; a link that leads nowhere ends the build under -W
nitpicky = True

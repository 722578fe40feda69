"""A real Chromium against real servers."""

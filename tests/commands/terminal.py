"""What is typed at an app's command line, and what is read there."""

from __future__ import annotations

from typing import NamedTuple

from flask import Flask


class Typed(NamedTuple):
    """How a command ended, and what it printed, complaints included."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        """What was printed, line by line, with single blanks."""
        return [" ".join(line.split()) for line in self.text.splitlines()]


def typed(app: Flask, *words: str) -> Typed:
    """Type ``flask venuelimit ...``; what a command does not expect is raised, not printed."""
    result = app.test_cli_runner().invoke(args=["venuelimit", *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Typed(result.exit_code, result.output)

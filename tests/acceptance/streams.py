"""All sorts of answers a view may give, plain and streamed, and how a caller reads them piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flask import Flask, Response, abort, redirect, send_file, send_from_directory, stream_with_context
from werkzeug.test import TestResponse

from flask_venuelimit import Limit
from tests.acceptance.callers import caller

#: Plain answers by their paths, with their status.
ANSWERS = {
    "plain": 200,
    "json": 200,
    "pieces": 200,
    "nothing": 204,
    "elsewhere": 302,
    "missing": 404,
}
#: Streamed answers by their paths.
STREAMS = ["generator", "context", "file", "directory", "iterator"]


def _parts() -> Iterator[bytes]:
    yield from (b"one", b"two", b"three")


def add_answers(app: Flask, limit: Limit, folder: Path) -> None:
    """Add a view for each sort of answer to an app, each of them under a limit."""
    (folder / "file.bin").write_bytes(b"x" * 30_000)
    views: dict[str, Any] = {
        "plain": lambda: "ok",
        "json": lambda: {"ok": True},
        "pieces": lambda: Response([b"o", b"k"]),
        "nothing": lambda: ("", 204),
        "elsewhere": lambda: redirect("/plain"),
        "missing": lambda: abort(404),
        "generator": lambda: _parts(),
        "context": lambda: Response(stream_with_context(_parts())),
        "file": lambda: send_file(folder / "file.bin"),
        "directory": lambda: send_from_directory(folder, "file.bin"),
        "iterator": lambda: Response(iter([b"one", b"two"]), direct_passthrough=True),
    }
    for name, view in views.items():
        app.add_url_rule(f"/{name}", name, limit(view))


def add_stream(app: Flask, limit: Limit, *parts: Any) -> None:
    """Add ``/stream``, a view under a limit; what stands among its parts and can be called is called then."""

    def body() -> Iterator[bytes]:
        for part in parts:
            if part is not None:
                part()
            yield b"x"

    app.add_url_rule("/stream", "stream", limit(lambda: Response(body())))


def started(app: Flask, path: str) -> TestResponse:
    """An answer whose body has begun and not ended."""
    return caller(app).get(f"/{path}")


def chunks(answer: TestResponse) -> Iterator[bytes]:
    """The body of an answer, piece by piece."""
    for chunk in answer.response:
        yield chunk if isinstance(chunk, bytes) else chunk.encode()

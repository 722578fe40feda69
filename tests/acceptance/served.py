"""An app for real servers, with one request at a time of a download, a body without end, and a crash."""

from __future__ import annotations

import io
from collections.abc import Iterator

from flask import Flask, Response, send_file

from flask_venuelimit import Concurrency, VenueLimit, by_ip

SIZE = 1_000_000

app = Flask("served")
app.config.update(SECRET_KEY="s", VENUELIMIT_STORAGE_URI="memory://")
limiter = VenueLimit(app)
one = limiter.limit(Concurrency(1), name="slots", key=by_ip)


@app.get("/download")
@one
def download() -> Response:
    """Send a file, which servers may pass on in their own way (``wsgi.file_wrapper``)."""
    return send_file(io.BytesIO(b"x" * SIZE), mimetype="application/octet-stream")


@app.get("/endless")
@one
def endless() -> Response:
    """Stream until the caller is gone."""

    def body() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    return Response(body())


@app.get("/crash")
@one
def crash() -> str:
    """Fail before there is an answer."""
    raise LookupError


@app.get("/free")
def free() -> str:
    """Say how many slots are free."""
    return str(one.peek().remaining)

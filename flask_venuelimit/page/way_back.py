"""The way back from the limit page: a path of this very site, or none.

What a refused request asked for is text from a stranger, and a link is where it would do harm (open
redirects: CWE-601). So only what is plainly a local path is taken, when the token is issued and once
more when it is used; anything doubtful means no link, never an error.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from werkzeug.wrappers import Request

MAX_LENGTH = 1_000

#: One leading slash, then printable ASCII without space and backslash: browsers read a backslash as a
#: slash, and drop tabs and line ends, which turns ``/\host`` and ``/<tab>/host`` into another site.
_SHAPE = re.compile(r"/(?!/)[!-\[\]-~]*|/")
_DOUBTFUL = re.compile(r"^//|[\x00-\x1f\x7f-\x9f\\]|(?:^|/)\.\.?(?:/|$)")
#: Something behind us may decode once more than we do; this many layers are looked through.
_LAYERS = 4


def local(text: object) -> str | None:
    """Give ``text`` back if it is a local path (with or without a query) of at most 1,000 characters.

    Percent-encoding hides nothing: a path that has a control character, a backslash, a dot segment or a
    double slash at its start in any of its decodings is none. The query is data, and may hold anything
    that is percent-encoded.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH or not _SHAPE.fullmatch(text):
        return None
    path = text.partition("?")[0].partition("#")[0]
    for _ in range(_LAYERS):
        if _DOUBTFUL.search(path):
            return None
        path, before = unquote(path, errors="replace"), path
        if path == before:
            return text
    return None


def of(request: Request) -> str | None:
    """Give a GET's own path and query as a link, SCRIPT_NAME included; None for any other request."""
    if request.method != "GET":
        return None
    environ = request.environ
    script = environ.get("SCRIPT_NAME", "").rstrip("/")
    # bytes, as the server passed them on (PEP 3333): decoding could lose what is no UTF-8
    path = quote((script + environ.get("PATH_INFO", "") or "/").encode("latin-1"), safe="/!$&'()*+,;=:@")
    query = quote(request.query_string, safe="/!$&'()*+,;=:@?%")
    return local(f"{path}?{query}" if query else path)

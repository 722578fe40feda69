"""The one Lua script, joined from its pieces when it is loaded; the files are the only copy."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

#: In this order: what the rules lean on, the rules, and what drives them.
PIECES = ("prelude", "fixed_window", "sliding_window", "token_bucket", "driver")


class Script(NamedTuple):
    """A script's text, and the SHA-1 by which EVALSHA calls it."""

    text: str
    sha: str


@cache
def load_script() -> Script:
    """Join the pieces.

    Each piece's own names stay its own: it is a block of Lua, save for the prelude's, which all share.
    """
    room = files(__package__) / "rules"
    prelude, *rules, driver = ((room / f"{piece}.lua").read_text("utf-8") for piece in PIECES)
    text = "\n".join([prelude, *(f"do\n{rule}\nend" for rule in rules), driver])
    # SHA-1 is how Redis names scripts; nothing here rests on its strength
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())

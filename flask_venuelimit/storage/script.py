"""The one Lua script, joined from its pieces when it is loaded; the files are the only copy."""

from __future__ import annotations

from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple

#: What the rules lean on; their names are known to all pieces that follow.
SHARED = ("prelude", "bucket", "log")
#: Each a block of Lua, whose own names stay its own.
RULE_PIECES = (
    "fixed_window",
    "sliding_window",
    "sliding_log",
    "token_bucket",
    "leaky_bucket",
    "concurrency",
)
PIECES = (*SHARED, *RULE_PIECES, "driver")


class Script(NamedTuple):
    """A script's text, and the SHA-1 by which EVALSHA calls it."""

    text: str
    sha: str


@cache
def load_script() -> Script:
    """Join the pieces."""
    room = files(__package__) / "rules"
    texts = {piece: (room / f"{piece}.lua").read_text("utf-8") for piece in PIECES}
    blocks = [f"do\n{texts[rule]}\nend" for rule in RULE_PIECES]
    text = "\n".join([*(texts[piece] for piece in SHARED), *blocks, texts["driver"]])
    # SHA-1 is how Redis names scripts; nothing here rests on its strength
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())

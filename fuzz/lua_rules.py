"""Mutates the Lua rules, a token at a time, and has the tests ask a real server: do they notice?

``python fuzz/lua_rules.py [PIECE ...]``, such as ``fixed_window``; by default all pieces, which takes most of
an hour. mutmut does the same for the Python halves. What survives changes nothing that anybody can see, or a
test is missing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
RULES = Path("flask_venuelimit/storage/rules")
TESTS = [
    f"tests/storage/test_{name}.py"
    for name in (
        *("timelines", "clock_back", "refunds", "concurrency", "leaky_bucket", "contract", "redis"),
        *("sliding_log", "rules", "script", "acl", "model"),
    )
]
#: What memory does, and what needs several servers, says nothing of a mutant.
COMMAND = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *TESTS]
COMMAND += ["-k", "not (memory- or cluster or sentinel or forked or spawn or languages)"]
SECONDS = 120
#: Each token, and what it becomes; a whole number becomes the next one.
TOKENS = {
    ">=": ">",
    "<=": "<",
    " > ": " >= ",
    " < ": " <= ",
    "==": "~=",
    "~=": "==",
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " % ": " * ",
    " and ": " or ",
    " or ": " and ",
    "not ": "",
    "true": "false",
    "math.max": "math.min",
    "math.min": "math.max",
    "math.floor": "math.ceil",
    "math.ceil": "math.floor",
    "divide_up": "divide",
}
TOKEN = re.compile("|".join([*map(re.escape, TOKENS), r"(?<![\w.])\d+(?![\w.])"]))


class Mutant(NamedTuple):
    """A text with one token changed, and the line in which it is, as it reads now."""

    text: str
    line: str


def mutants(text: str) -> Iterator[Mutant]:
    """Every text that differs in one token of the code; comments and quoted texts stay as they are."""
    start = 0
    for line in text.splitlines(keepends=True):
        code = line.partition("--")[0]
        quoted = [match.span() for match in re.finditer(r'"[^"]*"', code)]
        for token in TOKEN.finditer(code):
            if not any(first <= token.start() < last for first, last in quoted):
                new = TOKENS.get(token[0]) if token[0] in TOKENS else str(int(token[0]) + 1)
                changed = f"{line[: token.start()]}{new}{line[token.end() :]}"
                yield Mutant(text[:start] + changed + text[start + len(line) :], changed.strip())
        start += len(line)


def passes(folder: Path) -> bool:
    """Whether the tests find nothing amiss; a script that does not end is found."""
    try:
        return subprocess.run(COMMAND, cwd=folder, capture_output=True, timeout=SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def is_noticed(folder: Path, path: Path, mutant: Mutant) -> bool:
    """Whether the tests notice a mutant of the piece at ``path``; one that they do not is printed."""
    path.write_text(mutant.text, "utf-8")
    if not passes(folder):
        return True
    print(f"survives  {path.stem}: {mutant.line}", flush=True)
    return False


def main(pieces: list[str]) -> None:
    """Mutate these pieces in a copy of the project, print what survives, and how many were noticed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "build"))
        if not passes(folder):
            raise SystemExit("The tests fail as it is. Mend that first.")
        for path in sorted((folder / RULES).glob("*.lua")):
            if pieces and path.stem not in pieces:
                continue
            text = path.read_text("utf-8")
            noticed = [is_noticed(folder, path, mutant) for mutant in mutants(text)]
            path.write_text(text, "utf-8")
            print(f"{path.stem}: {sum(noticed)} of {len(noticed)} noticed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

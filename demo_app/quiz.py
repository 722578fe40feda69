"""The questions, and what a text typed by a guest may look like. Knows neither Flask nor the database."""

from __future__ import annotations

import secrets
from typing import NamedTuple

# Without I, L, O, Q, U: read out across a loud room or off a beer mat, they are taken for others.
LETTERS = "ABCDEFGHJKMNPRSTVWXYZ"
CODE_LENGTH = 5
NAME_LENGTH = 24
TITLE_LENGTH = 60
CHOICES = 4


class Question(NamedTuple):
    """A question with its ``CHOICES`` choices, of which the one at index ``right`` is right."""

    text: str
    choices: tuple[str, ...]
    right: int


QUESTIONS = (
    Question("How many pints are in a gallon?", ("4", "6", "8", "10"), 2),
    Question("Which grain is most beer brewed from?", ("Wheat", "Barley", "Rye", "Oats"), 1),
    Question("Which planet has the shortest day?", ("Mercury", "Earth", "Jupiter", "Neptune"), 2),
    Question("Which number is at the top of a dartboard?", ("1", "12", "18", "20"), 3),
    Question("Which HTTP status says “too many requests”?", ("402", "418", "429", "503"), 2),
    Question(
        "What does IPA stand for on a pump clip?",
        ("India Pale Ale", "Irish Porter Ale", "Imperial Pub Ale", "Iced Pale Amber"),
        0,
    ),
)


def new_code() -> str:
    """Draw a game's secret code; there are some four million."""
    return "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))


def read_code(text: str) -> str:
    """Read a code as people type it: any case, spaces anywhere. What is too long is cut."""
    return "".join(text[:40].split()).upper()[: CODE_LENGTH + 1]


def read_line(text: str, longest: int) -> str:
    """Read a name or a title: outer and doubled spaces go.

    :raises ValueError: it is empty, longer than ``longest`` characters, or holds invisible ones; the
        text is fit to be shown to whoever typed it.
    """
    line = " ".join(text.split())
    if not line:
        raise ValueError("It cannot be empty.")
    if len(line) > longest:
        raise ValueError(f"It can have {longest} characters at most.")
    if not line.isprintable():
        raise ValueError("It can only have characters that can be seen.")
    return line

"""What a caller would rather have: ``Accept`` and ``Accept-Language`` (RFC 9110, section 12.5).

Read here, and in linear time, because a refusal has to be cheap whatever is refused: Werkzeug 3.0 takes
exponential time for a quoted text that a stranger leaves open, later releases quadratic for spaces.
"""

from __future__ import annotations

import re

# each character fits in one place only, and a text that is left open ends with the field
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_Q = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def preferences(header: str) -> list[tuple[str, float]]:
    """Read what a field lists, in lower case and without parameters, with the q of each.

    :returns: best first, those of one q in the order written. What has a q that is no number from 0 to 1
        is left out.
    """
    found = []
    for item in _QUOTED.sub("", header).split(","):
        name, *parameters = item.split(";")
        q = _quality(parameters)
        if name.strip() and 0 <= q <= 1:
            found.append((name.strip().lower(), q))
    return sorted(found, key=lambda each: -each[1])


def _quality(parameters: list[str]) -> float:
    """The q among parameters, 1 where there is none, and -1 where it is no number."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            return float(value) if _Q.fullmatch(value.strip()) else -1
    return 1

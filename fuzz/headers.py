"""Fuzz what reads forwarded headers, by coverage, with atheris; see CONTRIBUTING.md.

``python fuzz/headers.py -max_total_time=600 -max_len=8192 build/corpus``
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent.parent))

# Comparisons inside str then guide the search, as those in Python code do.
atheris.enabled_hooks.add("str")
READERS = [f"flask_venuelimit.{name}" for name in ("addresses", "forwarded", "proxies")]
with atheris.instrument_imports(include=READERS):
    from tests.promises import HEADERS, hold

#: Pieces that are hard to find by chance.
PIECES = [
    *(
        "192.0.2.5",
        "198.51.100.7",
        "2001:db8::1",
        "[2001:db8:ffff::1]:443",
        "::ffff:192.0.2.5",
        "0.0.0.0",
        "::",
    ),
    *("for=", "For=", 'for="', '";', "host=", 'by="_x', ":_p", "unknown", "%eth0", "/56"),
    *(",", ", ", ";", '"', "\\", '\\"', "=", " ", "\t", ":", "[", "]", "\x00", "\xa0", "\x85", "\xff"),
]


def text(data: atheris.FuzzedDataProvider) -> str:
    """Text as WSGI gives it (Latin-1), made of pieces or of bytes."""
    if data.ConsumeBool():
        return data.ConsumeBytes(data.ConsumeIntInRange(0, 4096)).decode("latin-1")
    count = data.ConsumeIntInRange(0, 200)
    return "".join(PIECES[data.ConsumeIntInRange(0, len(PIECES) - 1)] for _ in range(count))


def test_one_input(raw: bytes) -> None:
    """Hold every promise for one header and one peer."""
    data = atheris.FuzzedDataProvider(raw)
    header = HEADERS[data.ConsumeIntInRange(0, len(HEADERS) - 1)]
    peer = "192.0.2.10" if data.ConsumeBool() else text(data)
    hold(header, text(data), peer)


if __name__ == "__main__":
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()

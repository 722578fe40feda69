"""Headers as strangers write them: never an error, never a key of junk, never more work than linear."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from flask import Flask
from hypothesis import given, settings
from hypothesis import strategies as st

from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.forwarded import comma_separated, elements
from tests.acceptance.callers import C, caller
from tests.promises import HEADERS, PROXIES, environ, hold

# -- what strangers write ------------------------------------------------------------------------

ADDRESSES = st.one_of(
    st.ip_addresses().map(str),
    st.ip_addresses(v=4).map(lambda address: f"::ffff:{address}"),
    st.sampled_from(["192.0.2.5", "2001:db8:ffff::1", "::ffff:c000:205", "0.0.0.0", "::", "fe80::1%eth0"]),
)
NODES = st.one_of(
    ADDRESSES,
    st.tuples(ADDRESSES, st.integers(0, 99_999)).map(lambda pair: f"{pair[0]}:{pair[1]}"),
    ADDRESSES.map(lambda address: f"[{address}]:443"),
    st.sampled_from(["unknown", "_hidden", "", "192.0.2.5:_port"]),
)
#: A WSGI server hands header fields over as Latin-1 text (PEP 3333).
TEXTS = st.text(st.characters(max_codepoint=255), max_size=30)
PIECES = st.one_of(
    NODES,
    TEXTS,
    st.sampled_from([",", ", ", ";", '"', "\\", '\\"', "=", "for=", 'for="', "host=", " ", "\t"]),
)
VALUES = st.lists(PIECES, max_size=20).map("".join)
PEERS = st.one_of(NODES, TEXTS, st.none(), st.just("192.0.2.10"))


@pytest.mark.parametrize("header", HEADERS)
@given(value=VALUES, peer=PEERS)
def test_every_promise_holds_for_every_header(header: str, value: str, peer: str | None) -> None:
    """Never an exception, never junk for a key; no stranger is heard, and what a proxy appends decides."""
    assert hold(header, value, peer)


@pytest.mark.parametrize("header", HEADERS)
@settings(max_examples=30)
@given(values=st.lists(VALUES, min_size=6, max_size=6), trusted=st.booleans())
def test_no_stranger_s_header_opens_a_new_bucket(header: str, values: list[str], trusted: bool) -> None:
    """Through a whole app: the sixth request of five is refused, whatever the six headers say."""
    app = Flask("venue", template_folder=None, static_folder=None)
    app.config.update(SECRET_KEY="s", VENUELIMIT_FORWARDED_HEADER=header)
    app.config["VENUELIMIT_TRUSTED_PROXIES"] = "192.0.2.0/28" if trusted else ""
    limiter = VenueLimit(app, storage=MemoryStorage())
    app.add_url_rule("/", "home", limiter.limit("5/minute", key=by_ip)(lambda: "ok"))
    (name,) = (name for name in environ(header, "", "") if name != "REMOTE_ADDR")
    stranger = caller(app, C)
    seen = [stranger.get("/", environ_overrides={name: value}).status_code for value in values]
    assert seen == [200] * 5 + [429]


# -- what proxies write --------------------------------------------------------------------------

TOKENS = st.text("abcXYZ019!#$%&'*+-.^_`|~", min_size=1, max_size=8)
NAMES = TOKENS.filter(lambda name: name.lower() != "for")


def quoted(text: str) -> str:
    """A quoted-string (RFC 9110, 5.6.4)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def well_formed(draw: Any) -> tuple[str, str]:
    """An element of Forwarded as RFC 7239 writes it, and the node that it names."""
    node = draw(st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map("[{}]".format), TEXTS))
    pairs = [f"{name}={quoted(value)}" for name, value in draw(st.lists(st.tuples(NAMES, TEXTS), max_size=3))]
    pairs += [f"{name}={value}" for name, value in draw(st.lists(st.tuples(NAMES, TOKENS), max_size=2))]
    pairs.insert(draw(st.integers(0, len(pairs))), f"{draw(st.sampled_from(['for', 'For']))}={quoted(node)}")
    return ";".join(pairs), node


@given(st.lists(well_formed(), min_size=1, max_size=6), st.sampled_from([",", ", ", " ,\t"]))
def test_what_a_proxy_writes_is_read_back(chain: list[tuple[str, str]], comma: str) -> None:
    """Whatever stands in a quoted text, each element's node comes back, the last one first."""
    header = comma.join(element for element, _ in chain)
    assert list(elements(header)) == [node for _, node in reversed(chain)]


@given(chain=st.lists(ADDRESSES, min_size=1, max_size=6), left=VALUES)
def test_both_headers_tell_the_same_client(chain: list[str], left: str) -> None:
    """One chain, written in X-Forwarded-For or in Forwarded, has one client; the left changes nothing."""
    written = {"X-Forwarded-For": ", ".join(chain), "Forwarded": ", ".join(f'for="{a}"' for a in chain)}
    clients = [PROXIES[name].client(environ(name, text, "192.0.2.10")) for name, text in written.items()]
    assert clients[0] == clients[1]
    text = f"{left}, 203.0.113.9, {written['X-Forwarded-For']}"
    longer = PROXIES["X-Forwarded-For"].client(environ("X-Forwarded-For", text, "192.0.2.10"))
    assert longer in (clients[0], "203.0.113.9")


# -- how much work that is -----------------------------------------------------------------------

#: Headers that grow with a number, made to be walked through again and again.
GROWING: dict[str, Callable[[int], str]] = {
    "trusted": lambda n: "192.0.2.5," * n,
    "trusted elements": lambda n: "for=192.0.2.5," * n,
    "commas": lambda n: "," * n,
    "semicolons": lambda n: ";" * n,
    "spaces": lambda n: " " * n + "x",
    "spaced semicolons": lambda n: " ;" * n + "x",
    "spaces in a pair": lambda n: "for=a" + " " * n + "x",
    "quotes": lambda n: '"' * n,
    "quotes and commas": lambda n: '",' * n,
    "open quote": lambda n: 'for="' + "a" * n,
    "backslashes": lambda n: 'for="' + "\\" * n,
    "escapes": lambda n: 'for="' + '\\"' * n + '"',
    "token": lambda n: "a" * n,
    "equals": lambda n: "for=" * n,
    "digits": lambda n: "1" * n,
    "dots": lambda n: "1." * n,
    "colons": lambda n: ":" * n,
    "brackets": lambda n: "[" * n + "]" * n,
    "ports": lambda n: 'for="' + ":_" * n + '"',
    "zones": lambda n: "%" * n,
}
GROWS = pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING)


def steps(header: str, value: str) -> int:
    """How many lines of Python run to find the client, once all that is kept of a header is kept."""
    sent = environ(header, value, "192.0.2.10")
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        # not what runs in between, such as callbacks of the garbage collector
        ours = frame.f_globals.get("__name__", "").startswith(("flask_venuelimit", "ipaddress"))
        count += ours and event == "line"
        return trace

    PROXIES[header].client(sent)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        PROXIES[header].client(sent)
    finally:
        sys.settrace(before)
    return count


@GROWS
@pytest.mark.parametrize("header", HEADERS)
def test_a_header_of_eight_times_the_length_takes_eight_times_the_steps(
    header: str, grow: Callable[[int], str]
) -> None:
    """The work is linear in what has to be read: lines of Python are counted, not seconds."""
    short, long = (steps(header, grow(n)) for n in (200, 1600))
    assert long <= 8 * short + 100


@GROWS
@pytest.mark.parametrize(("header", "client"), [("X-Forwarded-For", C), ("Forwarded", f"for={C}")])
def test_what_lies_left_of_the_client_takes_no_steps(
    header: str, client: str, grow: Callable[[int], str]
) -> None:
    """However long the rest of a header is, reading ends where the client is found."""
    assert steps(header, f"{grow(100_000)}, {client}") == steps(header, f"x, {client}")


def test_no_pattern_runs_away() -> None:
    """Where a quadratic pattern would take hours, two megabytes of each header are read in seconds.

    Steps inside ``re`` cannot be counted, so the system ends a process that has used 60 s of its CPU.
    """
    code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        from tests.test_fuzz import GROWING, HEADERS, PROXIES, environ
        for grow in GROWING.values():
            for header in HEADERS:
                PROXIES[header].client(environ(header, grow({500_000}), "192.0.2.10"))
        print("done")
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert (run.stdout, run.returncode) == ("done\n", 0), run.stderr


@given(VALUES)
def test_no_entry_is_lost_or_made_up(value: str) -> None:
    """Every comma is one boundary of X-Forwarded-For."""
    assert len(list(comma_separated(value))) == value.count(",") + 1

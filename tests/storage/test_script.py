"""The Lua script: its pieces, their contracts, and the arithmetic its doubles allow."""

from __future__ import annotations

import inspect
import re
from fractions import Fraction
from importlib.resources import files
from types import ModuleType
from typing import Any

import pytest
import redis
from hypothesis import example, given
from hypothesis import strategies as st

from flask_venuelimit.storage.rules import (
    RULES,
    Outcome,
    bucket,
    concurrency,
    fixed_window,
    leaky_bucket,
    log,
    sliding_log,
    sliding_window,
    token_bucket,
)
from flask_venuelimit.storage.script import PIECES, load_script
from tests.storage.asking import POLICIES

ROOM = files("flask_venuelimit.storage") / "rules"
MODULES = (fixed_window, sliding_window, sliding_log, token_bucket, leaky_bucket, concurrency)
SAMPLES = {policy.kind: policy for policy in POLICIES}
every_rule = pytest.mark.parametrize("rule", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])


def _lua(rule: ModuleType) -> str:
    return (ROOM / f"{rule.__name__.rpartition('.')[2]}.lua").read_text("utf-8")


def _header(text: str) -> str:
    """The comment a piece opens with."""
    return re.match(r"(?:--.*\n)+", text)[0]  # type: ignore[index]


def _defined(text: str) -> dict[str, list[str]]:
    """The parameters of each function that Lua text defines, by the function's own name."""
    found = re.findall(r"function (?:\w+\.)?(\w+)\(([^)]*)\)", text)
    return {name: parameters.split(", ") for name, parameters in found}


def _promised(comment: str) -> dict[str, list[str]]:
    """The parameters of each function that a comment describes."""
    found = re.findall(r"^--\s+(\w+)\(([^)]*)\)", comment, re.MULTILINE)
    return {name: parameters.split(", ") for name, parameters in found}


def _python(module: ModuleType) -> dict[str, list[str]]:
    """The parameters of each function that a module defines, in their order, by the function's name."""
    own = [function for _, function in inspect.getmembers(module, inspect.isfunction)]
    return {f.__name__: list(inspect.signature(f).parameters) for f in own if f.__module__ == module.__name__}


@every_rule
def test_a_rule_is_the_same_functions_in_both_languages(rule: ModuleType) -> None:
    """The Lua half has the functions of the Python half, with the same parameters in the same order."""
    assert _defined(_lua(rule)) == _python(rule)


@pytest.mark.parametrize("shared", [bucket, log], ids=["bucket", "log"])
def test_what_rules_share_is_the_same_in_both_languages(shared: ModuleType) -> None:
    """What two rules lean on has in Lua every function that it has in Python."""
    python, lua = _python(shared), _defined(_lua(shared))
    assert {name: lua.get(name) for name in python} == python


@every_rule
def test_a_contract_holds_of_the_code(rule: ModuleType) -> None:
    """Each piece opens with a contract that names the parameters of its rule's functions as the code does."""
    promised, defined = _promised(_header(_lua(rule))), _defined(_lua(rule))
    functions = [name for name in ("take", "give_back", "renew") if name in defined]
    assert promised == {name: defined[name] for name in functions}


@every_rule
def test_a_contract_describes_every_parameter(rule: ModuleType) -> None:
    """Each parameter of take has a line that says what it is and in which unit."""
    header = _header(_lua(rule))
    described = set(re.findall(r"^--   (\w+)\s{2,}\S", header, re.MULTILINE))
    assert set(_promised(header)["take"]) | {"token", "returns"} <= described
    assert "Sets no expiry" in header.replace("\n-- ", " ")


@every_rule
def test_a_contract_names_the_returns_in_order(rule: ModuleType) -> None:
    """What take returns is the fields of Outcome, in their order."""
    text = re.search(r"returns(.*?)\n--\n", _header(_lua(rule)), re.DOTALL)
    assert text is not None
    named = re.findall(r"\b(" + "|".join(Outcome._fields) + r")\b", re.sub(r"\([^)]*\)", "", text[1]))
    assert tuple(named) == Outcome._fields


def test_every_helper_says_what_it_takes() -> None:
    """Each function of the prelude and each step of a rule has a line above it that names its parameters."""
    for piece in PIECES[:-1]:
        text = (ROOM / f"{piece}.lua").read_text("utf-8")
        local = re.findall(r"((?:^--.*\n)*)^local function (\w+)\(([^)]*)\)", text, re.MULTILINE)
        for comment, name, parameters in local:
            assert f"-- {name}({parameters}) -> " in comment, (piece, name)


@pytest.mark.parametrize("kind", RULES)
def test_a_policy_gives_the_numbers_its_rule_takes(kind: str) -> None:
    """The numbers of a policy are as many as its rule has parameters for, in both languages."""
    rule, numbers = RULES[kind], SAMPLES[kind].numbers
    assert len(inspect.signature(rule.take).parameters) == 4 + len(numbers)
    assert len(inspect.signature(rule.give_back).parameters) == 4 + len(numbers)
    lua = _lua(inspect.getmodule(rule.take))  # type: ignore[arg-type]
    assert re.findall(r"numbers = (\d+)", lua) == [str(len(numbers))]
    assert f'rules["{kind}"]' in lua


def test_no_piece_is_left_out() -> None:
    """Every Lua file of the package is part of the script, once."""
    names = {entry.name.removesuffix(".lua") for entry in ROOM.iterdir() if entry.name.endswith(".lua")}
    assert names == set(PIECES)
    assert len(PIECES) == len(set(PIECES))


def test_the_script_has_the_name_redis_gives_it(valkey_client: redis.Redis) -> None:
    """The SHA-1 computed here is the one the server computes."""
    script = load_script()
    assert valkey_client.script_load(script.text) in (script.sha, script.sha.encode())


@pytest.fixture(scope="module")
def divide(valkey: Any) -> Any:
    """The prelude's division, called on a real server."""
    prelude = (ROOM / "prelude.lua").read_text("utf-8")
    call = "\nlocal q, r = divide(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))"
    client = valkey.client()

    def answer(a: int, b: int, c: int) -> tuple[int, ...]:
        text = client.eval(f"{prelude}{call}\nreturn whole(q) .. ' ' .. whole(r)", 0, a, b, c)
        return tuple(map(int, text.split()))

    yield answer
    client.close()


LARGE = 10**15 - 1
LONG = 18_262 * 86_400 * 10**6


@given(
    a=st.integers(0, LARGE) | st.integers(0, LONG),
    c=st.integers(1, LONG) | st.integers(1, 1000),
    share=st.fractions(0, 1),
)
@example(a=LARGE, c=LONG, share=1)
@example(a=LONG, c=LARGE, share=1)
@example(a=2**52, c=1, share=1)
@example(a=LARGE, c=LONG - 1, share=1)
# of which a digit of the long division leaves no bit to spare
@example(a=937_147_222_233_531, c=LONG - 17, share=Fraction(1_200_289_163_755_329, LONG - 17))
def test_lua_divides_exactly(divide: Any, a: int, c: int, share: Any) -> None:
    """The largest limits and longest windows are multiplied and divided to the last unit."""
    b = int(c * share)
    assert divide(a, b, c) == divmod(a * b, c)

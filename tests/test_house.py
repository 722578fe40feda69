"""The rules of the house: what the tree itself has to keep, whatever the code does."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from email.parser import Parser
from graphlib import TopologicalSorter
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatchling.builders.wheel import WheelBuilder

import flask_venuelimit

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "flask_venuelimit"
TESTS = ROOT / "tests"
NOT_OURS = re.compile(r"__pycache__|_?build|dist|instance|mutants|\.(?!ci$|gitignore$).*|.*\.egg-info")

# fmt: off
PUBLIC = [
    "VenueLimit", "Limit", "Decision", "Subject", "Key", "Stage",
    "by_identity", "by_participant", "by_user", "by_ip", "by_bearer",
    "FixedWindow", "SlidingWindow", "SlidingLog", "TokenBucket", "LeakyBucket", "Concurrency",
    "MemoryStorage", "RedisStorage", "RateLimited", "LimiterUnavailable", "ConfigurationError",
    "limit_refused", "storage_failed", "storage_recovered", "capacity_reached",
]
FLASK_FREE = [
    "addresses", "forwarded", "proxies", "edges", "quantities", "policy", "policies", "decisions", "headers",
    "errors", "storage",
]
# fmt: on
OPTIONAL = {"asgiref", "flask_login", "prometheus_client"}


def files(folder: Path, pattern: str = "*") -> list[Path]:
    """List the files below ``folder`` that belong to the project."""
    found = sorted(path for path in folder.rglob(pattern) if path.is_file())
    return [path for path in found if not any(map(NOT_OURS.fullmatch, path.relative_to(ROOT).parts))]


def imports(tree: ast.AST) -> Iterator[str]:
    """Name the top-level packages that ``tree`` imports, its own aside."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").split(".")[0]


def rooms(path: Path) -> set[str]:
    """Name the rooms of the package that a file leans on: its top-level files and folders."""
    found = set()
    # what is imported for types alone stands deeper, and leads nowhere
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            inside = path.relative_to(PACKAGE).parts[: -node.level]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            found |= {(*inside, *name.split("."))[0] for name in names}
    return found


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Walk all functions and methods of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function, its docstring aside."""
    first = function.body[0]
    docstring = (first.end_lineno or 0) - first.lineno + 1 if ast.get_docstring(function) else 0
    return (function.end_lineno or 0) - function.lineno + 1 - docstring


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZipFile]:
    """The wheel, built as it is for release, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    with ZipFile(path) as archive:
        yield archive


def test_the_public_names_are_the_promised_ones() -> None:
    """What flask_venuelimit exports is what its documentation promises, and all of it is there."""
    assert sorted(flask_venuelimit.__all__) == sorted(PUBLIC)
    assert [name for name in PUBLIC if not hasattr(flask_venuelimit, name)] == []


def test_the_wheel_holds_the_package_and_nothing_else(wheel: ZipFile) -> None:
    """Every file of the package is in the wheel, and no demo, test or tool is."""
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert shipped == {path.relative_to(ROOT).as_posix() for path in files(PACKAGE)}


@pytest.mark.parametrize("what", ["py.typed", "*.lua", "templates/*.html", "static/*.css", "static/*.js"])
def test_the_wheel_holds_what_is_no_python(wheel: ZipFile, what: str) -> None:
    """Types, scripts, templates and static files come along with the code."""
    assert [name for name in wheel.namelist() if Path(name).match(what.replace("templates/", "venuelimit/"))]


def test_the_wheel_works_without_the_source(wheel: ZipFile, tmp_path: Path) -> None:
    """An app on the unpacked wheel alone answers with the limit page."""
    wheel.extractall(tmp_path / "wheel")
    code = (
        "import flask, flask_venuelimit as v; app = flask.Flask('elsewhere'); v.VenueLimit().init_app(app);"
        "print(v.__file__, app.test_client().get('/too-many-requests').status_code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "wheel")},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert run.stdout.decode().split() == [str(tmp_path / "wheel/flask_venuelimit/__init__.py"), "200"]


def test_four_packages_are_needed_at_run_time(wheel: ZipFile) -> None:
    """Whoever installs the extension gets Flask, redis-py, itsdangerous and Jinja2, and nothing more."""
    (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    needs = Parser().parsestr(wheel.read(name).decode()).get_all("Requires-Dist") or []
    always = [re.split(r"[^\w-]", need)[0] for need in needs if "extra ==" not in need]
    assert sorted(always) == ["flask", "itsdangerous", "jinja2", "redis"]


@pytest.mark.parametrize("room", FLASK_FREE)
def test_some_rooms_know_no_flask(room: str) -> None:
    """Addresses, policies, decisions, headers and stores can be read alone: they lean on each other only."""
    inside = files(PACKAGE / room, "*.py") or [PACKAGE / f"{room}.py"]
    found = {name for path in inside for name in imports(ast.parse(path.read_text()))}
    assert found.isdisjoint({"flask", "werkzeug"})
    assert set().union(*map(rooms, inside)) <= set(FLASK_FREE)


def test_no_room_leads_back() -> None:
    """A request walks one way: what a room leans on never leans on that room, however far off."""
    graph: dict[str, set[str]] = {}
    for path in files(PACKAGE, "*.py"):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        graph[room] = graph.get(room, set()) | rooms(path) - {room}
    assert set(TopologicalSorter(graph).static_order()) == set(graph)


def test_imports_stand_at_the_top() -> None:
    """Only what is optional is imported inside a function."""
    found = {
        f"{path.name}: {name}"
        for path in files(PACKAGE, "*.py")
        for function in functions(path)
        for name in imports(function)
        if name not in OPTIONAL
    }
    assert found == set()


def test_each_lua_file_opens_with_its_contract() -> None:
    """A Lua file says first what it is given and what it gives back."""
    scripts = files(PACKAGE, "*.lua")
    assert scripts
    assert [path.name for path in scripts if not path.read_text().startswith("-- ")] == []


def test_files_and_functions_stay_short() -> None:
    """No file of the package has more than 300 lines, and no function more than 40."""
    modules = files(PACKAGE, "*.py")
    assert [path.name for path in modules if path.read_text().count("\n") > 300] == []
    assert [f"{path.name}: {f.name}" for path in modules for f in functions(path) if length(f) > 40] == []


def test_each_test_says_what_it_shows() -> None:
    """Every test has a docstring that is a sentence."""
    silent = [
        f"{path.name}: {function.name}"
        for path in files(TESTS, "test_*.py")
        for function in functions(path)
        if function.name.startswith("test_") and not (ast.get_docstring(function) or "").endswith(".")
    ]
    assert silent == []


def test_no_test_sleeps() -> None:
    """Tests move a clock, or wait for a condition with a deadline."""
    assert [path.name for path in files(TESTS, "*.py") if re.search(r"\bsleep\(", path.read_text())] == []


def test_nothing_depends_on_one_machine() -> None:
    """No file names a folder of the machine it was written on."""
    homes = re.compile(r"(?<![\w.])/(root|home|Users)/\w|" + re.escape(f"{ROOT}/"))
    texts = {path: path.read_bytes().decode(errors="replace") for path in files(ROOT)}
    assert [str(path.relative_to(ROOT)) for path, text in texts.items() if homes.search(text)] == []

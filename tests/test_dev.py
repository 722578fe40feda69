"""dev.py: the two commands of README, run on a project whose Python only notes what it was asked to do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dev import is_root_on_debian

DEV = Path(__file__).parent.parent / "dev.py"
# Notes its arguments and the storage, fails where the test says so, and finds no $MISSING.
NOTING_PYTHON = """#!/bin/sh
echo "$@ [$FLASK_VENUELIMIT_STORAGE_URI]" >> "$NOTES"
case "$*" in $FAILING) exit 7;; *"--missing") printf "$MISSING";; esac
"""
CHECKS = ["-m ruff check", "-m ruff format --check", "-m mypy", "-m pytest"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with dev.py, a pyproject.toml and a .venv that seems to be in order."""
    shutil.copy(DEV, tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]")
    python = tmp_path / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(NOTING_PYTHON)
    python.chmod(0o755)
    return tmp_path


@pytest.fixture
def run(project: Path) -> Run:
    """Run dev.py there, with further environment variables as keywords."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "NOTES": str(project / "notes"),
            "FAILING": "nothing",
            "MISSING": "",
            **variables,
        }
        command = [sys.executable, str(project / "dev.py"), *arguments]
        return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)

    return run


def noted(project: Path, word: str = "") -> list[str]:
    """What the Python in .venv was asked to do, as far as it holds ``word``; then forget it."""
    notes = project / "notes"
    lines = notes.read_text().splitlines()
    notes.unlink()
    return [line for line in lines if word in line]


def test_without_a_command_it_says_what_there_is(run: Run) -> None:
    """A bare dev.py prints both commands and exits 2, as for any unknown one."""
    for arguments in ([], ["dmeo"]):
        shown = run(*arguments)
        assert shown.returncode == 2
        assert "dev.py demo [--port PORT]" in shown.stdout


def test_every_check_runs(run: Run, project: Path) -> None:
    """`dev.py test` runs ruff twice, mypy and pytest, in this order."""
    assert run("test").returncode == 0
    assert [line.removesuffix(" []") for line in noted(project)][-4:] == CHECKS


@pytest.mark.parametrize("failing", CHECKS)
def test_a_failing_check_stops_no_other(run: Run, project: Path, failing: str) -> None:
    """All checks run although one fails, and its exit code is the command's."""
    assert run("test", FAILING=failing).returncode == 7
    assert [line.removesuffix(" []") for line in noted(project)][-4:] == CHECKS


def test_arguments_are_pytests(run: Run, project: Path) -> None:
    """With arguments only pytest runs, and gets them as they are."""
    run("test", "-x", "tests/test_dev.py", "-k", "a or b")
    assert noted(project, "-m ")[-1] == "-m pytest -x tests/test_dev.py -k a or b []"
    assert [line for line in run("test", "-x").stdout.splitlines() if "ruff" in line] == []


def test_the_project_is_installed_once(run: Run, project: Path) -> None:
    """pip runs at the first command, and again only when pyproject.toml has changed."""
    run("test")
    assert len(noted(project, "pip --quiet")) == 1
    run("test")
    run("demo")
    assert noted(project, "pip --quiet") == []
    (project / "pyproject.toml").write_text("[project] # changed")
    run("test")
    assert len(noted(project, "install --editable .[test]")) == 1


def test_a_failed_installation_ends_it(run: Run, project: Path) -> None:
    """Where pip fails nothing else runs, and the next command asks pip again."""
    failed = run("test", FAILING="*pip*install*")
    assert (failed.returncode, noted(project, "ruff")) == (7, [])
    run("test")
    assert len(noted(project, "pip --quiet")) == 1


def test_a_missing_browser_stops_nothing(run: Run, project: Path) -> None:
    """Where neither apt-get nor Playwright brings a browser, the checks run all the same."""
    (project / "apt-get").symlink_to(project / ".venv/bin/python")
    shown = run("test", MISSING="Chromium", PATH=f"{project}:{os.environ['PATH']}")
    assert (shown.returncode, len(noted(project, "-m playwright install chromium"))) == (0, 1)
    assert "still without Chromium: the tests that need it will say how to get it" in shown.stdout


def test_debian_brings_what_is_missing(run: Run, project: Path) -> None:
    """Root on Debian gets browser and nginx from apt-get; without that, nginx is only said to be missing."""
    (project / "apt-get").symlink_to(project / ".venv/bin/python")
    run("test", MISSING="Chromium\nnginx", PATH=f"{project}:{os.environ['PATH']}")
    installed = [line.split("=120 ")[-1].removesuffix(" []") for line in noted(project, "--no-install")]
    assert installed == (["install --yes --no-install-recommends chromium nginx"] * is_root_on_debian())


def test_the_demo_counts_in_memory(run: Run, project: Path) -> None:
    """`dev.py demo` serves the pub quiz with its limits on, and says where."""
    shown = run("demo", "--port", "5001", "--debug")
    assert noted(project)[-1] == "-m flask --app demo_app run --port 5001 --debug [memory://]"
    assert "http://127.0.0.1:5001 (counting in memory://)" in shown.stdout


@pytest.mark.parametrize("uri", ["redis://localhost", ""])
def test_a_storage_from_outside_wins(run: Run, project: Path, uri: str) -> None:
    """A storage address that is set already is kept, and an empty one turns the limits off."""
    shown = run("demo", FLASK_VENUELIMIT_STORAGE_URI=uri)
    assert noted(project)[-1] == f"-m flask --app demo_app run --port 5000 [{uri}]"
    assert (uri or "limits are off") in shown.stdout


def test_a_broken_environment_is_made_anew(run: Run, project: Path) -> None:
    """A .venv whose interpreter is gone is replaced by one that works."""
    python = project / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python")
    run("demo", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert subprocess.check_output([python, "-c", "print(6 * 7)"]) == b"42\n"

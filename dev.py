#!/usr/bin/env python3
"""The project's two commands, on nothing but Python: ``python3 dev.py demo`` and ``python3 dev.py test``.

Both work in a virtual environment of their own, ``.venv``, which they make and keep up to date.
"""

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

# Up here, as older Pythons do not get past the annotations below.
if sys.version_info < (3, 10):  # noqa: UP036 -- any python3 may be asked to run this file
    sys.exit(
        "This needs Python 3.10 or newer; {} is {}.{}. Run it with a newer one, such as "
        "'python3.12 dev.py'.".format(sys.executable, *sys.version_info[:2])
    )

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = str(VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
STORAGE = "FLASK_VENUELIMIT_STORAGE_URI"

USAGE = """\
usage: python3 dev.py demo [--port PORT] [OPTION OF 'flask run' ...]
       python3 dev.py test [ARGUMENT OF PYTEST ...]

demo  runs the pub quiz, limits on, and prints its address
test  runs ruff, mypy and pytest; with arguments only pytest, which gets them
"""

#: What pip cannot install, by its name in tests/parts.py: the package in Debian.
PACKAGES = {"Chromium": "chromium", "nginx": "nginx", "curl": "curl"}


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    commands = {"demo": demo, "test": test}
    if not arguments or arguments[0] not in commands:
        print(USAGE, end="")
        return 0 if arguments in (["-h"], ["--help"]) else 2
    check_python()
    os.chdir(ROOT)
    try:
        return commands[arguments[0]](arguments[1:])
    except subprocess.CalledProcessError as failed:
        say(f"failed: {' '.join(failed.cmd)}")
        return failed.returncode
    except KeyboardInterrupt:
        return 130


def demo(arguments: list[str]) -> int:
    """Run the pub quiz until it is stopped."""
    parser = argparse.ArgumentParser(prog="dev.py demo", usage=USAGE)
    parser.add_argument("--port", default="5000")
    options, others = parser.parse_known_args(arguments)
    install("demo")
    # A value from outside counts, an empty one too: that is the demo without limits.
    uri = os.environ.setdefault(STORAGE, "memory://")
    say(f"the pub quiz: http://127.0.0.1:{options.port} (counting in {uri or 'no storage: limits are off'})")
    # In place of this process, so that whoever stops it stops the server.
    command = [PYTHON, "-m", "flask", "--app", "demo_app", "run", "--port", options.port, *others]
    os.execv(PYTHON, command)


def test(arguments: list[str]) -> int:
    """Run every check, or only pytest where it is given arguments; return the first failure's exit code."""
    install("test")
    fetch_parts()
    checks = [
        ["ruff", "check"],
        ["ruff", "format", "--check"],
        ["mypy"],
        ["pytest"],
    ]
    if arguments:
        checks = [["pytest", *arguments]]
    codes = []
    for check in checks:
        say(" ".join(check))
        codes.append(subprocess.call([PYTHON, "-m", *check]))
    return next(filter(None, codes), 0)


def check_python() -> None:
    """Stop with a sentence that helps where this Python cannot make virtual environments."""
    for module in ("venv", "ensurepip"):
        if importlib.util.find_spec(module) is None:
            sys.exit(
                f"This Python cannot make virtual environments: its module {module} is missing. "
                "On Debian and Ubuntu, run 'apt-get install python3-venv'; elsewhere, install a whole Python."
            )


def install(extra: str) -> None:
    """Have the project and one of its extras in .venv, as pyproject.toml says now."""
    digest = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if not works(PYTHON):
        say("making .venv")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    # The extra "test" includes all that "demo" does.
    stamps = [VENV / f".installed-{name}" for name in (extra, "test")]
    if any(stamp.exists() and stamp.read_text() == digest for stamp in stamps):
        return
    say(f"installing the project with its extra [{extra}] into .venv")
    pip = [PYTHON, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--editable", f".[{extra}]"], check=True)
    stamps[0].write_text(digest)


def works(python: str) -> bool:
    """Whether this interpreter is there, new enough and has pip: .venv may link to one long gone."""
    code = "import pip, sys; sys.exit(sys.version_info < (3, 10))"
    return Path(python).exists() and subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0


def fetch_parts() -> None:
    """Get the browser, the nginx and the curl that tests use where they are missing and can be had.

    What cannot be had is no failure: the tests that need it skip and say how to get it.
    """
    wanted = missing_parts()
    packages = [PACKAGES[name] for name in wanted if name in PACKAGES]
    if packages and is_root_on_debian():
        apt_get(packages)
        wanted = missing_parts()
    if "Chromium" in wanted:
        say("downloading Chromium with Playwright")
        environment = {"PLAYWRIGHT_DOWNLOAD_CONNECTION_TIMEOUT": "10000", **os.environ}
        command = [PYTHON, "-m", "playwright", "install", "chromium"]
        subprocess.call(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = missing_parts()
    for name in wanted:
        say(f"still without {name}: the tests that need it will say how to get it")


def apt_get(packages: list[str]) -> None:
    """Install Debian packages; a failure shows in what is missing afterwards."""
    say(f"installing {' and '.join(packages)} with apt-get")
    quiet = ["apt-get", "--quiet", "--quiet", "--option", "DPkg::Lock::Timeout=120"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
        subprocess.call([*quiet, *step], env=environment, stdout=subprocess.DEVNULL)


def missing_parts() -> list[str]:
    """Name what tests/parts.py does not find."""
    command = [PYTHON, "-m", "tests.parts", "--missing"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def is_root_on_debian() -> bool:
    """Whether apt-get works here, and its chromium is a real one: Ubuntu's needs a running snapd."""
    release = Path("/etc/os-release")
    is_debian = release.exists() and "ID=debian" in release.read_text().splitlines()
    return is_debian and os.geteuid() == 0 and shutil.which("apt-get") is not None


def say(text: str) -> None:
    """Print one line about the step that begins."""
    print(f"-- {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Real servers for tests: a Redis or Valkey process, a Flask app on a real port, or one in gunicorn."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import redis
from flask import Flask
from redis.backoff import NoBackoff
from redis.retry import Retry
from werkzeug.serving import make_server

from tests.parts import SERVER, require

# Ends the server once the pipe on its input closes, which it does however the tests end.
_WATCHER = 'read -r _; kill -9 "$1" 2>/dev/null; rm -rf "$2"'
#: The tenth of a second an app gives a server is too short on a machine that runs other tests.
_PATIENCE = "?socket_timeout=10&socket_connect_timeout=10"
#: For clients of a server that is down: by default redis-py asks for seconds.
TRY_ONCE = Retry(NoBackoff(), 0)

_ROOT = Path(__file__).parent.parent


class StoreServer:
    """One standalone store server, on a port and a unix socket of its own, that dies with its parent.

    Use it as a context manager, or call :meth:`start` and :meth:`stop`. After :meth:`kill`,
    :meth:`start` brings it back, empty, at the same addresses.

    :param arguments: further arguments of the server, such as ``"--maxmemory", "2mb"``.
    :param port: the port to listen on; a free one by default.
    """

    def __init__(self, *arguments: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self._arguments = arguments
        # Not pytest's tmp_path: a socket's path may have no more than about 100 characters.
        self._folder = tempfile.mkdtemp(prefix="store-")
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The address over TCP, as VENUELIMIT_STORAGE_URI takes it, with time enough for a busy machine."""
        return self.hasty_url + _PATIENCE

    @property
    def hasty_url(self) -> str:
        """The same with the time-outs an app has: for tests of a server that does not answer."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_path(self) -> str:
        """Where the unix socket lies."""
        return f"{self._folder}/s.sock"

    @property
    def unix_url(self) -> str:
        """The address over the unix socket, as VENUELIMIT_STORAGE_URI takes it."""
        return f"unix://{self.socket_path}{_PATIENCE}"

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def __enter__(self) -> StoreServer:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self, seconds: float = 10.0) -> StoreServer:
        """Start the process and wait until it answers, at most ``seconds``."""
        log = Path(self._folder, "log")
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self._watcher = subprocess.Popen(
            ["sh", "-c", _WATCHER, "sh", str(self._process.pid), self._folder], stdin=subprocess.PIPE
        )
        process = self._process
        wait_until(lambda: self._answers() or process.poll() is not None, seconds, what="the server answers")
        if process.poll() is not None:
            self.kill()
            raise RuntimeError(f"{self._command()} ended by itself:\n{log.read_text()[-2000:]}")
        return self

    def client(self, **options: Any) -> redis.Redis:
        """Make a redis-py client that tries once; ``options`` are redis-py's own."""
        return redis.Redis(port=self.port, **{"retry": TRY_ONCE, **options})

    def kill(self) -> None:
        """End the process as a crash does: connections are reset, new ones refused."""
        for process in (self._watcher, self._process):
            if process is not None:
                process.kill()
                process.wait()
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.close()
        self._process = self._watcher = None

    def pause(self) -> None:
        """Stop the process where it stands: it accepts connections and never answers."""
        assert self._process is not None, "the server is not running"
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        assert self._process is not None, "the server is not running"
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End the process and remove its files; the server cannot be started again."""
        self.kill()
        shutil.rmtree(self._folder)

    def _command(self) -> list[str]:
        fixed = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self._folder]
        where = ["--port", str(self.port), "--unixsocket", self.socket_path]
        return [require(SERVER), *where, *fixed, *self._arguments]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 0.2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(5) == b"+PONG"
        except OSError:
            return False


def free_port() -> int:
    """Find a port nobody listens on, below the ones that outgoing connections are given."""
    for _ in range(200):
        port = random.randint(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between 20000 and 32000")


def wait_until(condition: Callable[[], object], seconds: float = 10.0, *, what: str = "") -> None:
    """Wait for ``condition`` to be true, and fail after ``seconds``.

    For what another process or thread does. Time itself is moved with a ManualClock.
    """
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s in vain until {what or 'the condition held'}")
        pause.wait(0.005)


@contextmanager
def run_app(app: Flask, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve ``app`` in a thread on a free port, and give its address, such as ``http://127.0.0.1:40123``."""
    server = make_server(host, 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="run_app", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Served(NamedTuple):
    """A server process that can be reached.

    :param address: ``127.0.0.1:40123``, or ``unix:`` and a path.
    :param log: what the process has printed so far.
    """

    address: str
    log: Path


@contextmanager
def run_process(command: Sequence[str], address: str, folder: str, **environment: str) -> Iterator[Served]:
    """Run a server with all its workers, which dies with its parent, and wait until it can be reached.

    :param command: what to run, from the project's root.
    :param address: where it will listen: a host and port, or ``unix:`` and a path.
    :param folder: holds its log; it is removed if the tests end before they clean up.
    """
    log = Path(folder, "log")
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": str(_ROOT), **environment},
            start_new_session=True,
        )
    # a minus in front names the process with its workers
    watcher = subprocess.Popen(["sh", "-c", _WATCHER, "sh", f"-{process.pid}", folder], stdin=subprocess.PIPE)
    try:
        wait_until(lambda: _accepts(address) or process.poll() is not None, 30, what=f"{address} accepts")
        if process.poll() is not None:
            raise RuntimeError(f"{command} ended by itself:\n{log.read_text()[-2000:]}")
        yield Served(address, log)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        watcher.kill()
        watcher.communicate()


@contextmanager
def run_gunicorn(
    app: str, *options: str, worker: str = "sync", unix: bool = False, **environment: str
) -> Iterator[Served]:
    """Serve an app by gunicorn, with one worker unless ``options`` say otherwise.

    :param app: as gunicorn is told it: ``module:name``, or ``module:factory()``.
    :param options: further options of gunicorn, such as ``"--workers", "2"``.
    :param worker: ``sync``, ``gthread`` or ``gevent``.
    :param unix: listen on a unix socket instead of a port.
    """
    with tempfile.TemporaryDirectory(prefix="gunicorn-") as folder:
        address = f"unix:{folder}/s.sock" if unix else f"127.0.0.1:{free_port()}"
        command = [
            sys.executable,
            "-m",
            "gunicorn",
            "--bind",
            address,
            "--worker-class",
            worker,
            *options,
            app,
        ]
        with run_process(command, address, folder, **environment) as served:
            yield served


def connect(address: str, source: str = "127.0.0.1") -> socket.socket:
    """Connect to a server, over TCP from the address ``source``.

    :param address: a host and port, or ``unix:`` and a path.
    """
    host, _, port = address.rpartition(":")
    if host != "unix":
        return socket.create_connection((host, int(port)), 10, source_address=(source, 0))
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    try:
        connection.connect(port)
    except OSError:
        connection.close()
        raise
    return connection


def _accepts(address: str) -> bool:
    try:
        connect(address).close()
    except OSError:
        return False
    return True

"""Metrics of several processes, which prometheus_client adds up from files that each of them writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from prometheus_client.samples import Sample

from tests.observing.scraping import samples, values
from tests.servers import Served, StoreServer, run_gunicorn, wait_until

VENUE = "tests.observing.venue"


@pytest.fixture(params=["forked", "preloaded"])
def served(request: pytest.FixtureRequest, tmp_path: Path, valkey: StoreServer) -> Iterator[Served]:
    """The app in three workers, each of which loads it, or all of which are forked from one that did."""
    with valkey.client() as client:
        client.flushall()
    preload = ["--preload"] if request.param == "preloaded" else []
    with run_gunicorn(
        f"{VENUE}:application",
        *("--workers", "3", "--config", f"python:{VENUE}", *preload),
        FLASK_SECRET_KEY="s",
        FLASK_VENUELIMIT_STORAGE_URI=valkey.url,
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path),
    ) as served:
        yield served


def ask(served: Served, path: str) -> tuple[int, str]:
    """The status and body of an answer."""
    try:
        with urlopen(f"http://{served.address}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scraped(served: Served) -> list[Sample]:
    """What whichever worker answers says of all of them."""
    return samples(ask(served, "/metrics")[1])


def test_workers_are_counted_together(served: Served) -> None:
    """Whichever worker decided, and whichever is asked."""
    answers: list[str] = []

    def two_answered() -> bool:
        answers.append(ask(served, "/")[1])
        return len(set(answers)) > 1

    wait_until(two_answered, what="two workers have answered")
    for _ in range(10):
        found = scraped(served)
        assert values(found, "venuelimit_decisions_total") == {("it", "admitted"): len(answers)}
        assert values(found, "venuelimit_counting") == {(): 1}
        assert values(found, "venuelimit_storage_failing") == {}


def test_what_a_dead_worker_counted_stays(served: Served) -> None:
    """Counters only grow; gauges are the living workers' alone."""
    before = [ask(served, "/") for _ in range(3)]
    os.kill(int(before[0][1]), signal.SIGTERM)
    wait_until(lambda: "Worker exiting" in served.log.read_text(), what="a worker ended")
    assert ask(served, "/")[0] == 200
    found = scraped(served)
    assert values(found, "venuelimit_decisions_total") == {("it", "admitted"): 4}
    assert values(found, "venuelimit_counting") == {(): 1}


def test_failing_is_told_by_any_worker(tmp_path: Path) -> None:
    """One that found the storage failing is enough; all say that they count."""
    with run_gunicorn(
        f"{VENUE}:application",
        *("--workers", "2", "--config", f"python:{VENUE}", "--preload"),
        FLASK_SECRET_KEY="s",
        FLASK_VENUELIMIT_STORAGE_URI="redis://localhost:1",
        PROMETHEUS_MULTIPROC_DIR=str(tmp_path),
    ) as served:
        assert ask(served, "/")[0] == 200
        found = scraped(served)
    assert values(found, "venuelimit_storage_failing") == {(): 1}
    assert values(found, "venuelimit_counting") == {(): 1}
    assert values(found, "venuelimit_decisions_total") == {("it", "uncounted"): 1}


def test_metrics_that_cannot_be_written_fail_no_request(tmp_path: Path) -> None:
    """Where the folder is gone each request is answered, and one line says that nothing is counted."""
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, shutil; from tests.observing.venue import application, limiter\n"
        f"shutil.rmtree({str(gone)!r})\n"
        "if os.fork(): os._exit(os.waitstatus_to_exitcode(os.wait()[1]))\n"
        "client = application.test_client()\n"
        "print([client.get('/').status_code for _ in range(12)], flush=True)\n"
        "os._exit(0)"
    )
    environment = {
        **os.environ,
        "FLASK_SECRET_KEY": "s",
        "FLASK_VENUELIMIT_STORAGE_URI": "memory://",
        "PROMETHEUS_MULTIPROC_DIR": str(gone),
    }
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == f"{[200] * 12}\n"
    assert run.stderr.count("metrics could not be counted") == 1

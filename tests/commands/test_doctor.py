"""``flask venuelimit doctor``: how findings are told, and that a healthy app has none."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import redis
from flask import Flask

from demo_app import create_app
from flask_venuelimit import MemoryStorage, VenueLimit, by_ip
from flask_venuelimit.diagnosis import CHECKS
from tests.commands.doctor import findings
from tests.commands.terminal import Typed, typed
from tests.servers import StoreServer
from tests.several import Cluster

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "doctor.md"
CODES = [check.code for check in CHECKS]


@pytest.fixture
def demo(valkey: StoreServer, tmp_path: Path) -> Flask:
    """The pub quiz, as it is run: counting on a server."""
    return create_app({"VENUELIMIT_STORAGE_URI": valkey.url}, instance_path=str(tmp_path))


@pytest.fixture(scope="module")
def of_a_healthy_app(valkey: StoreServer, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The codes of all that is found in the pub quiz."""
    config = {"VENUELIMIT_STORAGE_URI": valkey.url}
    app = create_app(config, instance_path=str(tmp_path_factory.mktemp("quiz")))
    return {finding["code"] for finding in findings(app)}


@pytest.mark.parametrize("code", CODES)
def test_a_healthy_app_has_no_such_finding(code: str, of_a_healthy_app: set[str]) -> None:
    """Nothing is found where nothing is wrong, not even a note."""
    assert code not in of_a_healthy_app


def test_a_healthy_app_is_told_that_all_is_well(demo: Flask) -> None:
    """In one line, and with exit code 0."""
    assert typed(demo, "doctor") == Typed(0, "demo_app: all is well.\n")


def test_looking_writes_nothing(demo: Flask, valkey_client: Any) -> None:
    """The server has no key more, and nothing that it would have to save or to send to a replica."""
    changes = valkey_client.info("persistence")["rdb_changes_since_last_save"]
    typed(demo, "doctor")
    assert valkey_client.dbsize() == 0
    assert valkey_client.info("persistence")["rdb_changes_since_last_save"] == changes


def test_a_finding_says_what_why_and_what_to_change(app: Flask) -> None:
    """A person reads the code, what was found, why it matters and what to change; then how much there is."""
    VenueLimit(app).limit("9/minute", name="it", key=by_ip, shadow=True).everywhere()
    answer = typed(app, "doctor")
    assert answer.code == 1
    assert answer.lines == [
        "VL001 error: Limiting is off: no storage is set, so every limit admits every request.",
        "Why: Nothing is counted, and nobody is ever refused.",
        "Change: Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379, or memory:// for one "
        "process.",
        "",
        "VL206 note: These limits have shadow=True, and never refuse: 'it'.",
        "Why: They count and signal, and hold nobody back.",
        "Change: Once the number has proved right, take shadow out.",
        "",
        "venue: 1 error, 1 note.",
    ]


def test_notes_alone_are_no_reason_to_fail(app: Flask) -> None:
    """They may well be meant: the exit code is 0."""
    limiter = VenueLimit(app, storage=MemoryStorage())
    limiter.limit("9/minute", name="it", key=by_ip, shadow=True).everywhere()
    answer = typed(app, "doctor")
    assert (answer.code, answer.lines[-1]) == (0, "venue: all is well, with 1 note.")


def test_a_program_reads_json(app: Flask) -> None:
    """The app's name, and of each finding all that a person reads."""
    VenueLimit(app).limit("9/minute", name="it", key=by_ip).everywhere()
    answer = typed(app, "doctor", "--format", "json")
    assert answer.code == 1
    assert json.loads(answer.text) == {
        "app": "venue",
        "findings": [
            {
                "code": "VL001",
                "severity": "error",
                "what": "Limiting is off: no storage is set, so every limit admits every request.",
                "why": "Nothing is counted, and nobody is ever refused.",
                "change": "Set VENUELIMIT_STORAGE_URI, for instance to redis://localhost:6379, or memory:// "
                "for one process.",
            }
        ],
    }


def test_code_can_ask_as_well(demo: Flask, app: Flask) -> None:
    """``limiter.doctor()`` answers what the command prints."""
    limiter = VenueLimit(app)
    with app.app_context():
        assert [finding.code for finding in limiter.doctor()] == ["VL001", "VL201"]
        assert limiter.doctor()[0].matters


def test_every_code_is_documented() -> None:
    """A row each, in order: the code, its severity, why it matters and what to change, as printed."""
    rows = re.findall(r"^\| (VL\d+) \| (\w+) \| .+? \| (.+) \| (.+) \|$", DOCS.read_text(), re.MULTILINE)
    plain = [tuple(re.sub(r"`|\[([^]]+)\]\([^)]+\)", r"\1", cell) for cell in row) for row in rows]
    assert plain == [(check.code, check.severity, check.why, check.change) for check in CHECKS]


def test_codes_are_told_apart() -> None:
    """Each has one meaning, and some test provokes it."""
    tests = "".join(path.read_text() for path in HERE.glob("test_doctor_*.py"))
    assert len(set(CODES)) == len(CODES)
    assert [code for code in CODES if f'"{code}"' not in tests] == []


def test_a_cluster_is_looked_at_server_by_server(cluster: Cluster, app: Flask) -> None:
    """All is well if it is so on each; what is not is said of its server."""
    app.config["VENUELIMIT_STORAGE_URI"] = cluster.url
    VenueLimit(app).limit("9/minute", name="it", key=by_ip).everywhere()
    assert findings(app) == []
    cluster.clients()[1].config_set("maxmemory-policy", "volatile-lru")
    (finding,) = findings(app)
    cluster.clients()[1].config_set("maxmemory-policy", "noeviction")
    assert (finding["code"], str(cluster.servers[1].port) in finding["what"]) == ("VL104", True)
    assert sum(client.dbsize() for client in cluster.clients()) == 0


def test_no_password_is_shown(app: Flask, valkey_client: redis.Redis, valkey: StoreServer) -> None:
    """Neither that of the storage, nor what was set in the place of another setting."""
    app.config["VENUELIMIT_STORAGE_URI"] = f"redis://limiter:geheim@127.0.0.1:{valkey.port}"
    VenueLimit(app)
    app.config.update(VENUELIMIT_SALT="geheim", VENUELIMIT_STORAGE_OPTIONS="password=geheim")
    answer = typed(app, "doctor")
    assert {line.split()[0] for line in answer.lines if line.startswith("VL")} >= {"VL005", "VL101"}
    assert "geheim" not in answer.text

"""The factory: settings, what is kept where, and what every page has."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo_app import create_app
from demo_app.db import database
from tests.demo.pub import Pub

PAGES = ["/", "/host/login", "/host/sign-up", "/nowhere"]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_says_that_limiting_is_off(open_pub: Pub, path: str) -> None:
    """Without storage a banner says so."""
    assert "Rate limiting is off." in open_pub.phone().get(path).text


@pytest.mark.parametrize("path", PAGES)
def test_with_storage_there_is_no_banner(pub: Pub, path: str) -> None:
    """With storage there is nothing to say."""
    assert "Rate limiting is off." not in pub.phone().get(path).text


def test_the_log_says_that_limiting_is_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever starts the quiz without storage reads about it in the log."""
    create_app(instance_path=str(tmp_path))
    assert "limiting is off in the app 'demo_app'" in caplog.text


def test_the_environment_turns_limiting_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FLASK_VENUELIMIT_STORAGE_URI is all it takes."""
    monkeypatch.setenv("FLASK_VENUELIMIT_STORAGE_URI", "memory://")
    answer = create_app(instance_path=str(tmp_path)).test_client().get("/")
    assert answer.headers["RateLimit-Policy"] == '"global";q=1200;w=60'


def test_sessions_and_quizzes_outlive_a_restart(tmp_path: Path) -> None:
    """A second start in the same folder finds the key and the database of the first."""
    pub = Pub(tmp_path)
    kim = pub.guest("Kim")
    kim.application = create_app(instance_path=str(tmp_path))
    assert "You are in" in kim.get(pub.url).text


def test_the_key_is_for_its_owner_only(tmp_path: Path) -> None:
    """Nobody else on the machine can read the key that signs sessions."""
    create_app(instance_path=str(tmp_path))
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("secret_key*")) == ["secret_key"]


@pytest.mark.parametrize(("given", "key"), [("a secret", "a secret"), ("20261130", "20261130")])
def test_a_key_from_the_environment_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, key: str
) -> None:
    """FLASK_SECRET_KEY counts, one of digits too, and none is drawn."""
    monkeypatch.setenv("FLASK_SECRET_KEY", given)
    assert create_app(instance_path=str(tmp_path)).config["SECRET_KEY"] == key
    assert not (tmp_path / "secret_key").exists()


@pytest.mark.parametrize("path", [*PAGES, "/static/quiz.css", "/too-many-requests"])
def test_nothing_is_loaded_from_elsewhere(pub: Pub, path: str) -> None:
    """Every answer forbids foreign content, and no page has any, nor script or style of its own."""
    answer = pub.phone().get(path)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    for foreign in ("https://", "http://", "<style", " style=", " onclick="):
        assert foreign not in answer.text
    answer.close()


def test_another_sites_form_comes_without_the_session(open_pub: Pub) -> None:
    """The session is kept from requests that other sites cause, and from scripts."""
    joined = open_pub.join(open_pub.phone(), "Kim")
    assert {"SameSite=Lax", "HttpOnly"} <= set(joined.headers["Set-Cookie"].split("; "))


def test_nothing_is_changed_by_following_a_link(open_pub: Pub) -> None:
    """Whatever changes anything is a POST: a GET there is no such page, and the quiz's page says so."""
    for path in ("/join", f"{open_pub.url}/name", f"{open_pub.url}/answers", "/host/logout"):
        answer = open_pub.host.get(path)
        assert (answer.status_code, set(answer.allow)) == (405, {"POST", "OPTIONS"})
        assert "Back to the door" in answer.text


def test_what_is_too_large_is_not_read(open_pub: Pub) -> None:
    """A form of more than 16 KiB is refused with a page."""
    answer = open_pub.phone().post("/join", data={"name": "x" * 20_000})
    assert (answer.status_code, "Back to the door" in answer.text) == (413, True)


def test_old_quizzes_can_be_forgotten(open_pub: Pub) -> None:
    """The command deletes quizzes of past nights with everybody in them, and keeps the rest."""
    open_pub.guest("Kim")
    run = open_pub.app.test_cli_runner().invoke
    assert run(args=["forget"]).output == "quizzes forgotten: 0\n"
    with open_pub.app.app_context(), database() as connection:
        connection.execute("UPDATE game SET created = datetime('now', '-8 days')")
    assert run(args=["forget"]).output == "quizzes forgotten: 1\n"
    assert open_pub.phone().get(open_pub.url).status_code == 404

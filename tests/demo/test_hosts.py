"""Hosts: signing up, logging in, running a quiz."""

from __future__ import annotations

import pytest

from demo_app import records
from tests.demo.pub import PASSWORD, Pub


def test_a_host_logs_in_with_the_password_it_signed_up_with(open_pub: Pub) -> None:
    """A host who comes back on another phone finds its quizzes there."""
    phone = open_pub.phone()
    assert open_pub.log_in(phone).location == "/host/games"
    assert "Tuesday at the Crown" in phone.get("/host/games").text


@pytest.mark.parametrize(("name", "password"), [("Bea", "guessed"), ("Nobody", PASSWORD), ("", "")])
def test_a_wrong_login_shows_the_form_again(open_pub: Pub, name: str, password: str) -> None:
    """A wrong name and a wrong password are answered alike, and let nobody in."""
    phone = open_pub.phone()
    answer = open_pub.log_in(phone, password, name)
    assert (answer.status_code, "do not fit together" in answer.text) == (200, True)
    assert phone.get("/host/games").location.startswith("/host/login")


@pytest.mark.parametrize(
    ("name", "password", "problem"),
    [
        ("bea", PASSWORD, "That name is taken."),
        ("Cal", "seven77", "A password has 8 characters at least."),
        ("  ", PASSWORD, "It cannot be empty."),
        ("x" * 25, PASSWORD, "It can have 24 characters at most."),
    ],
)
def test_signing_up_says_what_is_wrong(open_pub: Pub, name: str, password: str, problem: str) -> None:
    """A name that is taken, in whatever case, and a short password are explained."""
    answer = open_pub.phone().post("/host/sign-up", data={"name": name, "password": password})
    assert problem in answer.text


def test_no_password_is_kept(open_pub: Pub) -> None:
    """What is in the database is a hash."""
    with open_pub.app.app_context():
        host = records.find_host(name="Bea")
    assert host is not None
    assert host.password.startswith("scrypt:")


def test_after_logging_out_the_desk_is_closed(open_pub: Pub) -> None:
    """A host who logs out has to log in again."""
    assert open_pub.host.get("/host/games").status_code == 200
    assert open_pub.host.post("/host/logout").location == "/"
    assert open_pub.host.get("/host/games").location.startswith("/host/login")


def test_a_quiz_needs_a_title(open_pub: Pub) -> None:
    """A quiz without a title is not opened, and the host is told."""
    answer = open_pub.host.post("/host/games", data={"title": " "}, follow_redirects=True)
    assert "About the title: It cannot be empty." in answer.text


def test_one_hosts_quiz_is_out_of_anothers_reach(open_pub: Pub) -> None:
    """Only the host who opened a quiz sees its board and goes on to the next question."""
    other = open_pub.sign_up("Cal")
    board = f"/host/games/{open_pub.code}"
    assert other.get(board).status_code == 404
    assert other.post(f"{board}/step", data={"seen": 0}).status_code == 404
    assert open_pub.poll(other).get_json()["question"] == 0


def test_a_double_click_goes_on_by_one_question(open_pub: Pub) -> None:
    """A step from a question that is past already does nothing."""
    open_pub.ask_next(0)
    open_pub.ask_next(0)
    assert open_pub.poll(open_pub.host).get_json()["question"] == 1


def test_the_quiz_ends_after_its_last_question(open_pub: Pub) -> None:
    """Six questions on, the quiz is over and stays so."""
    for seen in range(8):
        open_pub.ask_next(seen)
    assert open_pub.poll(open_pub.host).get_json()["over"] is True
    assert "That was the last question" in open_pub.host.get(f"/host/games/{open_pub.code}").text

"""The seven limits: how much, whose, and what a refused guest gets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.demo.pub import ELSEWHERE, Pub, refused_by

Act = Callable[[Pub, FlaskClient], TestResponse]


def wrong_password(pub: Pub, phone: FlaskClient) -> TestResponse:
    return pub.log_in(phone, "guessed")


def nowhere(pub: Pub, phone: FlaskClient) -> TestResponse:
    return phone.get("/nowhere")


def join(pub: Pub, phone: FlaskClient) -> TestResponse:
    return pub.join(phone, "Kim")


BY_PARTICIPANT = [("submit-answer", 10, Pub.answer), ("poll", 30, Pub.poll), ("rename", 5, Pub.rename)]
BY_ADDRESS = [("global", 1200, nowhere), ("join", 150, join), ("auth", 10, wrong_password)]


def spend(pub: Pub, phone: FlaskClient, number: int, act: Act) -> None:
    refusals = [refusal for _ in range(number) if (refusal := refused_by(act(pub, phone)))]
    assert refusals == []


@pytest.mark.parametrize(("name", "number", "act"), BY_PARTICIPANT)
def test_what_counts_a_participant_is_not_shared(pub: Pub, name: str, number: int, act: Act) -> None:
    """A guest is refused after exactly their number; the next guest at that address is not."""
    kim, al = pub.guest("Kim"), pub.guest("Al")
    spend(pub, kim, number, act)
    assert refused_by(act(pub, kim)) == name
    spend(pub, al, number, act)


@pytest.mark.parametrize(("name", "number", "act"), BY_PARTICIPANT)
def test_a_guest_takes_their_limit_along(pub: Pub, name: str, number: int, act: Act) -> None:
    """Going from the pub's network to one's own buys nothing."""
    kim = pub.guest("Kim")
    spend(pub, kim, number, act)
    kim.environ_base["REMOTE_ADDR"] = ELSEWHERE
    assert refused_by(act(pub, kim)) == name


@pytest.mark.parametrize(("name", "number", "act"), BY_ADDRESS)
def test_what_counts_an_address_is_shared(pub: Pub, name: str, number: int, act: Act) -> None:
    """All phones of an address are refused after exactly its number; those of another are not."""
    phones = [pub.phone(), pub.phone()]
    spend(pub, phones[0], number // 2, act)
    spend(pub, phones[1], number // 2, act)
    assert refused_by(act(pub, pub.phone())) == name
    assert refused_by(act(pub, pub.phone("203.0.113.77"))) is None


def test_what_counts_a_host_is_the_hosts(pub: Pub) -> None:
    """A host opens ten quizzes, wherever they are; another host at the same address has ten more."""
    cal, dee = pub.sign_up("Cal"), pub.sign_up("Dee")
    spend(pub, cal, 10, Pub.open_quiz)
    cal.environ_base["REMOTE_ADDR"] = ELSEWHERE
    assert refused_by(pub.open_quiz(cal)) == "create-game"
    spend(pub, dee, 10, Pub.open_quiz)


def test_the_right_password_costs_nothing(pub: Pub) -> None:
    """Nine wrong ones, twenty right ones, one more wrong one: only then is the address refused."""
    phone = pub.phone()
    spend(pub, phone, 9, wrong_password)
    spend(pub, phone, 20, Pub.log_in)
    spend(pub, phone, 1, wrong_password)
    assert refused_by(pub.log_in(phone)) == "auth"


def test_a_new_account_stays_charged(pub: Pub) -> None:
    """Ten accounts made at one address are as many as ten wrong passwords."""
    for number in range(10):
        pub.sign_up(f"Host {number}")
    assert refused_by(pub.log_in(pub.phone())) == "auth"


def test_the_board_on_the_wall_polls_without_a_name(pub: Pub) -> None:
    """Who is no participant shares a limit that is sized for a room, not for one."""
    spend(pub, pub.phone(), 600, Pub.poll)
    assert refused_by(pub.poll(pub.phone())) == "poll"


def test_a_script_is_told_how_long_to_stay_away(pub: Pub) -> None:
    """The scoreboard's own script gets a 429 whose body and header say the wait."""
    kim = pub.guest("Kim")
    spend(pub, kim, 30, Pub.poll)
    answer = pub.poll(kim)
    assert answer.get_json()["detail"] == "The scores do not change that fast."
    assert answer.headers["Retry-After"] == str(answer.get_json()["retry_after"])


def test_a_person_gets_the_page_in_the_pubs_colours(pub: Pub) -> None:
    """Six names in a minute lead to the limit page, with the limit's own sentence."""
    kim = pub.guest("Kim")
    spend(pub, kim, 5, Pub.rename)
    answer = pub.rename(kim, headers={"Sec-Fetch-Mode": "navigate"})
    assert answer.status_code == 303
    page = kim.get(answer.location)
    assert page.status_code == 429
    assert "Keep this one for a minute." in page.text
    assert "quiz.css" in page.text


def test_off_means_off(open_pub: Pub) -> None:
    """Without storage nothing is refused, and nothing is said about limits in the headers."""
    kim = open_pub.guest("Kim")
    spend(open_pub, kim, 6, Pub.rename)
    spend(open_pub, kim, 31, Pub.poll)
    assert not [name for name, _ in open_pub.poll(kim).headers if "RateLimit" in name]

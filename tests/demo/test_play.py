"""Guests: joining, answering, changing their name, the scores."""

from __future__ import annotations

import pytest

from tests.demo.pub import Pub


def test_a_guest_joins_with_the_code_as_people_type_it(open_pub: Pub) -> None:
    """Small letters and spaces in a code do no harm."""
    typed = " " + " ".join(open_pub.code.lower())
    answer = open_pub.phone().post("/join", data={"code": typed, "name": "Kim"}, follow_redirects=True)
    assert "You are in" in answer.text
    assert open_pub.scores() == {"Kim": 0}


def test_an_unknown_code_is_answered_with_the_form(open_pub: Pub) -> None:
    """A code nobody has is a 404 that keeps what was typed and asks again."""
    answer = open_pub.phone().post("/join", data={"code": "zzzzz", "name": "Kim"})
    assert answer.status_code == 404
    assert "There is no quiz with that code" in answer.text
    assert 'value="ZZZZZ"' in answer.text
    assert 'value="Kim"' in answer.text
    assert open_pub.phone().get("/g/ZZZZZ").status_code == 404


def test_a_link_to_the_quiz_asks_strangers_for_a_name(open_pub: Pub) -> None:
    """Whoever follows the link from the board finds the code filled in."""
    assert f'value="{open_pub.code}"' in open_pub.phone().get(open_pub.url).text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "It cannot be empty."),
        ("x" * 25, "It can have 24 characters at most."),
        ("K\u202eim", "It can only have characters that can be seen."),
        ("AL", "Somebody here has that name already."),
    ],
)
def test_a_name_that_cannot_be_had_is_explained(open_pub: Pub, name: str, problem: str) -> None:
    """Empty, endless, invisible and taken names are refused, at the door and later."""
    open_pub.guest("Al")
    assert problem in open_pub.join(open_pub.phone(), name).text
    kim = open_pub.guest("Kim")
    open_pub.rename(kim, name)
    assert problem in kim.get(open_pub.url).text
    assert open_pub.scores() == {"Al": 0, "Kim": 0}


def test_joining_again_changes_nothing(open_pub: Pub) -> None:
    """A guest who joins twice stays who they are: a name is changed by renaming."""
    kim = open_pub.guest("Kim")
    assert open_pub.join(kim, "Somebody else").location == open_pub.url
    assert open_pub.scores() == {"Kim": 0}


def test_a_guest_changes_their_name(open_pub: Pub) -> None:
    """A new name takes the old one's place on the scoreboard."""
    open_pub.rename(open_pub.guest("Kim"), "  Kim of   the North ")
    assert open_pub.scores() == {"Kim of the North": 0}


def test_names_are_shown_and_not_run(open_pub: Pub) -> None:
    """Markup in a name is text."""
    page = open_pub.guest("<script>1</script>").get(open_pub.url).text
    assert "&lt;script&gt;1&lt;/script&gt;" in page
    assert "<script>1" not in page


def test_a_right_answer_counts_once_the_question_is_closed(open_pub: Pub) -> None:
    """The scores tell nothing while the question is open."""
    kim, al = open_pub.guest("Kim"), open_pub.guest("Al")
    open_pub.ask_next(0)
    open_pub.answer(kim, choice=2)
    open_pub.answer(al, choice=1)
    assert open_pub.scores() == {"Al": 0, "Kim": 0}
    open_pub.ask_next(1)
    assert list(open_pub.scores().items()) == [("Kim", 1), ("Al", 0)]


def test_an_answer_can_be_changed_until_the_question_is_closed(open_pub: Pub) -> None:
    """The last answer before the host goes on is the one that counts; a later one is too late."""
    kim = open_pub.guest("Kim")
    open_pub.ask_next(0)
    open_pub.answer(kim, choice=1)
    open_pub.answer(kim, choice=2)
    assert "Your answer is in: <strong>8</strong>" in kim.get(open_pub.url).text
    open_pub.ask_next(1)
    open_pub.answer(kim, choice=0)
    assert "Too late: that question is closed." in kim.get(open_pub.url).text
    assert open_pub.scores() == {"Kim": 1}


@pytest.mark.parametrize("choice", ["4", "-1", "two", ""])
def test_a_choice_that_is_none_is_refused(open_pub: Pub, choice: str) -> None:
    """Only the four choices are taken."""
    data = {"question": "1", "choice": choice}
    answer = open_pub.guest("Kim").post(f"{open_pub.url}/answers", data=data)
    assert answer.status_code == 400
    assert "Pick one of the four choices." in answer.text


def test_who_has_not_joined_neither_answers_nor_is_renamed(open_pub: Pub) -> None:
    """A stranger's answer and name lead to the form to join."""
    stranger = open_pub.phone()
    open_pub.ask_next(0)
    assert open_pub.answer(stranger).location == open_pub.url
    assert open_pub.rename(stranger).location == open_pub.url
    assert open_pub.scores() == {}


def test_a_quiz_holds_two_hundred(open_pub: Pub) -> None:
    """The scoreboard has an end: after two hundred the quiz is full."""
    for number in range(200):
        open_pub.guest(f"Guest {number}")
    assert "This quiz is full." in open_pub.join(open_pub.phone(), "Late").text

"""What the quiz is about: a hundred phones behind one address, on a real server, minute after minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
import redis
from flask.testing import FlaskClient

from demo_app.limits import limiter
from flask_venuelimit import RedisStorage
from flask_venuelimit.testing import ManualClock
from tests.demo.pub import Pub, refused_by

PHONES = 100
EVERY = 10  # seconds between two looks at the scores, as static/scores.js has it


@pytest.fixture(autouse=True)
def counted_on_a_server(
    valkey_client: redis.Redis, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the quiz count on a real server, by a clock that the test moves."""
    monkeypatch.setattr(limiter, "storage", RedisStorage(valkey_client, clock=clock))


@pytest.fixture
def room(tmp_path: Path) -> Pub:
    """The pub with its limits as they are."""
    return Pub(tmp_path)


@pytest.fixture
def household(tmp_path: Path) -> Pub:
    """The same pub, with a global limit that would do for a family."""
    return Pub(tmp_path, VENUELIMIT_LIMITS={"global": "300/minute"})


def arrive(room: Pub, clock: ManualClock) -> list[FlaskClient]:
    """A hundred guests come in within half a minute: the door, the form, the quiz."""
    phones = []
    for number in range(PHONES):
        phones.append(room.phone())
        for answer in (
            phones[-1].get("/"),
            room.join(phones[-1], f"Guest {number}"),
            phones[-1].get(room.url),
        ):
            assert answer.status_code in (200, 302)
        clock.advance(0.3)
    return phones


def watch(room: Pub, clock: ManualClock, groups: Iterable[list[FlaskClient]], minutes: int) -> Counter[str]:
    """Each phone looks at the scores six times a minute, a group each second; who was refused how often?"""
    refusals: Counter[str] = Counter()
    turns = list(groups)
    for second in range(minutes * 60):
        turn = turns[second % EVERY] if second % EVERY < len(turns) else []
        refusals.update(filter(None, (refused_by(room.poll(phone)) for phone in turn)))
        clock.advance(1)
    return refusals


def test_a_full_room_is_never_refused(room: Pub, clock: ManualClock) -> None:
    """A hundred guests join and watch the scores for four minutes, and nobody is refused."""
    phones = arrive(room, clock)
    groups = [phones[start::EVERY] for start in range(EVERY)]
    assert watch(room, clock, groups, minutes=4) == {}


def test_a_room_that_moves_as_one_is_let_in_too(room: Pub, clock: ManualClock) -> None:
    """A hundred phones that answer and ask in the same instant, as after a question, are not refused."""
    phones = arrive(room, clock)
    for number in range(2):
        room.ask_next(number)
        answers = [room.answer(phone, question=number + 1) for phone in phones]
        assert [answer.status_code for answer in answers] == [302] * PHONES
        assert watch(room, clock, [phones], minutes=1) == {}


def test_a_limit_for_a_household_turns_the_room_away(household: Pub, clock: ManualClock) -> None:
    """With 300 a minute instead of 1200 all get in, and then half of their looks are refused."""
    phones = arrive(household, clock)
    groups = [phones[start::EVERY] for start in range(EVERY)]
    refusals = watch(household, clock, groups, minutes=3)
    assert list(refusals) == ["global"]
    assert refusals["global"] >= 3 * PHONES * 6 / 2

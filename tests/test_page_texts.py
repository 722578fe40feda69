"""What the limit page says in each language, and which language it chooses."""

from __future__ import annotations

import re
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flask_venuelimit.accepted import preferences
from flask_venuelimit.page.texts import TEXTS, choose, in_words, texts

UNITS = ("second", "minute", "hour", "day")


def test_the_page_speaks_eight_languages() -> None:
    """English, German, French, Spanish, Italian, Dutch, Polish, Portuguese."""
    assert sorted(TEXTS) == ["de", "en", "es", "fr", "it", "nl", "pl", "pt"]


@pytest.mark.parametrize("language", TEXTS)
def test_no_language_lacks_a_sentence(language: str) -> None:
    """Each says all that English says, with its waits in the same places."""
    for name, sentence in TEXTS["en"].items():
        said = TEXTS[language][name]
        assert said
        assert said.count("{}") == (said.count("|") + 1 if name in UNITS else sentence.count("{}"))
    assert set(TEXTS[language]) == set(TEXTS["en"])


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_have_no_markup_and_no_loose_ends(language: str) -> None:
    """They are plain text, put into the page as it is."""
    for sentence in TEXTS[language].values():
        assert sentence == sentence.strip()
        assert not re.search(r"[<>&\"]|  |'", sentence)
        assert {field for _, field, _, _ in Formatter().parse(sentence)} <= {"", None}


@pytest.mark.parametrize(
    ("accept", "language"),
    [
        ("", "en"),
        ("de", "de"),
        ("DE-at", "de"),
        ("pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7", "pt"),
        ("de-AT, en;q=0.8", "de"),
        ("ja, fr;q=0.5, en;q=0.4", "fr"),
        ("ja", "en"),
        ("en;q=0.5, nl", "nl"),
        ("nl;q=0, pl;q=0.1", "pl"),
        ("*", "en"),
        ("*, it;q=0.5", "it"),
        ("zh-Hant-TW, es-419;q=0.9", "es"),
        (";;, ü, de", "de"),
    ],
)
def test_the_reader_gets_the_language_they_like_best(accept: str, language: str) -> None:
    """Of those the page speaks, by q, whatever country is named; else English."""
    assert choose(preferences(accept)) == language


@given(st.text())
def test_whatever_is_accepted_there_is_a_language(accept: str) -> None:
    """No header field makes the page fail."""
    assert choose(preferences(accept)) in TEXTS


def test_a_language_nobody_speaks_is_english() -> None:
    """A template may ask for any."""
    assert texts("da") is TEXTS["en"]
    assert in_words(90, "da") == "90 seconds"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (0, ""),
        (1, "1 second"),
        (90, "90 seconds"),
        (120, "2 minutes"),
        (121, "about 3 minutes"),
        (7200, "2 hours"),
        (7201, "about 3 hours"),
        (600_000, "about 7 days"),
    ],
)
def test_waits_in_words_are_never_too_short(seconds: int | None, words: str) -> None:
    """Rounded up, to what a person would say."""
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("count", "word"),
    [
        (1, "sekundę"),
        *((count, "sekundy") for count in (2, 4, 22, 104)),
        *((count, "sekund") for count in (5, 11, 12, 14, 21, 25, 112)),
    ],
)
def test_polish_counts_in_three_forms(count: int, word: str) -> None:
    """One, few and many; 12 to 14 are many, 22 is few, and 21 is many again."""
    assert in_words(count, "pl") == f"{count} {word}"


@pytest.mark.parametrize(
    ("language", "one", "roughly"),
    [
        ("de", "1 Sekunde", "etwa 3 Tagen"),
        ("fr", "1 seconde", "environ 3 jours"),
        ("es", "1 segundo", "aproximadamente 3 días"),
        ("it", "1 secondo", "circa 3 giorni"),
        ("nl", "1 seconde", "ongeveer 3 dagen"),
        ("pl", "1 sekundę", "mniej więcej 3 dni"),
        ("pt", "1 segundo", "aproximadamente 3 dias"),
    ],
)
def test_waits_are_in_the_case_their_sentence_asks_for(language: str, one: str, roughly: str) -> None:
    """In 3 Tagen, not in 3 Tage."""
    assert (in_words(1, language), in_words(200_000, language)) == (one, roughly)

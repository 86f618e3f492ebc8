"""Word F1 and word differences."""

from __future__ import annotations

import pytest

from engine.analysis.word_overlap import difference, word_f1, words


@pytest.mark.parametrize(
    ("first", "second", "f1"),
    [
        ("A red car.", "a RED car", 1.0),
        ("a car", "a road", 0.5),
        ("a a a", "a", 0.5),
        ("trees", "a car", 0.0),
        ("", "a car", 0.0),
        ("", "?!", None),
        ("Straße 3", "straße", 2 / 3),
    ],
)
def test_word_f1_by_hand(first: str, second: str, f1: float | None) -> None:
    assert word_f1(first, second) == (f1 if f1 is None else pytest.approx(f1))
    assert word_f1(second, first) == word_f1(first, second)


def test_words() -> None:
    assert words("It's a Car, isn't it?") == ["it", "s", "a", "car", "isn", "t", "it"]


def test_a_difference_gives_both_texts_back() -> None:
    first, second = "There is a red car  ahead.", "There is a truck ahead. It is day."
    pieces = difference(first, second)
    assert "".join(p.text for p in pieces if p.kind != "second") == first
    told = "".join(p.text for p in pieces if p.kind != "first")
    assert told.split() == second.split()
    kinds = [(p.kind, p.text.strip()) for p in pieces]
    assert ("first", "red car") in kinds and ("second", "truck") in kinds
    assert difference("", "") == () and difference("a", "")[0].kind == "first"

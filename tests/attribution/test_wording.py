"""An explanation in words."""

import pytest

from engine.attribution import wording
from engine.attribution.explained import as_json
from engine.report.drawers import terminal
from engine.report.explanation_part import answered
from engine.storage.explanations import Chance
from tests.attribution.made import CLEAR, NO_CHANCE, UNLIKELY, cell, explanation


def test_the_strongest_cells_come_first_and_those_that_lost_nothing_are_left_out() -> None:
    assert wording.cells(explanation()) == (
        "right, bottom (column 2, row 2 of 2 x 2): +2.00 nats",
        "left, bottom (column 1, row 2 of 2 x 2): +0.50 nats",
    )
    assert wording.cells(explanation(cells=(cell(0, 0, -1.0),))) == ()


@pytest.mark.parametrize("test", [NO_CHANCE, UNLIKELY])
def test_no_place_is_named_by_chance_or_for_words_the_model_does_not_consider(test: Chance) -> None:
    found = explanation(chance=test)
    assert wording.no_place(found) and found.chance == test
    assert wording.alt(found, "s").endswith(test.sentence)
    text = terminal(answered(found))
    assert test.sentence in text and "Largest losses:" in text and "Places that" not in text
    assert as_json(found)["chance"]["sentence"] == test.sentence


def test_the_control_names_a_place() -> None:
    found = explanation(chance=CLEAR)
    assert not wording.no_place(found) and "right, bottom" in wording.alt(found, "s")
    text = terminal(answered(found))
    assert CLEAR.sentence in text and "Places that the words rest on:" in text
    assert wording.plain(explanation()).endswith("-0.70 nats; probability of their least likely "
                                                 "token: 0.5.")  # fmt: skip


def test_the_alt_text_names_sample_words_and_places() -> None:
    words = wording.alt(explanation(), "q · s")
    assert "q · s" in words and "“a car”" in words and "right, bottom" in words
    nothing = wording.alt(explanation(cells=(cell(0, 0, 0.0),)), "s")
    assert "lose nothing" in nothing

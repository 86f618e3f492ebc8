"""An explanation in words."""

from __future__ import annotations

from engine.attribution import wording
from tests.attribution.made import NO_CHANCE, cell, explanation


def test_the_strongest_cells_come_first_and_those_that_lost_nothing_are_left_out() -> None:
    assert wording.cells(explanation()) == (
        "right, bottom (column 2, row 2 of 2 x 2): +2.00 nats",
        "left, bottom (column 1, row 2 of 2 x 2): +0.50 nats",
    )
    assert wording.cells(explanation(cells=(cell(0, 0, -1.0),))) == ()


def test_chance_is_said_first_or_that_it_was_not_tested() -> None:
    found = explanation(chance=NO_CHANCE)
    assert wording.by_chance(found) and wording.chance(found) == NO_CHANCE.sentence
    assert "No part matters more than chance" in wording.alt(found, "s")
    assert not wording.by_chance(explanation())
    untested = explanation(chance=None)
    assert not wording.by_chance(untested) and wording.chance(untested) == wording.UNTESTED


def test_the_alt_text_names_sample_words_and_places() -> None:
    words = wording.alt(explanation(), "q · s")
    assert "q · s" in words and "“a car”" in words and "right, bottom" in words
    nothing = wording.alt(explanation(cells=(cell(0, 0, 0.0),)), "s")
    assert "lose nothing" in nothing


def test_moments_say_how_they_were_removed() -> None:
    assert wording.moments(explanation())[0] == (
        "event image 2, replaced by its neighbour: +1.50 nats"
    )


def test_sentences_are_those_of_the_answer_each_once() -> None:
    answer = "A car is ahead. It is day!\n\n- A tree\nA car is ahead. ..."
    assert wording.sentences(answer) == ("A car is ahead.", "It is day!", "- A tree")
    assert wording.sentences(" \n ") == ()

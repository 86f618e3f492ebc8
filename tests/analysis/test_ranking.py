"""Samples in the order in which they are worth a look."""

from __future__ import annotations

from pathlib import Path

from engine.analysis import ranking
from engine.analysis.results_table import frame
from tests import fabricate


def test_the_least_alike_first(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", "same", text="a car"),
        fabricate.row("vl", "same", text="A car!"),
        fabricate.row("ev", "other", text="a car"),
        fabricate.row("vl", "other", text="trees"),
        fabricate.row("ev", "alone"),
        fabricate.failed("vl", "alone"),
    ]
    found = ranking.by_disagreement(frame([fabricate.run(tmp_path / "r", rows)]))
    assert found[["sample", "overlap", "answers"]].values.tolist() == [
        ["other", 0.0, 2],
        ["same", 1.0, 2],
    ]


def test_a_deck_has_contradictions_first_then_the_least_overlap_then_the_id(
    tmp_path: Path,
) -> None:
    answers = {
        "b-far": ("a car", "trees"),
        "a-far": ("a car", "trees"),
        "same": ("a car", "A car!"),
        "one": ("There is a car ahead.", "There is no vehicle ahead."),
        "two": (
            "There is a car ahead. The road is straight.",
            "There is no vehicle ahead. The road bends to the left.",
        ),
        "empty": ("", "!"),
    }
    rows = [
        fabricate.row(model, sample, text=text)
        for sample, texts in answers.items()
        for model, text in zip(("ev", "vl"), texts, strict=True)
    ]
    rows += [fabricate.row("ev", "alone"), fabricate.failed("vl", "alone")]
    rows += [fabricate.row("ev", "asked"), fabricate.row("vl", "asked", prompt="Why?")]
    rows += [fabricate.row("ev", "same", repeat=1, text="There is no vehicle ahead.")]
    found = ranking.deck(frame([fabricate.run(tmp_path / "r", rows)]), "ev", "vl")
    assert [card.sample for card in found] == ["two", "one", "a-far", "b-far", "same", "empty"]
    assert found[1].contradictions == (("lead vehicle", "car", "none"),)
    assert [card.overlap for card in found[2:]] == [0.0, 0.0, 1.0, None]


def test_an_answer_off_script_contradicts_nothing(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", text="There is a car ahead.", off_script=True),
        fabricate.row("vl", text="There is no vehicle ahead."),
    ]
    (card,) = ranking.deck(frame([fabricate.run(tmp_path / "r", rows)]), "ev", "vl")
    assert card.contradictions == ()


def test_samples_with_different_questions_are_no_cards_but_are_counted(tmp_path: Path) -> None:
    rows = [*fabricate.pair(2), fabricate.row("ev", "odd"), fabricate.row("vl", "odd", prompt="?")]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    assert len(ranking.deck(table, "ev", "vl")) == 2
    assert ranking.answered_by_both(table, "ev", "vl") == 3


def test_the_greatest_ratio_first(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", "s0", prefill=10),
        fabricate.row("vl", "s0", prefill=40),
        fabricate.row("ev", "s1", prefill=30),
        fabricate.row("vl", "s1", prefill=10),
    ]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    found = ranking.by_ratio(table, "ev", "vl", "prefill")
    assert found[["sample", "ratio"]].values.tolist() == [["s1", 3.0], ["s0", 0.25]]
    assert ranking.by_disagreement(table.iloc[:0]).empty

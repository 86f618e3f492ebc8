"""Accuracy for demo scenes alone; an overlap of words for every other reference."""

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import agreement
from engine.analysis.agreement import Statement, word_f1
from engine.analysis.answer_reading import ATTRIBUTES, read_attributes, read_statements
from engine.analysis.results_table import frame
from tests import fabricate

TRUTH = {"curve": "left", "pedestrian": "none"}
RIGHT = "The road bends to the left. There is no pedestrian."


def table(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    return frame([fabricate.run(tmp_path / "r", rows)])


def scene(sample: str, text: str, **more: Any) -> dict[str, Any]:
    return fabricate.row(sample=sample, text=text, truth=TRUTH, reference="The road ...", **more)


def test_accuracy_by_hand(tmp_path: Path) -> None:
    rows = [scene("s0", RIGHT), scene("s1", "The road bends to the right."), scene("s2", "Trees.")]
    found = {one.attribute: one for one in agreement.attributes(table(tmp_path, rows))}
    assert set(found) == {"curve", "pedestrian"}
    assert found["curve"].accuracy == pytest.approx(1 / 3)
    assert found["curve"].claimed == pytest.approx(2 / 3) and found["curve"].n == 3
    assert found["pedestrian"].majority == 1.0
    silent = table(tmp_path / "silent", rows[2:])  # what is never stated is not wrong
    assert [(one.accuracy, one.claimed) for one in agreement.attributes(silent)] == [(None, 0)] * 2
    assert agreement.overlaps(silent) == ()


def test_a_question_about_one_attribute_is_no_evidence_about_others(tmp_path: Path) -> None:
    turn, person = "The road bends to the left.", "There is no pedestrian."
    asked = (("curve", turn), ("pedestrian", person), ("place", RIGHT))  # a place asks for all
    rows = [
        scene(f"s{n}", text, question_task=task, choices=["left", "none"], choice_form="words")
        for n, (task, text) in enumerate(asked)
    ]
    found = {one.attribute: one for one in agreement.attributes(table(tmp_path, rows))}
    assert [(one.n, one.accuracy) for one in found.values()] == [(2, 1.0), (2, 1.0)]
    rows = [row | {"question_task": ""} for row in rows]  # control
    found = {one.attribute: one for one in agreement.attributes(table(tmp_path / "b", rows))}
    assert found["curve"].accuracy == pytest.approx(2 / 3)


def test_a_sample_counts_once_and_warm_up_does_not(tmp_path: Path) -> None:
    rows = [
        scene("s0", "Nothing.", phase="warmup"),
        scene("s0", RIGHT, cold=True),
        scene("s0", "Nothing.", repeat=1),
        fabricate.failed(sample="s1", truth=TRUTH),
    ]
    found = agreement.attributes(table(tmp_path, rows))
    assert [(one.n, one.accuracy) for one in found] == [(1, 1.0), (1, 1.0)]


def test_other_references_have_an_overlap_and_no_accuracy(tmp_path: Path) -> None:
    rows = [
        fabricate.row(sample="s0", text="a car", reference="a car"),
        fabricate.row(sample="s1", text="a car", reference="a road"),
        fabricate.row(sample="s2", text="a car"),
        fabricate.row(sample="s3", text="x", reference="x", truth={"weather": "rain"}),
    ]
    lines = table(tmp_path, rows)
    assert agreement.attributes(lines) == ()
    (found,) = agreement.overlaps(lines)
    assert (found.n, found.median) == (3, 1.0)


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
        ("It's a Car, isn't it?", "it s a car isn t it", 1.0),
    ],
)
def test_word_f1_by_hand(first: str, second: str, f1: float | None) -> None:
    assert word_f1(first, second) == (f1 if f1 is None else pytest.approx(f1))
    assert word_f1(second, first) == word_f1(first, second)


CAR = "The road curves to the left. There is a car ahead. It is coming closer."
NONE = "The road bends to the left. There is no vehicle ahead."
SCENE = {"curve": "left", "lead vehicle": "car", "motion": "approaching", "pedestrian": "none"}


def test_contradictions_come_first_and_each_statement_is_judged() -> None:
    rows = agreement.compare([CAR, NONE], SCENE, ATTRIBUTES)
    assert [row.attribute for row in rows] == ["lead vehicle", "curve", "motion", "pedestrian"]
    assert [row.contradicted for row in rows] == [True, False, False, False]
    assert rows[0].statements == (Statement(("car",), "right"), Statement(("none",), "wrong"))
    assert [one.verdict for one in rows[1].statements] == ["right", "right"]
    assert [one.verdict for one in rows[2].statements] == ["right", "not said"]
    assert [one.verdict for one in rows[3].statements] == ["not said", "not said"]


def test_what_the_question_does_not_ask_for_is_no_error() -> None:
    rows = agreement.compare([CAR, NONE], SCENE, {"curve"})
    by_name = {row.attribute: [one.verdict for one in row.statements] for row in rows}
    assert by_name == {
        "lead vehicle": ["not judged", "not judged"],
        "curve": ["right", "right"],
        "motion": ["not judged", "not asked"],
    }
    assert rows[0].contradicted  # found from the answers alone


def test_without_known_content_only_the_answers_are_compared() -> None:
    rows = agreement.compare([CAR, NONE], {}, ())
    assert {one.verdict for row in rows for one in row.statements} == {"not judged", "not asked"}
    assert [row.attribute for row in rows if row.contradicted] == ["lead vehicle"]
    assert agreement.compare(["A grey cat.", ""], {}, ()) == ()
    rows = agreement.compare([CAR, "A pedestrian is on the left.", NONE], {}, ())
    assert rows[0].contradicted and not rows[1].contradicted
    assert [one.values for one in rows[0].statements] == [("car",), (), ("none",)]
    assert not any(row.contradicted for row in agreement.compare([CAR, CAR], {}, ()))


def test_an_answer_that_contradicts_itself_contradicts_nobody_else() -> None:
    both = "There is a car ahead. There is no vehicle ahead."
    assert read_statements(both) == {"lead vehicle": ("car", "none")}
    assert read_attributes(both) == {}
    (row,) = agreement.compare([both, "A truck is ahead."], {}, ())
    assert row.statements[0] == Statement(("car", "none"), "unclear") and not row.contradicted


def test_the_least_alike_or_the_greatest_ratio_first(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", "same", text="a car", prefill=10),
        fabricate.row("vl", "same", text="A car!", prefill=40),
        fabricate.row("ev", "other", text="a car", prefill=30),
        fabricate.row("vl", "other", text="trees", prefill=10),
        fabricate.row("ev", "alone"),
        fabricate.failed("vl", "alone"),
    ]
    lines = table(tmp_path, rows)
    found = agreement.by_disagreement(lines)[["sample", "overlap", "answers"]]
    assert found.values.tolist() == [["other", 0.0, 2], ["same", 1.0, 2]]
    found = agreement.by_ratio(lines, "ev", "vl", "prefill")[["sample", "ratio"]]
    assert found.values.tolist() == [["other", 3.0], ["same", 0.25]]
    assert agreement.by_disagreement(lines.iloc[:0]).empty

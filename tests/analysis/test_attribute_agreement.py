"""Attributes of answers to one question: judged only where asked, contradictions first."""

from __future__ import annotations

from engine.analysis import attribute_agreement
from engine.analysis.answer_reading import read_attributes, read_statements
from engine.analysis.attribute_agreement import Statement
from engine.analysis.scene_attributes import ATTRIBUTES

CAR = "The road curves to the left. There is a car ahead. It is coming closer."
NONE = "The road bends to the left. There is no vehicle ahead."
TRUTH = {"curve": "left", "lead vehicle": "car", "motion": "approaching", "pedestrian": "none"}


def test_contradictions_come_first_and_each_statement_is_judged() -> None:
    rows = attribute_agreement.compare([CAR, NONE], TRUTH, ATTRIBUTES)
    assert [row.attribute for row in rows] == ["lead vehicle", "curve", "motion", "pedestrian"]
    assert [row.contradicted for row in rows] == [True, False, False, False]
    assert rows[0].statements == (Statement(("car",), "right"), Statement(("none",), "wrong"))
    assert [one.verdict for one in rows[1].statements] == ["right", "right"]
    assert [one.verdict for one in rows[2].statements] == ["right", "not said"]
    assert [one.verdict for one in rows[3].statements] == ["not said", "not said"]


def test_what_the_question_does_not_ask_for_is_no_error() -> None:
    rows = attribute_agreement.compare([CAR, NONE], TRUTH, {"curve"})
    by_name = {row.attribute: [one.verdict for one in row.statements] for row in rows}
    assert by_name == {
        "lead vehicle": ["not judged", "not judged"],
        "curve": ["right", "right"],
        "motion": ["not judged", "not asked"],
    }
    assert rows[0].contradicted  # found from the answers alone


def test_without_known_content_only_the_answers_are_compared() -> None:
    rows = attribute_agreement.compare([CAR, NONE], {}, ())
    assert {one.verdict for row in rows for one in row.statements} == {"not judged", "not asked"}
    assert [row.attribute for row in rows if row.contradicted] == ["lead vehicle"]
    assert attribute_agreement.compare(["A grey cat.", ""], {}, ()) == ()


def test_an_answer_that_contradicts_itself_contradicts_nobody_else() -> None:
    both = "There is a car ahead. There is no vehicle ahead."
    assert read_statements(both) == {"lead vehicle": ("car", "none")}
    assert read_attributes(both) == {}
    (row,) = attribute_agreement.compare([both, "A truck is ahead."], {}, ())
    assert row.statements[0] == Statement(("car", "none"), "unclear") and not row.contradicted
    assert attribute_agreement.contradictions([both, "A truck is ahead."]) == {}


def test_contradictions_of_three_answers_name_each_value() -> None:
    found = attribute_agreement.contradictions([CAR, "A pedestrian is on the left.", NONE])
    assert found == {"lead vehicle": ("car", None, "none")}
    assert attribute_agreement.contradictions([CAR, CAR]) == {}

"""Accuracy for demo scenes alone; an overlap of words for every other reference.  Accuracy on
options where it is known: chance, failures, repeats, clusters, pairs."""

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import agreement
from engine.analysis.agreement import (
    ChoiceAccuracy,
    Statement,
    choice_pairs,
    choices,
    word_f1,
)
from engine.analysis.answer_reading import ATTRIBUTES, read_attributes, read_statements
from engine.analysis.results_table import frame
from tests import fabricate
from tests.fabricate import exam, question

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


def one(tmp_path: Path, rows: list[dict[str, Any]]) -> ChoiceAccuracy:
    return choices(table(tmp_path, rows))[0]


def test_a_model_that_always_says_a_scores_chance(tmp_path: Path) -> None:
    found = {(a.label, a.task): a for a in choices(table(tmp_path, exam()))}
    assert len(found) == 6  # all questions and two tasks, for two models
    always = found["vl", ""]
    assert always.accuracy is not None and always.accuracy.share == always.chance == 0.25
    assert (always.verdict, always.always, always.commonest) == ("undecided", 0.25, "A")
    assert always.likeliest is None and always.agree is None
    good = found["ev", ""]
    assert good.accuracy is not None and good.accuracy.n == 96 and good.accuracy.clusters == 24
    assert good.right == 76 and good.accuracy.share == 76 / 96 and good.verdict == "above"
    assert good.likeliest is not None and good.likeliest.share == 1.0 and good.agree == 76 / 96
    assert found["ev", "objects"].questions == found["ev", "motion"].questions == 48


def test_unreadable_answers_are_wrong_and_repeats_count_as_one_question(tmp_path: Path) -> None:
    rows = [question(n, "ABCD"[n % 4], repeat=r) for n in range(40) for r in range(3)]
    rows[0]["text"] = rows[1]["text"] = "B"  # one of three repeats of the first question is right
    rows[3]["text"] = rows[4]["text"] = rows[5]["text"] = "I cannot tell."
    found = one(tmp_path, rows)
    assert (found.questions, found.answers, found.unreadable) == (40, 120, 3)
    assert found.right == pytest.approx(38 + 1 / 3)


def test_failed_results_are_in_no_accuracy(tmp_path: Path) -> None:
    rows = [question(n, "ABCD"[n % 4]) for n in range(40)]
    keys = ("sequence", "choices", "choice_form", "right_letter", "question_task")
    for row in rows[:4]:
        known = {key: row[key] for key in keys}
        rows.append(fabricate.failed("ev", f"f{row['sample']}", **known))
    found = one(tmp_path, rows)
    assert (found.failed, found.answers, found.questions) == (4, 40, 40)
    assert found.accuracy is not None and found.accuracy.share == 1.0
    none = one(tmp_path / "b", rows[40:])
    assert none.accuracy is None is none.chance
    assert (none.failed, none.verdict) == (4, "unknown")


def test_five_sequences_give_no_verdict(tmp_path: Path) -> None:
    found = one(tmp_path, [question(n, "ABCD"[n % 4]) for n in range(20)])
    assert found.accuracy is not None and found.accuracy.clusters == 5
    assert found.accuracy.low is None and found.verdict == "unknown"


def test_clusters_widen_the_interval(tmp_path: Path) -> None:
    def width(per: int) -> float:
        rows = [question(n, "ABCD"[n % 4] if n // 8 % 2 else "?", per_sequence=per)
                for n in range(96)]  # fmt: skip
        share = one(tmp_path / str(per), rows).accuracy
        assert share is not None and share.low is not None and share.high is not None
        assert share.share == 0.5
        return share.high - share.low

    assert width(8) > 2 * width(1)


def test_words_are_judged_by_their_option_and_the_commonest_text(tmp_path: Path) -> None:
    sides = [["left", "right"], ["right", "left"]]
    rows = [
        question(n, f"It is on the {'left' if n % 4 else 'right'}.", right="AB"[n % 2],
                 choices=sides[n % 2], choice_form="words", task="side")
        for n in range(40)
    ]  # fmt: skip
    found = one(tmp_path, rows)
    assert (found.right, found.always, found.commonest) == (30, 1.0, "")
    for number, row in enumerate(rows):
        row |= {"choices": sides[number >= 30], "right_letter": "A"}  # left in 30 of 40
    assert one(tmp_path / "left", rows).always == 0.75


def test_answers_without_a_known_right_option_are_left_out(tmp_path: Path) -> None:
    rows = [question(n, "A", right_letter=None) for n in range(8)]
    found = one(tmp_path, rows)
    assert found.accuracy is None and (found.left_out, found.answers) == (8, 8)
    rows = [question(n, "A", right="A", off_script=n < 3) for n in range(8)]
    found = one(tmp_path / "b", rows)
    assert (found.questions, found.left_out) == (5, 3)


def test_other_results_have_no_accuracy(tmp_path: Path) -> None:
    lines = table(tmp_path, fabricate.pair(3))
    assert choices(lines) == () == choice_pairs(lines)
    warm = [question(n, "A", phase="warmup") for n in range(8)]
    assert choices(table(tmp_path / "c", warm)) == ()


@pytest.mark.loads
def test_two_models_on_the_same_questions(tmp_path: Path) -> None:
    (pair,) = choice_pairs(table(tmp_path, exam()))
    assert (pair.a, pair.b, pair.verdict) == ("ev", "vl", "above")
    assert pair.difference.n == 96 and pair.only_a - pair.only_b == 76 - 24
    same = [question(n, "A", model) for n in range(24) for model in ("ev", "vl")]
    (equal,) = choice_pairs(table(tmp_path / "c", same))
    assert equal.verdict == "undecided" and equal.difference.share == 0.0
    few = [row for row in exam(40) if row["model"] == "ev" or row["sample"] < "s008"]
    (part,) = choice_pairs(table(tmp_path / "d", few))
    assert part.difference.n == 8 and part.verdict == "unknown"


def test_two_models_are_paired_by_question_and_not_by_position(tmp_path: Path) -> None:
    """ev answers 1 to 9 and is wrong in the odd ones; vl answers 8 to 0 and is wrong in 0 to 3."""
    rows = [question(n, "ABCD"[(n + n % 2) % 4], "ev", right="ABCD"[n % 4]) for n in range(1, 10)]
    rows += [question(n, "ABCD"[(n + (n < 4)) % 4], "vl", right="ABCD"[n % 4])
             for n in range(8, -1, -1)]  # fmt: skip
    (found,) = choice_pairs(table(tmp_path, rows))
    assert (found.a, found.difference.n) == ("ev", 8)
    assert (found.only_a, found.only_b) == (1, 2)  # question 2; questions 5 and 7

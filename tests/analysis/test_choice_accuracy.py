"""Accuracy of fabricated answers that are known: chance, failures, repeats, clusters, pairs."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from engine.analysis import results_table
from engine.analysis.choice_accuracy import ChoiceAccuracy, accuracies, compare_all
from tests import fabricate
from tests.fabricate import exam, question


def table(tmp_path: Path, rows: list[dict[str, Any]]) -> pd.DataFrame:
    return results_table.frame([fabricate.run(tmp_path / "r", rows)])


def one(tmp_path: Path, rows: list[dict[str, Any]]) -> ChoiceAccuracy:
    return accuracies(table(tmp_path, rows))[0]


def test_a_model_that_always_says_a_scores_chance(tmp_path: Path) -> None:
    found = {(a.label, a.task): a for a in accuracies(table(tmp_path, exam()))}
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
    assert accuracies(lines) == () == compare_all(lines)
    warm = [question(n, "A", phase="warmup") for n in range(8)]
    assert accuracies(table(tmp_path / "c", warm)) == ()


@pytest.mark.loads
def test_two_models_on_the_same_questions(tmp_path: Path) -> None:
    (pair,) = compare_all(table(tmp_path, exam()))
    assert (pair.a, pair.b, pair.verdict) == ("ev", "vl", "above")
    assert pair.difference.n == 96 and pair.only_a - pair.only_b == 76 - 24
    same = [question(n, "A", model) for n in range(24) for model in ("ev", "vl")]
    (equal,) = compare_all(table(tmp_path / "c", same))
    assert equal.verdict == "undecided" and equal.difference.share == 0.0
    few = [row for row in exam(40) if row["model"] == "ev" or row["sample"] < "s008"]
    (part,) = compare_all(table(tmp_path / "d", few))
    assert part.difference.n == 8 and part.verdict == "unknown"


def test_two_models_are_paired_by_question_and_not_by_position(tmp_path: Path) -> None:
    """ev answers 1 to 9 and is wrong in the odd ones; vl answers 8 to 0 and is wrong in 0 to 3."""
    rows = [question(n, "ABCD"[(n + n % 2) % 4], "ev", right="ABCD"[n % 4]) for n in range(1, 10)]
    rows += [question(n, "ABCD"[(n + (n < 4)) % 4], "vl", right="ABCD"[n % 4])
             for n in range(8, -1, -1)]  # fmt: skip
    (found,) = compare_all(table(tmp_path, rows))
    assert (found.a, found.difference.n) == ("ev", 8)
    assert (found.only_a, found.only_b) == (1, 2)  # question 2; questions 5 and 7

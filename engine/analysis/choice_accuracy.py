"""Accuracy on multiple-choice questions: per model and task, against chance, and in pairs.

The figures are defined in docs/results.md (Accuracy).  Intervals are clustered by sequence
(statistics.py).  A verdict needs an interval that leaves chance, or a difference of 0, out as
printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from engine.analysis.results_table import labels, perturbed_alike
from engine.analysis.statistics import ClusteredShare, clustered_difference, clustered_share

if TYPE_CHECKING:
    import pandas as pd

ALL = ""  # as a task: all questions
PLACES = 3  # decimals of a printed share: tenths of a percent
Verdict = Literal["above", "below", "undecided", "unknown"]


@dataclass(frozen=True)
class ChoiceAccuracy:
    """One label's answers to the questions of one task, or of all (ALL).

    accuracy: over the questions with an answer; None if there are none.  answers: results with an
    answer, of which `unreadable` name no option; failed: results without an answer; left_out:
    answers that are not judged.  commonest: the most frequent right letter, "" for texts per task.
    likeliest: accuracy of the letter with the highest log-probability, where it is known; agree:
    how often the answer names the same letter.
    """

    label: str
    task: str
    accuracy: ClusteredShare | None
    right: float
    answers: int
    unreadable: int
    failed: int
    left_out: int
    chance: float | None
    commonest: str
    always: float | None
    verdict: Verdict
    likeliest: ClusteredShare | None
    agree: float | None

    @property
    def questions(self) -> int:
        return self.accuracy.n if self.accuracy else 0


@dataclass(frozen=True)
class ChoicePair:
    """Two labels on the questions that both answered: accuracy of a minus that of b.  only_a,
    only_b: questions that only one of them got right, repeats as their mean."""

    a: str
    b: str
    difference: ClusteredShare
    only_a: float
    only_b: float
    verdict: Verdict


def accuracies(table: pd.DataFrame) -> tuple[ChoiceAccuracy, ...]:
    """Per label over all questions, then per task where there are several; () without choices."""
    asked = _asked(table)
    found = []
    for label in labels(table):
        lines = asked[asked["label"] == label]
        tasks = list(dict.fromkeys(lines["question_task"]))
        if len(lines):
            found.append(_accuracy(label, ALL, lines))
        if len(tasks) > 1:
            found += [_accuracy(label, one, lines[lines["question_task"] == one]) for one in tasks]
    return tuple(found)


def compare_all(table: pd.DataFrame) -> tuple[ChoicePair, ...]:
    """Each pair of labels with common questions and inputs perturbed alike, over all tasks."""
    scored = {label: per_question(lines) for label, lines in judged(_asked(table)).groupby("label")}
    found = []
    for a, b in combinations([label for label in labels(table) if label in scored], 2):
        both = scored[a].join(scored[b][["value"]], how="inner", rsuffix="_b")
        if both.empty or not perturbed_alike(table, a, b):
            continue
        values = both["value"] - both["value_b"]
        difference = clustered_difference(values.tolist(), both["sequence"].tolist())
        only = float(values.clip(lower=0).sum()), float((-values).clip(lower=0).sum())
        found.append(ChoicePair(a, b, difference, *only, _verdict(difference, 0.0)))
    return tuple(found)


def _asked(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["choices"] > 0) & (table["phase"] == "measured")]


def judged(lines: pd.DataFrame) -> pd.DataFrame:
    return lines[(lines["right"] != "") & ~lines["off_script"].astype(bool)]


def per_question(lines: pd.DataFrame, column: str = "choice") -> pd.DataFrame:
    """A line per question: sequence, and the mean of its repeats' right answers (value)."""
    right = (lines[column] == lines["right_letter"]).astype(float)
    grouped = lines.assign(value=right).groupby("sample", sort=False)
    return grouped.agg(sequence=("cluster", "first"), value=("value", "mean"))


def _accuracy(label: str, task: str, lines: pd.DataFrame) -> ChoiceAccuracy:
    answered, counted = lines[lines["error"] == ""], judged(lines)
    accuracy, chance = _share(per_question(counted)), None
    commonest, always = "", None
    if accuracy is not None:
        questions = counted.drop_duplicates("sample")
        chance = float((1 / questions["choices"].astype(float)).mean())
        if (questions["choice_form"] == "words").all():
            texts = questions.groupby("question_task")["right_choice"]
            always = sum(int(some.value_counts().iloc[0]) for _, some in texts) / len(questions)
        else:
            counts = questions["right_letter"].value_counts().sort_index()
            commonest, always = str(counts.idxmax()), float(counts.max() / len(questions))
    weighed = counted[counted["likeliest"] != ""]
    same = (weighed["choice"] == weighed["likeliest"]).astype(float)
    return ChoiceAccuracy(
        label=label,
        task=task,
        accuracy=accuracy,
        right=float(per_question(counted)["value"].sum()),
        answers=len(answered),
        unreadable=int((answered["choice"] == "").sum()),
        failed=len(lines) - len(answered),
        left_out=len(answered) - len(counted),
        chance=chance,
        commonest=commonest,
        always=always,
        verdict=_verdict(accuracy, chance),
        likeliest=_share(per_question(weighed, "likeliest")),
        agree=float(same.mean()) if len(same) else None,
    )


def _share(values: pd.DataFrame) -> ClusteredShare | None:
    if values.empty:
        return None
    return clustered_share(values["value"].tolist(), values["sequence"].tolist())


def _verdict(share: ClusteredShare | None, equal: float | None) -> Verdict:
    if share is None or equal is None or share.low is None or share.high is None:
        return "unknown"
    limit = round(equal, PLACES)
    if round(share.low, PLACES) > limit:
        return "above"
    return "below" if round(share.high, PLACES) < limit else "undecided"

"""Answers against known content and against each other, and the samples where they differ most.
Only the content of demo scenes is known, so only they have an accuracy; a word overlap is not an
accuracy.

Accuracy on multiple-choice questions is per model and task, against chance, and in pairs.  The
figures are defined in docs/results.md (Accuracy).  Intervals are clustered by sequence
(statistics.py).  A verdict needs an interval that leaves chance, or a difference of 0, out as
printed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from engine.analysis import pairs
from engine.analysis.answer_reading import (
    ATTRIBUTES,
    asked_content,
    is_scene,
    read_attributes,
    read_statements,
    score,
)
from engine.analysis.model_summary import BY_NAME
from engine.analysis.results_table import answered, labels, of_both, perturbed_alike
from engine.analysis.statistics import ClusteredShare, clustered_difference, clustered_share
from engine.quoting import count, joined

if TYPE_CHECKING:
    import pandas as pd

ALL = ""  # as a task: all questions
PLACES = 3  # decimals of a printed share: tenths of a percent
ChoiceVerdict = Literal["above", "below", "undecided", "unknown"]


@dataclass(frozen=True)
class AttributeScore:
    """accuracy: right answers / n, None if the model never states the attribute.

    n: the samples that have the attribute; of multiple-choice questions only those about it.
    claimed: the share of answers that state it; majority: the accuracy of always naming the most
    frequent value.
    """

    label: str
    attribute: str
    n: int
    accuracy: float | None
    claimed: float
    majority: float


@dataclass(frozen=True)
class OverlapScore:
    """Word F1 between answers and references, over the n results that have both."""

    label: str
    n: int
    median: float
    low_quarter: float
    high_quarter: float


def attributes(table: pd.DataFrame) -> tuple[AttributeScore, ...]:
    """Per label and attribute over demo scenes, without questions that a model was not trained
    on; the first measured answer of each sample counts."""
    found = []
    lines = _first_answers(table[~table["off_script"].astype(bool)])
    lines = lines[lines["truth"].map(is_scene).astype(bool)]
    for label in labels(lines):
        some = lines[lines["label"] == label]
        claims = [read_attributes(text) for text in some["text"]]
        asked = map(asked_content, some["truth"], some["question_task"])
        for name, row in score(list(asked), claims, ATTRIBUTES).items():
            right = row["accuracy"] if row["claimed"] else None
            shares = right, row["claimed"], row["majority"]
            found.append(AttributeScore(label, name, int(row["n"]), *shares))
    return tuple(found)


def overlaps(table: pd.DataFrame) -> tuple[OverlapScore, ...]:
    """Per label, over samples with a reference that are not demo scenes."""
    found = []
    lines = _first_answers(table[~table["off_script"].astype(bool)])
    lines = lines[(lines["reference"] != "") & ~lines["truth"].map(is_scene).astype(bool)]
    for label in labels(lines):
        some = lines[lines["label"] == label]
        texts = zip(some["text"], some["reference"], strict=True)
        values = [value for both in texts if (value := word_f1(*both)) is not None]
        if values:
            low, middle, high = (float(q) for q in np.percentile(values, [25, 50, 75]))
            found.append(OverlapScore(label, len(values), middle, low, high))
    return tuple(found)


def _first_answers(table: pd.DataFrame) -> pd.DataFrame:
    """One answer per label and sample; a cold run gives the same answer as a warm one."""
    return answered(table).drop_duplicates(["label", "sample"])


NAME = "word F1"
_WORD = re.compile(r"\w+")
_PIECE = re.compile(r"\s*\S+")
Holder = Literal["both", "first", "second"]  # which of two texts has a piece


def word_f1(first: str, second: str) -> float | None:
    """From 0 (no word shared) to 1 (the same words); None if neither text has a word."""
    a, b = (_WORD.findall(text.lower()) for text in (first, second))
    if not a and not b:
        return None
    shared = sum((Counter(a) & Counter(b)).values())
    return 2 * shared / (len(a) + len(b))


def difference(first: str, second: str) -> list[tuple[Holder, str]]:
    """Both texts as pieces in reading order; each piece says which text has it."""
    a, b = _PIECE.findall(first), _PIECE.findall(second)
    matcher = SequenceMatcher(None, [p.strip() for p in a], [p.strip() for p in b], autojunk=False)
    pieces = list[tuple[Holder, str]]()
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(("both", "".join(a[i:j])))
            continue
        pieces += [("first", "".join(a[i:j]))] if i < j else []
        pieces += [("second", "".join(b[k:m]))] if k < m else []
    return pieces


Judgement = Literal["right", "wrong", "unclear", "not said", "not asked", "not judged"]


@dataclass(frozen=True)
class Statement:
    """values: none if it states none, several if it contradicts itself.  verdict: "right" or
    "wrong" if the question asks for the attribute and the content is known; "not asked": neither
    asked nor said; "not judged": said, but not asked for, or the content is not known."""

    values: tuple[str, ...]
    verdict: Judgement


@dataclass(frozen=True)
class AttributeRow:
    """truth: the known value, or None; statements: one per answer; contradicted: two differ."""

    attribute: str
    truth: str | None
    statements: tuple[Statement, ...]
    contradicted: bool


def compare(
    answers: Sequence[str], truth: Mapping[str, str], asked: Collection[str]
) -> tuple[AttributeRow, ...]:
    """A row per attribute that an answer states or that is known and asked for.  Contradictions
    come first.  `truth` and `asked` are empty where not known."""
    said = [read_statements(answer) for answer in answers]
    rows = []
    for name in ATTRIBUTES:
        values, right, wanted = [one.get(name, ()) for one in said], truth.get(name), name in asked
        if any(values) or (wanted and right is not None):
            cells = tuple(Statement(some, _verdict(some, right, wanted)) for some in values)
            contradicted = len({some for some in values if len(some) == 1}) > 1
            rows.append(AttributeRow(name, right, cells, contradicted))
    return tuple(sorted(rows, key=lambda row: not row.contradicted))


def sentence(answers: Sequence[str]) -> str:
    """Whether the answers agree; "" for fewer than two."""
    if len(answers) < 2:
        return ""
    rows = compare(answers, {}, ())
    if contradicted := [f"the {row.attribute}" for row in rows if row.contradicted]:
        return f"The answers contradict each other about {joined(contradicted)}."
    states = [sum(len(one.values) == 1 for one in row.statements) for row in rows]
    if stated := sum(number > 1 for number in states):
        whole = states.count(len(answers))
        of_all = "" if whole == stated else f", {whole} of them stated by all"
        return f"The answers agree: no contradiction in {count(stated, 'attribute')}{of_all}."
    return "The answers state nothing that can be compared: read them."


def _verdict(values: tuple[str, ...], truth: str | None, asked: bool) -> Judgement:
    if not values:
        return "not said" if asked else "not asked"
    if len(values) > 1:
        return "unclear"
    if truth is None or not asked:
        return "not judged"
    return "right" if values[0] == truth else "wrong"


# Which samples to look at first.
@dataclass(frozen=True)
class DeckCard:
    """contradictions: (attribute, the value of a, the value of b).  overlap: word F1, None if
    neither answer has a word."""

    sample: str
    contradictions: tuple[tuple[str, str, str], ...]
    overlap: float | None


def deck(table: pd.DataFrame, a: str, b: str) -> tuple[DeckCard, ...]:
    """Samples where a and b answered the same question: most contradictions first, then the least
    overlap, then by id.  The first measured answer of each counts.  An answer to a question that a
    demo model was not trained on contradicts nothing."""
    lines = _first_answers(table)
    columns = ["sample", "prompt", "text", "off_script"]
    sides = [lines.loc[lines["label"] == label, columns] for label in (a, b)]
    both = sides[0].merge(sides[1], on=["sample", "prompt"]).drop(columns="prompt")
    cards = []
    for sample, first, first_off, second, second_off in both.itertuples(index=False):
        rows = () if first_off or second_off else compare((first, second), {}, ())
        values = [
            (row.attribute, row.statements[0].values[0], row.statements[1].values[0])
            for row in rows
            if row.contradicted
        ]
        cards.append(DeckCard(sample, tuple(values), word_f1(first, second)))
    # Cards without an overlap come last: it is at most 1.
    least = {card.sample: 2.0 if card.overlap is None else card.overlap for card in cards}
    order = sorted(cards, key=lambda card: (least[card.sample], card.sample))
    return tuple(sorted(order, key=lambda card: -len(card.contradictions)))


def answered_by_both(table: pd.DataFrame, a: str, b: str) -> int:
    """The number of samples that a and b answered, with the same question or not."""
    return int(of_both(answered(table), a, b)[0]["sample"].nunique())


def by_disagreement(table: pd.DataFrame) -> pd.DataFrame:
    """Columns sample, sequence, overlap (mean word F1 over all pairs of labels), answers.  Labels
    whose inputs were not perturbed alike form no pair.  Lowest overlap first, without samples that
    fewer than two labels answered."""
    import pandas as pd

    rows = []
    for sample, some in _first_answers(table).groupby("sample", sort=False):
        groups = (same["text"] for _, same in some.groupby("perturb", sort=False))
        scores = [word_f1(*pair) for texts in groups for pair in combinations(texts, 2)]
        known = [score for score in scores if score is not None]
        if known:
            overlap = sum(known) / len(known)
            rows.append((sample, some["sequence"].iloc[0], overlap, len(some)))
    found = pd.DataFrame(rows, columns=["sample", "sequence", "overlap", "answers"])
    return found.sort_values("overlap", kind="stable", ignore_index=True)


def by_ratio(table: pd.DataFrame, a: str, b: str, metric: str = "total") -> pd.DataFrame:
    """Columns sample, sequence, a, b, ratio (a / b), the greatest ratio first."""
    both = pairs.paired(table, a, b, BY_NAME[metric])
    both = both[both["b"] > 0]
    found = both.assign(ratio=both["a"] / both["b"])
    return found.sort_values("ratio", ascending=False, kind="stable", ignore_index=True)


# Multiple-choice questions.
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
    verdict: ChoiceVerdict
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
    verdict: ChoiceVerdict


def choices(table: pd.DataFrame) -> tuple[ChoiceAccuracy, ...]:
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


def choice_pairs(table: pd.DataFrame) -> tuple[ChoicePair, ...]:
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
        found.append(ChoicePair(a, b, difference, *only, _against(difference, 0.0)))
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
        verdict=_against(accuracy, chance),
        likeliest=_share(per_question(weighed, "likeliest")),
        agree=float(same.mean()) if len(same) else None,
    )


def _share(values: pd.DataFrame) -> ClusteredShare | None:
    if values.empty:
        return None
    return clustered_share(values["value"].tolist(), values["sequence"].tolist())


def _against(share: ClusteredShare | None, equal: float | None) -> ChoiceVerdict:
    if share is None or equal is None or share.low is None or share.high is None:
        return "unknown"
    limit = round(equal, PLACES)
    if round(share.low, PLACES) > limit:
        return "above"
    return "below" if round(share.high, PLACES) < limit else "undecided"

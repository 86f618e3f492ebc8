"""Scores of answers: attribute accuracy for demo scenes, word overlap for other references.

Boundary: a table of results in, frozen scores out.  Only the content of demo scenes is known, so
only they have an accuracy; a word overlap is not an accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from engine.analysis.answer_reading import read_attributes, score
from engine.analysis.results_table import labels
from engine.analysis.scene_attributes import ATTRIBUTES, asked_content, is_scene
from engine.analysis.word_overlap import word_f1

if TYPE_CHECKING:
    import pandas as pd


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
    """Per label and attribute over demo scenes; the first measured answer of each sample counts."""
    found = []
    lines = _answers(table)
    lines = lines[lines["truth"].map(is_scene).astype(bool)]
    for label in labels(lines):
        some = lines[lines["label"] == label]
        claims = [read_attributes(text) for text in some["text"]]
        asked = map(asked_content, some["truth"], some["question_task"])
        for name, row in score(list(asked), claims, ATTRIBUTES).items():
            accuracy = row["accuracy"] if row["claimed"] else None
            rates = (accuracy, row["claimed"], row["majority"])
            found.append(AttributeScore(label, name, int(row["n"]), *rates))
    return tuple(found)


def overlaps(table: pd.DataFrame) -> tuple[OverlapScore, ...]:
    """Per label, over samples with a reference that are not demo scenes."""
    found = []
    lines = _answers(table)
    lines = lines[(lines["reference"] != "") & ~lines["truth"].map(is_scene).astype(bool)]
    for label in labels(lines):
        some = lines[lines["label"] == label]
        pairs = zip(some["text"], some["reference"], strict=True)
        values = [value for pair in pairs if (value := word_f1(*pair)) is not None]
        if values:
            low, middle, high = (float(q) for q in np.percentile(values, [25, 50, 75]))
            found.append(OverlapScore(label, len(values), middle, low, high))
    return tuple(found)


def _answers(table: pd.DataFrame) -> pd.DataFrame:
    """One answer per label and sample; a cold run gives the same answer as a warm one.

    Answers to questions that a demo model was not trained on are left out.
    """
    lines = table[(table["phase"] == "measured") & (table["error"] == "")]
    lines = lines[~lines["off_script"].astype(bool)]
    return lines.drop_duplicates(["label", "sample"])

"""Sorts samples: by disagreement of the answers, or by ratio."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from engine.analysis import agreement, pairs
from engine.analysis.agreement import word_f1
from engine.analysis.metrics import BY_NAME

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class DeckCard:
    """A sample that two labels answered.

    contradictions: (attribute, the value of a, the value of b).  overlap: word F1, None if neither
    answer has a word.
    """

    sample: str
    contradictions: tuple[tuple[str, str, str], ...]
    overlap: float | None


def deck(table: pd.DataFrame, a: str, b: str) -> tuple[DeckCard, ...]:
    """Samples where a and b answered the same question: most contradictions first, then the least
    overlap, then by id.  The first measured answer of each counts.

    An answer to a question that a demo model was not trained on contradicts nothing.
    """
    lines = table[(table["phase"] == "measured") & (table["error"] == "")]
    lines = lines.drop_duplicates(["label", "sample"])
    columns = ["sample", "prompt", "text", "off_script"]
    sides = [lines.loc[lines["label"] == label, columns] for label in (a, b)]
    both = sides[0].merge(sides[1], on=["sample", "prompt"])
    cards = [_card(*values) for values in both.drop(columns="prompt").itertuples(index=False)]
    return tuple(sorted(cards, key=_disagreement))


def answered_by_both(table: pd.DataFrame, a: str, b: str) -> int:
    """The number of samples that a and b answered, with the same question or not."""
    lines = table[(table["phase"] == "measured") & (table["error"] == "")]
    sides = [{*lines.loc[lines["label"] == label, "sample"]} for label in (a, b)]
    return len(sides[0] & sides[1])


def _card(sample: str, a: str, a_off: bool, b: str, b_off: bool) -> DeckCard:
    found = {} if a_off or b_off else agreement.contradictions((a, b))
    said = tuple((name, str(one), str(other)) for name, (one, other) in found.items())
    return DeckCard(sample, said, word_f1(a, b))


def _disagreement(card: DeckCard) -> tuple[int, float, str]:
    overlap = 2.0 if card.overlap is None else card.overlap
    return -len(card.contradictions), overlap, card.sample


def by_disagreement(table: pd.DataFrame) -> pd.DataFrame:
    """Columns sample, sequence, overlap (mean word F1 over all pairs of labels), answers.

    Labels whose inputs were not perturbed alike form no pair.  Lowest overlap first, without
    samples that fewer than two labels answered.
    """
    import pandas as pd

    lines = table[(table["phase"] == "measured") & (table["error"] == "")]
    lines = lines.drop_duplicates(["label", "sample"])
    rows = []
    for sample, some in lines.groupby("sample", sort=False):
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

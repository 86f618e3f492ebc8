"""Sorts samples: by disagreement of the answers, or by ratio.

Boundary: a table of results in, a table of samples out.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from engine.analysis import pairs
from engine.analysis.metrics import BY_NAME
from engine.analysis.word_overlap import word_f1

if TYPE_CHECKING:
    import pandas as pd


def by_disagreement(table: pd.DataFrame) -> pd.DataFrame:
    """Columns sample, sequence, overlap (mean word F1 over all pairs of labels), answers.

    Lowest overlap first, without samples that fewer than two labels answered.
    """
    import pandas as pd

    lines = table[(table["phase"] == "measured") & (table["error"] == "")]
    lines = lines.drop_duplicates(["label", "sample"])
    rows = []
    for sample, some in lines.groupby("sample", sort=False):
        scores = [word_f1(*pair) for pair in combinations(some["text"], 2)]
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

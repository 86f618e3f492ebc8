"""Records of a file as a grid of plain text and numbers, recorded beside corrected.

Boundary: records in, a table out; a grid shows its cells as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.published.audit import AuditFinding
from engine.published.read import AnswerRecord, ResultFile, milliseconds
from ui.widgets.text import count

if TYPE_CHECKING:
    import pandas as pd

TALLEST, ROW = 420, 35  # pixels


def concerned(file: ResultFile, finding: AuditFinding) -> list[tuple[AnswerRecord, AnswerRecord]]:
    """(recorded, corrected) of the records that a finding names."""
    paths = set(finding.paths)
    both = zip(file.records, file.corrected, strict=True)
    return [
        (recorded, corrected)
        for recorded, corrected in both
        if recorded.path in paths and finding.model in ("", recorded.model)
    ]


def lines(both: Sequence[tuple[AnswerRecord, AnswerRecord]]) -> pd.DataFrame:
    """One line per record: its path, its counts, its recorded times in ms."""
    import pandas as pd

    found: list[dict[str, Any]] = []
    for recorded, corrected in both:
        line: dict[str, Any] = {
            "where": recorded.path,
            "model": recorded.model,
            "sample": recorded.sample,
            "tokens, recorded": recorded.tokens,
            "tokens, corrected": corrected.tokens,
            "context, recorded": recorded.context,
            "context, corrected": corrected.context,
        }
        for key, value in recorded.times.items():
            line[f"{key.removesuffix('_ms')} (ms)"] = milliseconds(key, value)
        found.append(line | {"answer": recorded.text})
    return pd.DataFrame(found).dropna(axis="columns", how="all")


def grid(table: pd.DataFrame, key: str, what: str) -> None:
    """The table with a maximum height; `what`: its description."""
    if table.empty:
        st.caption("There are no records.")
        return
    numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in _floats(table)}
    st.dataframe(
        table,
        hide_index=True,
        height=min(TALLEST, ROW * (len(table) + 1) + 3),
        column_config=numbers,
        key=key,
        alt=f"{what}: {count(len(table), 'line')}.",
    )


def _floats(table: pd.DataFrame) -> Iterable[str]:
    return [str(name) for name in table.columns if table[name].dtype == "float64"]

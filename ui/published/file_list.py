"""The files (kind, amount, why one could not be read), and records of a file as a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine.analysis.acceptance import amount
from engine.published.audit import SEVERITIES, AuditFinding
from engine.published.read import AnswerRecord, ResultFile, milliseconds
from engine.published.read.who_answered import disputed
from engine.published.read.who_answered import shown as identity_name
from engine.quoting import NONE
from engine.report.blocks import ReportTable
from ui.published.opened_sets import Audited, OpenedSets
from ui.widgets.text import count

if TYPE_CHECKING:
    import pandas as pd

TALLEST, ROW = 420, 35  # pixels of a grid
STATUS = {"ok": "read", "failed": "the run failed", "unknown": "not usable"}
COLUMNS = ("file", "group", "status", "models", "records", "errors", "findings")
WORDS = 4


def table(found: OpenedSets) -> ReportTable:
    """One row per file."""
    rows = tuple(_row(item, found.corrected) for item in found.items)
    caption = (
        "records: samples with an answer; errors: samples that the file lists as failed; "
        "findings: errors / warnings / notes."
    )
    return ReportTable(caption, COLUMNS, rows, WORDS)


def _row(item: Audited, corrected: bool) -> tuple[str, ...]:
    file = item.file
    known = file.status != "unknown"
    return (
        item.name,
        str(file.group) if known else "unknown",
        STATUS[file.status],
        _models(file, corrected) or NONE,
        amount(file.samples, file.clips) if known else NONE,
        f"{len(file.failures):,}" if known else NONE,
        " / ".join(f"{found:,}" for found in severities(item)) if known else NONE,
    )


def _models(file: ResultFile, corrected: bool) -> str:
    """The first few names."""
    every = (name(file, model, corrected) + mark(file, model, corrected) for model in file.models)
    names = list(dict.fromkeys(every))
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return "; ".join(names[:2]) + more  # a name may hold a comma


def label(file: ResultFile, model: str, corrected: bool) -> str:
    """The shown name of a model, with the file's key if they differ."""
    shown = name(file, model, corrected)
    own = "" if shown.lower().endswith(model.lower()) else f" ({model})"
    return f"{shown}{own}{mark(file, model, corrected)}"


def mark(file: ResultFile, model: str, corrected: bool) -> str:
    """The suffix of a recorded label that the evidence contradicts."""
    identity = file.identities.get(model)
    return disputed(identity, corrected) if identity else ""


def name(file: ResultFile, model: str, corrected: bool) -> str:
    """Corrected: the name by the evidence, if there is any.  Recorded: the label."""
    identity = file.identities.get(model)
    return identity_name(identity, corrected) if identity else model


def severities(item: Audited) -> list[int]:
    return [sum(one.severity == level for one in item.findings) for level in SEVERITIES]


def unread(found: OpenedSets) -> list[str]:
    """A sentence for each file without figures."""
    return [item.file.message for item in found.items if item.file.message]


def summary(found: OpenedSets) -> str:
    """The set in one sentence."""
    status = [item.file.status for item in found.items]
    parts = [f"{count(len(status), 'file')}: {status.count('ok'):,} with results"]
    if failed := status.count("failed"):
        parts.append(f"{failed:,} of a failed run")
    if unknown := status.count("unknown"):
        parts.append(f"{unknown:,} that cannot be used")
    answers = sum(len(item.file.records) for item in found.items)
    return f"{', '.join(parts)}; {count(answers, 'answer')} in all."


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
    numbers = {
        str(name): st.column_config.NumberColumn(format="%.4g")
        for name in table.select_dtypes("float64")
    }
    st.dataframe(
        table,
        hide_index=True,
        height=min(TALLEST, ROW * (len(table) + 1) + 3),
        column_config=numbers,
        key=key,
        alt=f"{what}: {count(len(table), 'line')}.",
    )

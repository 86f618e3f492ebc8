"""Own runs and recorded files side by side in one chart and one table."""

from __future__ import annotations

import streamlit as st

from engine.analysis.model_summary import find, stage_medians
from engine.analysis.results_table import LENSES
from engine.palette import UNACCOUNTED
from engine.published.read import ResultFile, part_bars
from engine.published.read.part_bars import Bar
from engine.quoting import NONE, number
from engine.report import charts
from engine.report.blocks import ReportTable
from engine.types import STAGES
from ui.published import file_list
from ui.published.opened_sets import OpenedSets
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, notices

HERE, ELSEWHERE = "measured here", "recorded elsewhere"
FIRST = 2  # files selected at first
MOST = 8
COLUMNS = ("model", "where", "n", *(f"{part} (ms)" for part in (*STAGES, UNACCOUNTED)),
           "total (ms)", "new tokens")  # fmt: skip
Line = tuple[str, str, Bar]  # label, where, what is drawn


def show(runs: OpenedRuns, found: OpenedSets) -> None:
    """The chart and the table; the visitor chooses the files."""
    names = _names(found)
    chosen = st.multiselect(
        "Recorded files",
        names,
        _first(found, names),
        key="results_beside",
        bind=found.bind,
        max_selections=MOST,
        help=f"At most {MOST} at a time.",
    )
    lines = [*_own(runs), *_recorded(found, chosen)]
    if not lines:
        st.caption("Neither the runs nor the files have times.")
        return
    parts = {label: bar.parts for label, _, bar in lines}
    st.altair_chart(charts.stage_bars(parts), alt=charts.stage_words(parts), width="stretch")
    blocks.draw([table(lines, found.corrected)], "imported_beside")
    notices.small(
        "Own runs and recorded files differ in machines, checkpoints, prompts and answer lengths. "
        "Compare the parts within a bar, not the lengths of two bars.",
        "imported_beside",
    )


def _names(found: OpenedSets) -> list[str]:
    return [item.name for item in found.usable if part_bars.bars(item.file, found.corrected)]


def _first(found: OpenedSets, names: list[str]) -> list[str]:
    """The files with the most timed stages."""
    timed = {
        item.name: max(len(bar.parts) for bar in part_bars.bars(item.file, found.corrected))
        for item in found.usable
        if item.name in names
    }
    return sorted(names, key=lambda name: -timed[name])[:FIRST]


def table(lines: list[Line], corrected: bool) -> ReportTable:
    """Medians, a line per model."""
    rows = tuple(
        (
            label,
            where,
            f"{bar.n:,}",
            *(number(bar.parts.get(part)) for part in (*STAGES, UNACCOUNTED)),
            number(bar.total),
            number(bar.tokens),
        )
        for label, where, bar in lines
    )
    values = "corrected" if corrected else "as recorded"
    return ReportTable(
        f"Medians; recorded files {values}; {NONE} is not measured", COLUMNS, rows, 2
    )


def _own(runs: OpenedRuns) -> list[Line]:
    """The runs' medians at the first choice of lengths that has results."""
    for name in LENSES:
        if not opened_runs.look(runs, name).table.empty:
            break
    else:
        return []
    figures = opened_runs.figures(runs, name)
    found = []
    for label, parts in stage_medians(figures, runs.labels).items():
        total, tokens = (find(figures, label, one) for one in ("total", "new_tokens"))
        bar = Bar(
            model=label,
            n=total.n if total else 0,
            parts=parts,
            total=total.median if total else None,
            tokens=tokens.median if tokens else None,
        )
        if parts:
            found.append((f"{label} ({HERE})", HERE, bar))
    return found


def _recorded(found: OpenedSets, chosen: list[str]) -> list[Line]:
    return [
        (f"{name} · {item.name.removesuffix('.json')}", ELSEWHERE, bar)
        for item in found.usable
        if item.name in chosen
        for name, bar in _short(found, item.file)
    ]


def _short(found: OpenedSets, file: ResultFile) -> list[tuple[str, Bar]]:
    """Each bar with its model's name, which is unique within the file."""
    drawn = part_bars.bars(file, found.corrected, "median")
    names = [
        file_list.name(file, bar.model, found.corrected)
        + file_list.mark(file, bar.model, found.corrected)
        for bar in drawn
    ]
    return [
        (name if names.count(name) == 1 else f"{name} ({bar.model})", bar)
        for name, bar in zip(names, drawn, strict=True)
    ]

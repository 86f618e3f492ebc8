"""Own runs and recorded files side by side in one chart and one table."""

from __future__ import annotations

import streamlit as st

from engine.analysis.model_summary import find, stage_medians
from engine.analysis.results_table import LENSES
from engine.palette import UNACCOUNTED
from engine.published.claims.waterfall import named
from engine.published.read import file_summary
from engine.published.read.file_summary import Bar
from engine.quoting import NONE, number
from engine.report import charts
from engine.report.blocks import ChartBlock, Paragraph, ReportTable
from engine.types import STAGES
from ui.published.opened_sets import OpenedSets
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks

HERE, ELSEWHERE = "measured here", "recorded elsewhere"
FIRST = 2  # files selected at first
MOST = 8
COLUMNS = ("model", "where", "n", *(f"{part} (ms)" for part in (*STAGES, UNACCOUNTED)),
           "total (ms)", "new tokens")  # fmt: skip
Bars = dict[str, tuple[str, Bar]]  # where it is from and what is drawn, by label


def show(runs: OpenedRuns, found: OpenedSets) -> None:
    """The chart and the table; the visitor chooses the files, at first those with most stages."""
    files = {file.name: (file, file_summary.bars(file, found.corrected, "median"))
             for file in found.files if file.status == "ok"}  # fmt: skip
    timed = {name: max(len(bar.parts) for bar in bars) for name, (_, bars) in files.items() if bars}
    chosen = st.multiselect(
        "Recorded files",
        list(timed),
        sorted(timed, key=lambda name: -timed[name])[:FIRST],
        key="results_beside",
        bind=found.bind,
        max_selections=MOST,
        help=f"At most {MOST} at a time.",
    )
    lines = _own(runs)
    for file, bars in (files[name] for name in timed if name in chosen):
        names = [named(file, bar.model, found.corrected) for bar in bars]
        for name, bar in zip(names, bars, strict=True):
            unique = name if names.count(name) == 1 else f"{name} ({bar.model})"
            lines[f"{unique} · {file.name.removesuffix('.json')}"] = ELSEWHERE, bar
    if not lines:
        st.caption("Neither the runs nor the files have times.")
        return
    parts = {label: bar.parts for label, (_, bar) in lines.items()}
    rows = tuple(
        (
            label,
            where,
            f"{bar.n:,}",
            *(number(bar.parts.get(part)) for part in (*STAGES, UNACCOUNTED)),
            number(bar.total),
            number(bar.tokens),
        )
        for label, (where, bar) in lines.items()
    )
    values = "corrected" if found.corrected else "as recorded"
    caption = f"Medians; recorded files {values}; {NONE} is not measured"
    warning = (
        "Own runs and recorded files differ in machines, checkpoints, prompts and answer lengths. "
        "Compare the parts within a bar, not the lengths of two bars."
    )
    chart = ChartBlock(charts.stage_words(parts), lambda: charts.stage_bars(parts))
    table = ReportTable(caption, COLUMNS, rows, 2)
    blocks.draw([chart, table, Paragraph(warning)], "imported_beside")


def _own(runs: OpenedRuns) -> Bars:
    """The runs' medians at the first choice of lengths that has results."""
    names = (name for name in LENSES if not opened_runs.look(runs, name).table.empty)
    name = next(names, None)
    figures = opened_runs.figures(runs, name) if name else ()
    bars: Bars = {}
    for label, parts in stage_medians(figures, runs.labels).items():
        total, tokens = (find(figures, label, one) for one in ("total", "new_tokens"))
        if parts:
            whole, new = (one.median if one else None for one in (total, tokens))
            bar = Bar(label, total.n if total else 0, parts, whole, new)
            bars[f"{label} ({HERE})"] = HERE, bar
    return bars

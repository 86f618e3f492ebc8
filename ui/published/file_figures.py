"""One file: who answered, stages and tokens, stage bars, the parts of the difference."""

from __future__ import annotations

import streamlit as st

from engine.published.claims import published_report
from engine.published.claims.waterfall import named, waterfall
from engine.published.read import ResultFile, file_summary
from engine.report import charts
from engine.report.blocks import Block, ChartBlock, Heading, Paragraph
from ui.published import published_charts
from ui.published.audit_view import grid
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, notices


def show(found: OpenedSets) -> None:
    if not found.usable:
        notices.hint("No file of this set has results, so there are no figures.")
        return
    file, corrected = found.choose(found.usable, "published_file"), found.corrected
    figures = published_report.figure_blocks(file, corrected)
    difference = published_report.difference_blocks([file], corrected)
    fall = waterfall(file, corrected)
    chart = [published_charts.difference(fall)] if fall and not fall.nonsense else []
    blocks.draw([*figures, *_bars(file, corrected), *difference, *chart], "imported_figures")
    if st.toggle("Every record", key="published_records", bind="query-params"):
        mode = "corrected" if corrected else "as recorded"
        every = file_summary.frame(file, corrected)
        grid(every, "imported_every", f"Every record of {file.name}, {mode}")


def _bars(file: ResultFile, corrected: bool) -> list[Block]:
    bars = file_summary.bars(file, corrected)
    if not bars:
        return [Paragraph("The file has no times of a model, so there are no bars.")]
    parts = {named(file, bar.model, corrected, key=True): bar.parts for bar in bars}
    notes: dict[str, list[str]] = {}
    for bar in bars:
        for note in bar.notes:
            notes.setdefault(note, []).append(bar.model)
    lines = [f"{_few(models)}: {note}." for note, models in notes.items()]
    words = charts.stage_words(parts, "mean")
    return [
        Heading(3, "Stages"),
        ChartBlock(words, lambda: charts.stage_bars(parts, "mean")),
        *([Paragraph("\n".join(lines))] if lines else []),
    ]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more

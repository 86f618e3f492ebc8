"""One file: who answered, stages and tokens, stage bars, the parts of the difference."""

from __future__ import annotations

import streamlit as st

from engine.published.claims import published_report
from engine.published.claims.waterfall import Waterfall, named, waterfall
from engine.published.read import ResultFile, part_bars
from engine.report import charts
from engine.report.blocks import Block, ChartBlock, Heading, Paragraph
from ui.charts import published_charts
from ui.published.audit_view import grid
from ui.published.opened_sets import OpenedSets
from ui.widgets import blocks, notices


def show(found: OpenedSets) -> None:
    if not found.usable:
        notices.hint("No file of this set has results, so there are no figures.")
        return
    file = found.choose(found.usable, "results_file")
    parts = [*_bars(file, found.corrected), *_difference(file, found.corrected)]
    figures = published_report.figure_blocks(file, found.corrected)
    blocks.draw([*figures, *parts], "imported_figures")
    if st.toggle("Every record", key="results_records", bind="query-params"):
        mode = "corrected" if found.corrected else "as recorded"
        every = part_bars.frame(file, found.corrected)
        grid(every, "imported_every", f"Every record of {file.name}, {mode}")


def _bars(file: ResultFile, corrected: bool) -> list[Block]:
    bars = part_bars.bars(file, corrected)
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


def _difference(file: ResultFile, corrected: bool) -> list[Block]:
    fall = waterfall(file, corrected)
    if fall is None:
        return []
    heading = Heading(3, "Parts of the difference")
    if fall.nonsense:
        better = None if corrected else waterfall(file)
        plausible = better is not None and not better.nonsense
        hint = " The corrected values are plausible: use the switch above." if plausible else ""
        return [heading, Paragraph(f"{fall.nonsense}{hint}")]
    joined = [f" {part.name}: not timed separately for both models."
              for part in fall.parts if " + " in part.name]  # fmt: skip
    warm = " A stage with a warm-up is replaced by the mean of the others." if corrected else ""
    short = "" if file.group.total_is_whole_run else " These totals do not include loading."
    note = (
        "Decoding is split at EventGPT's own speed: first the number of tokens, then the time per "
        f"token ({fall.definition}). Shorter answers take less time.{''.join(joined)}{warm}{short}"
    )
    return [heading, Paragraph(_sentence(fall)), published_charts.difference(fall), Paragraph(note)]


def _sentence(fall: Waterfall) -> str:
    """The ratio of totals, and the two factors of the ratio of decoding times."""
    ratio = fall.slow_ms / fall.fast_ms
    totals = f"{fall.slow} takes {ratio:.2f} times {fall.fast}'s mean total time."
    if fall.tokens_ratio is None or fall.per_token_ratio is None:
        return totals
    return (
        f"{totals} It has {fall.tokens_ratio:.2f} times as many tokens and takes "
        f"{fall.per_token_ratio:.2f} times as long per token ({fall.definition})."
    )

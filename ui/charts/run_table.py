"""Stage times of single runs as a table, with their sources."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from engine.analysis.compared import ComparedModel, RunRange
from engine.analysis.metrics import BY_NAME
from engine.palette import UNACCOUNTED, family_colour
from engine.types import STAGES, RunResult, Span
from ui.widgets.text import escape, ms

SOURCE_WORDS = {
    "measured": "measured",
    "cached": "read from the cache",
    "hook": "measured by a hook",
    "derived": "derived: total minus the hook's time",
}
STEPS = {f"decode.{name}": BY_NAME[name].label for name in ("prefill", "steps")}
MISSING = "not measured"
UNKNOWN = "unknown"
THIS_RUN, ORIGINAL = BY_NAME["total"].label, BY_NAME["uncached_total"].label
REUSED = "prompt prefix reused from memory"


def table(models: Sequence[ComparedModel]) -> pd.DataFrame:
    """The numbers of the bars and their sources: one row per stage, one column per model.

    Labels are escaped, because st.table reads Markdown.
    """
    return pd.DataFrame({escape(model.label): _column(model) for model in models})


def head_style(models: Sequence[ComparedModel], place: str) -> str:
    """CSS that gives each column head of the table in `place` the colour of its model."""
    return "".join(
        f"{place} thead th:nth-child({number}) "
        f"{{ border-bottom: 3px solid {family_colour(model.family)}; }}\n"
        for number, model in enumerate(models, 2)
    )


def _column(model: ComparedModel) -> dict[str, str]:
    cells: dict[str, str] = {stage: _cell(model, stage) for stage in STAGES}
    for name, shown in STEPS.items():
        cells[shown] = _cell(model, name)
    cells[UNACCOUNTED] = _time(model.time("unaccounted"))
    cells[THIS_RUN] = _time(model.time("total"))
    cells[ORIGINAL] = "no cached stage"
    if model.last.cached:  # not known if a prefix was reused
        known = model.last.uncached_total_ms is not None
        cells[ORIGINAL] = _time(model.time("uncached_total")) if known else UNKNOWN
    return cells


def _time(spread: RunRange | None) -> str:
    """A time, or the median of several with their range; "unknown" without any."""
    if spread is None:
        return UNKNOWN
    if spread.runs == 1:
        return ms(spread.median)
    return f"{ms(spread.median)} ({ms(spread.low)} to {ms(spread.high)}, n = {spread.runs:,})"


def source_words(result: RunResult, span: Span) -> str:
    """The source of a stage's time; a reused prefix comes from memory, not from the cache."""
    use = result.prefix
    if span.source == "cached" and use is not None and use.state == "reused":
        return REUSED
    return SOURCE_WORDS[span.source]


def _cell(model: ComparedModel, name: str) -> str:
    span, spread = model.last.span(name), model.time(name)
    if span is None or spread is None:
        return MISSING
    words = f"{_time(spread)}, {source_words(model.last, span)}"
    if span.source != "cached":
        return words
    took = UNKNOWN if span.original_ms is None else ms(span.original_ms)
    return f"{words} (computing time {took})"

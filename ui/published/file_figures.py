"""One file: who answered, stages and tokens, stage bars, the parts of the difference."""

from __future__ import annotations

import streamlit as st

from engine.analysis.acceptance import amount
from engine.published.claims.waterfall import Waterfall, waterfall
from engine.published.read import ResultFile, file_summary, milliseconds
from engine.published.read import part_bars as stages
from engine.published.read.file_summary import AVERAGES, Figures
from engine.quoting import NONE, number
from engine.report import charts
from engine.report.blocks import ReportTable
from ui.charts import published_charts
from ui.published import file_list
from ui.published.opened_sets import Audited, OpenedSets
from ui.widgets import blocks, notices
from ui.widgets.text import count

FILE = "results_file"
FEW = 4  # at most so many models are shown with all times
AGREES = {True: "✔ agrees", False: "✖ contradicts the label", None: "? no evidence"}
COLUMNS = ("model", "what", "n", "mean", "median", "mean without the first")


def choose(
    found: OpenedSets, items: tuple[Audited, ...], key: str = FILE, what: str = "File"
) -> Audited:
    """One of these files (at least one); the choice is in the URL if the files have a link."""
    names = [item.name for item in items]
    name = st.selectbox(what, names, key=key, bind=found.bind)
    return next((item for item in items if item.name == name), items[0])


def show(found: OpenedSets) -> None:
    if not found.usable:
        notices.hint("No file of this set has results, so there are no figures.")
        return
    item = choose(found, found.usable)
    file = item.file
    mode = "corrected" if found.corrected else "as recorded"
    group = f"Group {file.group} · {held(file)}"
    failed = f" · {count(len(file.failures), 'failed sample')}" if file.failures else ""
    notices.small(f"{group}{failed} · values {mode}", "imported_group")
    models = file_summary.models(file)
    blocks.draw([who(models)], "imported_who")
    blocks.draw([table(file, models, found.corrected)], "imported_figures")
    _bars(file, found.corrected)
    _fall(file, found.corrected)
    if st.toggle("Every record", key="results_records", bind="query-params"):
        every = stages.frame(file, found.corrected)
        file_list.grid(every, "imported_every", f"Every record of {file.name}, {mode}")


def held(file: ResultFile) -> str:
    """ "5 samples", or "100 records of 10 clips"."""
    answers = amount(file.samples, file.clips)
    return answers if "records" in answers else count(file.samples, "sample")


def who(models: dict[str, Figures]) -> ReportTable:
    """Claimed names and the evidence in the file."""
    rows = tuple(
        (name, model["claimed"], AGREES[model["agrees"]], model["evidence"])
        for name, model in models.items()
    )
    return ReportTable(
        "Who answered", ("name in the file", "claimed", "agreement", "evidence"), rows, 4
    )


def table(file: ResultFile, models: dict[str, Figures], corrected: bool) -> ReportTable:
    """Stages in ms and tokens; for many models only the times that belong to a stage."""
    values = "corrected values" if corrected else "values as recorded"
    every = len(models) <= FEW
    rows = tuple(
        (file_list.label(file, name, corrected), *row)
        for name, model in models.items()
        for row in _rows(model, corrected, every)
    )
    more = "" if every else "; the report has the other times"
    return ReportTable(f"Stages (ms) and tokens per answer, {values}{more}", COLUMNS, rows, 2)


def _rows(model: Figures, corrected: bool, every: bool) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for key, stage in model["stages"].items():
        part, name = stage["part"], key.removesuffix("_ms")
        values = stage["corrected"] if corrected else stage
        what = f"{name}: {part} (ms)" if part else f"{name} (ms)"
        if part or every:
            cells = _cells(values, key) if values else (NONE, "not measured", NONE, NONE)
            found.append((what, *cells))
    tokens = model["token_averages"]["corrected" if corrected else "recorded"]
    if tokens["n"]:
        found.append(("new tokens", *_cells(tokens)))
    return found


def _cells(values: Figures, key: str = "_ms") -> tuple[str, ...]:
    shown = (values[name] for name in AVERAGES)
    in_ms = (None if value is None else milliseconds(key, value) for value in shown)
    return (f"{values['n']:,}", *map(number, in_ms))


def _bars(file: ResultFile, corrected: bool) -> None:
    found = stages.bars(file, corrected)
    if not found:
        st.caption("The file has no times of a model, so there are no bars.")
        return
    st.subheader("Stages", anchor=False)
    parts = {file_list.label(file, bar.model, corrected): bar.parts for bar in found}
    st.altair_chart(
        charts.stage_bars(parts, "mean"),
        alt=charts.stage_words(parts, "mean"),
        width="stretch",
    )
    notes: dict[str, list[str]] = {}
    for bar in found:
        for note in bar.notes:
            notes.setdefault(note, []).append(bar.model)
    lines = [f"{_few(models)}: {note}." for note, models in notes.items()]
    if lines:
        notices.small("\n".join(lines), "imported_bars")


def _few(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _fall(file: ResultFile, corrected: bool) -> None:
    fall = waterfall(file, corrected)
    if fall is None:
        return
    st.subheader("Parts of the difference", anchor=False)
    if fall.nonsense:
        better = None if corrected else waterfall(file)
        plausible = better is not None and not better.nonsense
        hint = " The corrected values are plausible: use the switch above." if plausible else ""
        st.text(f"{fall.nonsense}{hint}")
        return
    st.text(sentence(fall))
    steps = published_charts.steps(fall)
    st.altair_chart(charts.waterfall(steps), alt=charts.waterfall_words(steps), width="stretch")
    warm = " A stage with a warm-up is replaced by the mean of the others." if corrected else ""
    joined = next((part.name for part in fall.parts if " + " in part.name), "")
    apart = f" {joined}: not timed separately for both models." if joined else ""
    short = "" if file.group.total_is_whole_run else " These totals do not include loading."
    notices.small(
        "Decoding is split at EventGPT's own speed: first the number of tokens, then the time per "
        f"token ({fall.definition}). Shorter answers take less time.{apart}{warm}{short}",
        "imported_fall",
    )


def sentence(fall: Waterfall) -> str:
    """The ratio of totals, and the two factors of the ratio of decoding times."""
    totals = (
        f"{fall.slow} takes {fall.slow_ms / fall.fast_ms:.2f} times {fall.fast}'s mean total time."
    )
    if fall.tokens_ratio is None or fall.per_token_ratio is None:
        return totals
    return (
        f"{totals} It has {fall.tokens_ratio:.2f} times as many tokens and takes "
        f"{fall.per_token_ratio:.2f} times as long per token ({fall.definition})."
    )

"""The end of Comparison: a gate's verdicts on the newer of two chosen runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

import streamlit as st

from engine.analysis import gate
from engine.analysis.gate import GateReport, RunValues
from engine.errors import StageScopeError
from engine.report import drawers, gate_text
from engine.storage.run_store import Run
from ui.results import opened_runs, run_list
from ui.results.opened_runs import Key, OpenedRuns
from ui.results.result_sources import Source
from ui.widgets import blocks, choices, notices
from ui.widgets.text import escape, when

MARGIN, METRICS = "results_gate_margin", "results_gate_metrics"  # in the URL
MARGIN_HELP = "What counts as equal, in percent; of accuracy in percentage points."
METRICS_HELP = (
    "answers: a changed token id is worse. All metrics of all models form one family of tests, so "
    "fewer metrics need fewer samples."
)
Sides = tuple[Source, Source]  # BASE and NEW


def show(opened: OpenedRuns) -> None:
    """Of two runs."""
    base, new = sides = base_and_new(opened.sources)
    notices.small(f"BASE: {_named(base)}\nNEW: {_named(new)}", "results_gate_sides")
    margin, metrics = _how()
    if not metrics:
        notices.hint("Choose at least one metric.")
        return
    try:
        titles = [{one.name: one.label for one in run.header.models} for run in opened.runs]
        both = titles[0].keys() & titles[1].keys()
        same = all(titles[0][name] == titles[1][name] for name in both)
        report = _gated(sides, metrics, margin, titled=same)
    except StageScopeError as error:
        notices.notice(str(error), "results_gate_refused")
    else:
        _report(report, sides)
        _downloads(report, lambda: _gated(sides, metrics, margin, titled=False))
    if not any(side.private for side in sides):
        st.caption("From a terminal, with an exit code for CI:")
        st.code(command(sides, metrics, margin), language=None)


def base_and_new(sources: Sequence[Source]) -> Sides:
    """The pinned baseline and the other run; without one, the older and the newer run."""
    base, new = sorted(sources, key=lambda one: (not one.baseline, one.info.created, one.key))
    return base, new


def _named(source: Source) -> str:
    return f"{source.details.name or when(source.info.created)} · {source.key}"


def _how() -> tuple[float, tuple[str, ...]]:
    """The margin as a share, and the metrics."""
    left, right = st.columns([1, 3])
    first, more = 100 * gate.MARGIN, {"step": 1.0, "format": "%g"}
    margin = choices.number("Margin, %", MARGIN, 0.0, 99.0, first, MARGIN_HELP, left, **more)
    metrics = right.multiselect(
        "Metrics", gate.KNOWN, gate.DEFAULT, key=METRICS, bind="query-params", help=METRICS_HELP
    )
    return float(margin) / 100, tuple(metrics)


def _gated(sides: Sides, metrics: tuple[str, ...], margin: float, titled: bool) -> GateReport:
    """`titled`: models by their labels, which programs and runs with other labels do not know."""
    base, new = (opened_runs.open_((side,)) for side in sides)
    values = (_values(one.key, titled, one.runs[0]) for one in (base, new))
    return _decided(base.key, new.key, titled, metrics, margin, *values)


@st.cache_resource(max_entries=8, show_spinner="Reading the runs …")
def _values(key: Key, titled: bool, _run: Run) -> RunValues:
    return gate.values_of(_run, titled)


@st.cache_resource(max_entries=32, show_spinner="Comparing …")
def _decided(
    base: Key,
    new: Key,
    titled: bool,
    metrics: tuple[str, ...],
    margin: float,
    _base: RunValues,
    _new: RunValues,
) -> GateReport:
    return gate.gate(_base, _new, None if metrics == gate.DEFAULT else metrics, margin)


def _report(report: GateReport, sides: Sides) -> None:
    blocks.draw(gate_text.blocks(report, chart=True), "results_gate")
    for one in report.answers:
        for change in one.changed[: gate_text.MOST]:
            query = {run_list.KEYS: [side.key for side in sides], "results_view": "Samples",
                     "results_sample": change.sample}  # fmt: skip
            name = f"{change.sample}, {one.label}"
            st.page_link("pages/results.py", label=escape(name), query_params=query)


def _downloads(report: GateReport, named: Callable[[], GateReport]) -> None:
    """`named`: the report with the models' names, for programs."""
    name = f"stagescope-gate-{report.base.id}-{report.new.id}"
    files: list[tuple[str, str, str, Callable[[], str]]] = [
        ("Markdown, for a pull request", "md", "text/markdown",
         lambda: drawers.markdown(gate_text.blocks(report))),
        ("JSON", "json", "application/json", lambda: drawers.as_json(gate_text.as_json(named()))),
    ]  # fmt: skip
    with st.container(horizontal=True):
        for title, end, mime, written in files:
            key = f"results_gate_{end}"
            st.download_button(title, written, f"{name}.{end}", mime, key=key, on_click="ignore")


def command(sides: Sides, metrics: tuple[str, ...], margin: float) -> str:
    parts = ["python", "-m", "engine", "gate", *(side.key for side in sides)]
    if metrics != gate.DEFAULT:
        parts += ["--metric", ",".join(metrics)]
    if margin != gate.MARGIN:
        parts += ["--margin", f"{100 * margin:g}%"]
    return shlex.join(parts)

"""The beginning of Comparison: a gate's verdicts on the newer of two chosen runs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

import streamlit as st

from engine import settings
from engine.analysis import gate
from engine.analysis.gate import GateReport, RunValues
from engine.report import drawers, gate_text
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns
from ui.results.result_sources import Source
from ui.widgets import blocks, choices, links, notices
from ui.widgets.text import escape

MARGIN, METRICS = "results_gate_margin", "results_gate_metrics"  # in the URL
MARGIN_HELP = "What counts as equal, in percent; of accuracy in percentage points."
METRICS_HELP = (
    "answers: a changed token id is worse. All metrics of all models form one family of tests, so "
    "fewer metrics need fewer samples."
)
Sides = tuple[Source, Source]  # BASE and NEW


def show(opened: OpenedRuns) -> None:
    """Of two runs."""
    st.subheader("Gate: is the newer run worse?", anchor=False)
    sides = base, new = base_and_new(opened.sources)
    named = f"BASE: {base.name} · {base.key}\nNEW: {new.name} · {new.key}"
    notices.small(named, "results_gate_sides")
    left, right = st.columns([1, 3])
    first, more = 100 * gate.MARGIN, {"step": 1.0, "format": "%g"}
    percent = choices.number("Margin, %", MARGIN, 0.0, 99.0, first, MARGIN_HELP, left, **more)
    margin = float(percent) / 100
    chosen = right.multiselect(
        "Metrics", gate.KNOWN, gate.DEFAULT, key=METRICS, bind="query-params", help=METRICS_HELP
    )
    metrics = tuple(chosen)
    if not metrics:
        notices.hint("Choose at least one metric.")
        return
    titles = [{one.name: one.label for one in run.header.models} for run in opened.runs]
    same = all(titles[0][name] == titles[1][name] for name in titles[0].keys() & titles[1].keys())
    with notices.telling("results_gate_refused"):
        report = _gated(opened, metrics, margin, titled=same)
        _report(report, sides)
        _downloads(report, lambda: _gated(opened, metrics, margin, titled=False))
    if not (base.private or new.private):
        st.caption("From a terminal, with an exit code for CI:")
        st.code(command(sides, metrics, margin), language=None)


def base_and_new(sources: Sequence[Source]) -> Sides:
    """The pinned baseline and the other run; without one, the older and the newer run.  The list
    has the baseline first, then newer runs first."""
    first, second = sources
    return (first, second) if first.baseline else (second, first)


@opened_runs.cached("Comparing …")
def _gated(opened: OpenedRuns, metrics: tuple[str, ...], margin: float, titled: bool) -> GateReport:
    """`titled`: models by their labels, which programs and runs with other labels do not know."""
    base, new = (_values(opened, opened.sources.index(side), titled)
                 for side in base_and_new(opened.sources))  # fmt: skip
    return gate.gate(base, new, None if metrics == gate.DEFAULT else metrics, margin)


@opened_runs.cached("Reading the runs …")
def _values(opened: OpenedRuns, number: int, titled: bool) -> RunValues:
    return gate.values_of(opened.runs[number], titled)


def _report(report: GateReport, sides: Sides) -> None:
    blocks.draw(gate_text.blocks(report, chart=True), "results_gate")
    for one in report.answers:
        for change in one.changed[: gate_text.MOST]:
            name, keys = escape(f"{change.sample}, {one.label}"), [side.key for side in sides]
            links.to_results(name, keys, results_view="Samples", results_sample=change.sample)


def _downloads(report: GateReport, named: Callable[[], GateReport]) -> None:
    """`named`: the report with the models' names, for programs."""
    name = f"stagescope-gate-{report.base.id}-{report.new.id}"
    forms = {
        ".md": (
            "Markdown, for a pull request",
            "text/markdown",
            lambda: drawers.markdown(gate_text.blocks(report)),
        ),
        ".json": ("JSON", "application/json", lambda: drawers.as_json(gate_text.as_json(named()))),
    }
    with st.container(horizontal=True):
        for end, (title, mime, write) in forms.items():
            st.download_button(title, write, f"{name}{end}", mime, on_click="ignore")


def command(sides: Sides, metrics: tuple[str, ...], margin: float) -> str:
    parts = [side.key for side in sides]
    if metrics != gate.DEFAULT:
        parts += ["--metric", ",".join(metrics)]
    if margin != gate.MARGIN:
        parts += ["--margin", f"{100 * margin:g}%"]
    return f"{settings.COMMAND} gate {shlex.join(parts)}"

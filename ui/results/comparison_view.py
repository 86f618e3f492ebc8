"""Two models or runs, sample by sample: a gate's verdicts on the newer one of two runs, paired
differences, and the parts of a speed-up."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from engine import settings
from engine.analysis import gate, model_summary, pairs
from engine.analysis.gate import GateReport, RunValues
from engine.analysis.model_summary import PAIRED
from engine.analysis.results_table import LensName
from engine.report import charts, document, drawers, gate_text
from engine.report.comparison_part import IN_WORDS, paired_table, sentence, speedup_parts
from ui.results import opened_runs, overview
from ui.results.opened_runs import OpenedRuns, Source
from ui.widgets import blocks, choices, links, notices
from ui.widgets.text import count, escape

SAME = "Model A and Model B are the same: choose another Model B."
PAIRED_HELP = (
    "Samples that both answered. Clips of one sequence overlap in time, so each sequence counts "
    "once, with the median of its samples. The figure is the median over sequences with its exact "
    "95 % interval (sign test, six sequences or more). A conclusion is given only if the printed "
    "interval excludes equality."
)
MARGIN, METRICS = "results_gate_margin", "results_gate_metrics"  # in the URL
MARGIN_HELP = "What counts as equal, in percent; of accuracy in percentage points."
METRICS_HELP = (
    "answers: a changed token id is worse. All metrics of all models form one family of tests, so "
    "fewer metrics need fewer samples."
)
Sides = tuple[Source, Source]  # BASE and NEW


def show(opened: OpenedRuns) -> None:
    if len(opened.sources) == 2:
        _gate(opened)
    if len(opened.labels) < 2:
        notices.hint(
            "A comparison needs two models or two runs: choose another run above, or start one "
            "with two models on the Benchmark page."
        )
        return
    a, b = pair(opened)
    if a == b:
        notices.notice(SAME, "results_same")
        return
    name, some = overview.lens_of(opened)
    if not some:
        return
    grouped = [label for label in model_summary.batched(opened.table) if label in (a, b)]
    if grouped:
        notices.notice(f"{' and '.join(grouped)}: {model_summary.APART}", "results_batches")
        every = opened_runs.findings(opened).throughputs
        shown = document.throughput_table([one for one in every if one.label in (a, b)])
        blocks.draw([shown], "results_throughput")
        if not {a, b} <= set(opened_runs.look(opened, name).table["label"]):
            return
    st.subheader("Paired differences", anchor=False, help=PAIRED_HELP)
    comparisons = [opened_runs.comparison(opened, name, a, b, metric) for metric in IN_WORDS]
    with st.container(border=True, key="results_differences"):
        for comparison in comparisons:
            st.text(sentence(replace(comparison, a="A", b="B")))
    st.subheader("Parts of the difference in total time", anchor=False)
    split = pairs.split(opened_runs.look(opened, name).table, a, b)
    if split is None:
        st.caption("No sample has complete, uncached measurements from both.")
    else:  # it claims no more than the test of the total time
        total = next(item for item in comparisons if item.metric == "total")
        *parts, figures = speedup_parts(split, total.verdict)
        blocks.draw(parts, "results_speedup")
        with st.expander("The parts as figures", key="results_parts"):
            blocks.draw([figures], "results_parts")
    _scatter(opened, name, a, b)
    # On demand: with many samples each takes a moment.
    title = f"All metrics, {count(len(PAIRED), 'row')}"
    if st.toggle(title, key="results_every", bind="query-params"):
        found = [opened_runs.comparison(opened, name, a, b, metric.name) for metric in PAIRED]
        blocks.draw([paired_table(a, b, found)], "results_paired")


def pair(opened: OpenedRuns) -> tuple[str, str]:
    """The two chosen labels, with notices of different devices or machine loads."""
    a, b = choices.two(opened.labels, opened_runs.sides(opened), ("results_a", "results_b"))
    overview.say_apart(opened, a, b)
    return a, b


def _scatter(opened: OpenedRuns, name: LensName, a: str, b: str) -> None:
    st.subheader("Sample by sample", anchor=False)
    kind = overview.metric_of([metric.name for metric in PAIRED], "results_scatter_metric")
    both = pairs.paired(opened_runs.look(opened, name).table, a, b, kind)
    if both.empty:
        st.caption("No sample has measured values from both.")
        return
    words = charts.scatter_words(both, a, b, kind)
    chart, key = charts.scatter(both, a, b, kind), "results_scatter"
    st.altair_chart(chart, alt=words, key=key, on_select=_open_point, selection_mode=charts.POINT)
    notices.small(f"{words} Click a point to open its sample.", key)


def _open_point() -> None:
    picked = st.session_state["results_scatter"]["selection"].get(charts.POINT) or []
    if picked:
        st.session_state["results_view"] = "Samples"
        st.query_params["results_sample"] = str(picked[0]["sample"])


def _gate(opened: OpenedRuns) -> None:
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
        blocks.draw(gate_text.blocks(report, chart=True), "results_gate")
        for one in report.answers:
            for change in one.changed[: gate_text.MOST]:
                name, keys = escape(f"{change.sample}, {one.label}"), [base.key, new.key]
                seen = {"results_view": "Samples", "results_sample": change.sample}
                links.to_results(name, keys, **seen)
        _downloads(report, lambda: _gated(opened, metrics, margin, titled=False))
    if not (base.private or new.private):
        st.caption("From a terminal, with an exit code for CI:")
        st.code(gate_command(sides, metrics, margin), language=None)


def base_and_new(sources: Sequence[Source]) -> Sides:
    """BASE is the baseline, or else the older run.  The list has a baseline first, then newer."""
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


def gate_command(sides: Sides, metrics: tuple[str, ...], margin: float) -> str:
    parts = [side.key for side in sides]
    if metrics != gate.DEFAULT:
        parts += ["--metric", ",".join(metrics)]
    if margin != gate.MARGIN:
        parts += ["--margin", f"{100 * margin:g}%"]
    return f"{settings.COMMAND} gate {shlex.join(parts)}"

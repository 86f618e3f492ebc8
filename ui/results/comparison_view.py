"""Two models or runs, sample by sample: paired differences, and the parts of a speed-up."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from engine.analysis import model_summary, pairs, speedup
from engine.analysis.metrics import PAIRED
from engine.analysis.pairs import Comparison
from engine.analysis.results_table import LensName
from engine.report import charts, document
from engine.report.comparison_part import IN_WORDS, paired_table, sentence, speedup_parts
from ui.results import gate_view, opened_runs, overview
from ui.results.opened_runs import OpenedRuns
from ui.widgets import blocks, choices, notices
from ui.widgets.text import count

ONE = (
    "A comparison needs two models or two runs: choose another run above, or start one with "
    "two models on the Benchmark page."
)
SAME = "Model A and Model B are the same: choose another Model B."


def show(opened: OpenedRuns) -> None:
    if len(opened.sources) == 2:
        gate_view.show(opened)
    if len(opened.labels) < 2:
        notices.hint(ONE)
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
    total = _main_metrics(opened, name, a, b)
    _speedup_parts(opened, name, total)
    _scatter(opened, name, a, b)
    _all(opened, name, a, b)


def pair(opened: OpenedRuns) -> tuple[str, str]:
    """The two chosen labels, with notices of different devices or machine loads."""
    first = opened_runs.sides(opened)
    a, b = choices.two(opened.labels, first, ("results_a", "results_b"))
    overview.say_apart(opened, a, b)
    return a, b


def _main_metrics(opened: OpenedRuns, name: LensName, a: str, b: str) -> Comparison:
    """The main metrics in sentences, in which Model A and Model B are called A and B; returns the
    comparison of total time."""
    st.subheader("Paired differences", anchor=False, help=PAIRED_HELP)
    comparisons = [opened_runs.comparison(opened, name, a, b, metric) for metric in IN_WORDS]
    with st.container(border=True, key="results_differences"):
        for comparison in comparisons:
            st.text(sentence(replace(comparison, a="A", b="B")))
    return next(item for item in comparisons if item.metric == "total")


PAIRED_HELP = (
    "Samples that both answered. Clips of one sequence overlap in time, so each sequence counts "
    "once, with the median of its samples. The figure is the median over sequences with its exact "
    "95 % interval (sign test, six sequences or more). A conclusion is given only if the printed "
    "interval excludes equality."
)


def _speedup_parts(opened: OpenedRuns, name: LensName, total: Comparison) -> None:
    """The split of the difference that `total` tests; it claims no more than that test."""
    st.subheader("Parts of the difference in total time", anchor=False)
    split = speedup.split(opened_runs.look(opened, name).table, total.a, total.b)
    if split is None:
        st.caption("No sample has complete, uncached measurements from both.")
        return
    *shown, figures = speedup_parts(split, speedup.supported(split, total.verdict))
    blocks.draw(shown, "results_speedup")
    with st.expander("The parts as figures", key="results_parts"):
        blocks.draw([figures], "results_parts")


def _scatter(opened: OpenedRuns, name: LensName, a: str, b: str) -> None:
    st.subheader("Sample by sample", anchor=False)
    kind = overview.metric_of([metric.name for metric in PAIRED], "results_scatter_metric")
    both = pairs.paired(opened_runs.look(opened, name).table, a, b, kind)
    if both.empty:
        st.caption("No sample has measured values from both.")
        return
    words = charts.scatter_words(both, a, b, kind)
    st.altair_chart(
        charts.scatter(both, a, b, kind),
        alt=words,
        width="stretch",
        key="results_scatter",
        on_select=_open_point,
        selection_mode=charts.POINT,
    )
    notices.small(f"{words} Click a point to open its sample.", "results_scatter")


def _open_point() -> None:
    picked = st.session_state["results_scatter"]["selection"].get(charts.POINT) or []
    if picked:
        st.session_state["results_view"] = "Samples"
        st.query_params["results_sample"] = str(picked[0]["sample"])


def _all(opened: OpenedRuns, name: LensName, a: str, b: str) -> None:
    """All metrics, on demand: with many samples each takes a moment."""
    title = f"All metrics, {count(len(PAIRED), 'row')}"
    if st.toggle(title, key="results_every", bind="query-params"):
        every = [opened_runs.comparison(opened, name, a, b, metric.name) for metric in PAIRED]
        blocks.draw([paired_table(a, b, every)], "results_paired")

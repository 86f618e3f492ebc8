"""Two models, or two runs of one, sample by sample: what differs, and what a speed-up is made of.

Boundary: asks the engine metric by metric, which takes a moment; its sentences are shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import streamlit as st

from engine.analysis import speedup, throughput
from engine.analysis.equal_length import LensName
from engine.analysis.metrics import BY_NAME, PAIRED
from engine.analysis.pairs import Comparison
from engine.report import device_notes, document
from engine.report import svg_charts as report_charts
from engine.report.comparison_part import IN_WORDS, paired_table, sentence, split_table, split_words
from ui.results import opened_runs, overview, report_parts, result_charts
from ui.results.opened_runs import Opened
from ui.widgets import notices
from ui.widgets.text import count

ONE = (
    "A comparison needs two models, or two runs: choose another run on the left, or start one with "
    "two models on the Benchmark page."
)


def show(found: Opened) -> None:
    if len(found.labels) < 2:
        notices.hint(ONE)
        return
    a, b = pair(found)
    if a == b:
        notices.notice("Both sides are the same: choose another one on the right.", "results_same")
        return
    name = overview.lens_of(found)
    seen = opened_runs.look(found, name)
    if seen.table.empty:
        notices.notice(overview.NOTHING[name], "results_lens")
        return
    notices.small(seen.note, "results_lens_note")
    grouped = [label for label in throughput.batched(found.table) if label in (a, b)]
    if grouped:
        notices.notice(f"{' and '.join(grouped)}: {throughput.APART}", "results_batches")
        _throughput(found, (a, b))
    if not {a, b} <= set(seen.table["label"]) and grouped:
        return
    total = _told(found, name, a, b)
    _made_of(found, name, total)
    _scatter(found, name, a, b)
    _all(found, name, a, b)


def _throughput(found: Opened, sides: tuple[str, str]) -> None:
    """What there is to see of two labels of which one answered in batches."""
    whole = opened_runs.findings(found)
    some = tuple(one for one in whole.throughputs if one.label in sides)
    drawn = list(document.together(replace(whole, throughputs=some)))
    report_parts.draw(drawn[-1:], "results_throughput")


def pair(found: Opened) -> tuple[str, str]:
    """The two labels: widgets in the URL; at first the first two.  Where their times are of
    different devices, that is said beneath."""
    left, right = st.columns(2)
    a = left.selectbox("One", found.labels, 0, key="results_a", bind="query-params")
    b = right.selectbox("The other", found.labels, 1, key="results_b", bind="query-params")
    chosen = a or found.labels[0], b or found.labels[1]
    if told := device_notes.couple(found.table, *chosen):
        notices.notice(told, "results_devices")
    if told := opened_runs.loads_told(found, *chosen):
        notices.notice(told, "results_loads")
    return chosen


def _told(found: Opened, name: LensName, a: str, b: str) -> Comparison:
    """The main metrics in sentences; the comparison of total time, which is one of them."""
    st.subheader("Paired differences", anchor=False, help=PAIRED_HELP)
    told = _compared(found, name, a, b, IN_WORDS)
    with st.container(border=True, key="results_told"):
        for one in told:
            st.text(sentence(one))
    return next(one for one in told if one.metric == "total")


PAIRED_HELP = (
    "Samples that both answered. Clips of one sequence overlap in time, so each sequence counts "
    "once, by the median of its samples. The figure is the median over sequences, with its exact "
    "95 % interval (sign test, six sequences or more). A conclusion is given only if the interval, "
    "as it is printed, excludes equality."
)


def _compared(
    found: Opened, name: LensName, a: str, b: str, metrics: tuple[str, ...]
) -> list[Comparison]:
    """Metric by metric, with a bar that says how far."""
    place, told = st.empty(), []
    for number, metric in enumerate(metrics):
        share = number / len(metrics)
        place.progress(share, text=f"Comparing: {BY_NAME[metric].label} …")
        told.append(opened_runs.comparison(found, name, a, b, metric))
    place.empty()
    return told


def _made_of(found: Opened, name: LensName, total: Comparison) -> None:
    """The split of the two that `total` compares, no firmer than it."""
    st.subheader("What the difference in total time is made of", anchor=False)
    split = opened_runs.split(found, name, total.a, total.b)
    if split is None:
        st.caption("No sample of both was measured whole, with no stage from the cache.")
        return
    st.text(speedup.sentence(split, speedup.supported(split, total)))
    # The engine types its charts more narrowly than Streamlit's parameter.
    chart = cast(Any, report_charts.waterfall(split)).properties(width="container")
    chart = chart.configure_text(color="currentColor").configure_legend(orient="top", title=None)
    st.altair_chart(chart, alt=split_words(split), width="stretch")
    with st.expander("The parts as figures", key="results_parts"):
        report_parts.draw([split_table(split)], "results_parts")


def _scatter(found: Opened, name: LensName, a: str, b: str) -> None:
    st.subheader("Sample by sample", anchor=False)
    names = [metric.name for metric in PAIRED]
    metric = st.selectbox(
        "Of",
        names,
        index=names.index("total"),
        format_func=lambda one: result_charts.title(BY_NAME[one]),
        key="results_scatter_metric",
        bind="query-params",
        label_visibility="collapsed",
        width=320,
    )
    kind = BY_NAME[metric or "total"]
    both = opened_runs.paired(found, name, a, b, kind.name)
    if both.empty:
        st.caption("No sample has a measured value of both.")
        return
    words = result_charts.scatter_words(both, a, b, kind)
    st.altair_chart(
        result_charts.scatter(both, a, b, kind),
        alt=words,
        width="stretch",
        key="results_scatter",
        on_select=_open_point,
        selection_mode=result_charts.POINT,
    )
    notices.small(f"{words} Click a point to open its sample.", "results_scatter")


def _open_point() -> None:
    picked = st.session_state["results_scatter"]["selection"].get(result_charts.POINT) or []
    if picked:
        open_sample(str(picked[0]["sample"]))


def open_sample(sample: str) -> None:
    """For callbacks: the sample's view, whatever is shown now."""
    st.session_state["results_view"] = "samples"
    st.query_params["results_sample"] = sample


def _all(found: Opened, name: LensName, a: str, b: str) -> None:
    """Every metric, when it is asked for: with many samples each takes a moment."""
    key = f"Every metric, {count(len(PAIRED), 'row')}"
    if st.toggle(key, key="results_every", bind="query-params"):
        every = _compared(found, name, a, b, tuple(metric.name for metric in PAIRED))
        report_parts.draw([paired_table(a, b, every)], "results_paired")

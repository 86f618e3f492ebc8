"""Compare with baseline: a gate's verdicts on a chosen run, against a run that was kept before."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

import streamlit as st

from engine.analysis import gate
from engine.analysis.gate import GateReport, RunValues
from engine.errors import StageScopeError
from engine.report import drawers, gate_text
from engine.storage.run_store import Run
from ui.results import opened_runs, result_sources, run_list
from ui.results.opened_runs import Key, OpenedRuns
from ui.results.result_sources import Source
from ui.widgets import blocks, choices, notices
from ui.widgets.text import escape, when

NEW, BASE = "results_gate_new", "results_gate_base"  # in the URL, as the next two
MARGIN, METRICS = "results_gate_margin", "results_gate_metrics"
ALONE = (
    "A comparison with a baseline needs two finished runs of the same samples: repeat this run on "
    "the Benchmark page or from a terminal."
)
BASE_HELP = (
    "The run that came before. The run that is pinned as the baseline (Edit, above) is chosen "
    "first."
)
MARGIN_HELP = "What counts as equal, in percent; of accuracy in percentage points."
METRICS_HELP = (
    "answers: a changed token id is worse. All metrics of all models form one family of tests, so "
    "fewer metrics need fewer samples."
)
Sides = tuple[Source, Source]  # BASE and NEW


def show(opened: OpenedRuns) -> None:
    sides = _sides(opened)
    if sides is None:
        return
    margin, metrics = _how()
    if not metrics:
        notices.hint("Choose at least one metric.")
        return
    try:
        (base, old), (key, new) = map(_of, sides)
        report = _gated(base, key, metrics, margin, old, new)
    except StageScopeError as error:
        notices.notice(str(error), "results_gate_refused")
    else:
        _report(report, sides)
    if not any(side.private for side in sides):
        st.caption("From a terminal, with an exit code for CI:")
        st.code(command(sides, metrics, margin), language=None)


def _sides(opened: OpenedRuns) -> Sides | None:
    """BASE and NEW; None, with a hint, as long as there are no two."""
    own = opened.sources
    every = [source for source in result_sources.runs() if not source.info.problem]
    left, right = st.columns(2)
    first = next((one for one in own if not one.baseline), own[0])
    names = {_named(one): one for one in own}
    chosen = right.selectbox(
        "NEW", names, [*names].index(_named(first)), key=NEW, bind="query-params"
    )
    new = names.get(chosen or "", first)
    models = set(new.info.models)
    others = [one for one in every if one.key != new.key and models & set(one.info.models)]
    if not others:
        notices.hint(ALONE)
        return None
    names = {_named(one): one for one in others}
    proposed = _proposed(new, own, others)
    index = [*names].index(_named(proposed))
    chosen = left.selectbox("BASE", names, index, key=BASE, bind="query-params", help=BASE_HELP)
    return names.get(chosen or "", proposed), new


def _named(source: Source) -> str:
    """Stays the same when another run becomes the baseline, because links contain it."""
    return f"{source.details.name or when(source.info.created)} · {source.key}"


def _proposed(new: Source, own: Sequence[Source], others: Sequence[Source]) -> Source:
    """The pinned baseline, another opened run, or the newest finished one with the settings of
    NEW."""
    opened = {one.key for one in own}

    def distance(one: Source) -> tuple[bool, bool, bool, bool]:
        same = one.info.settings == new.info.settings and one.info.models == new.info.models
        return not one.baseline, one.key not in opened, one.state != "finished", not same

    return min(others, key=distance)


def _how() -> tuple[float, tuple[str, ...]]:
    """The margin as a share, and the metrics."""
    left, right = st.columns([1, 3])
    first, more = 100 * gate.MARGIN, {"step": 1.0, "format": "%g"}
    margin = choices.number("Margin, %", MARGIN, 0.0, 99.0, first, MARGIN_HELP, left, **more)
    metrics = right.multiselect(
        "Metrics", gate.KNOWN, gate.DEFAULT, key=METRICS, bind="query-params", help=METRICS_HELP
    )
    return float(margin) / 100, tuple(metrics)


def _of(side: Source) -> tuple[Key, RunValues]:
    """A cache key and the values."""
    opened = opened_runs.open_((side,))
    return opened.key, _values(opened.key, opened.runs[0])


@st.cache_resource(max_entries=8, show_spinner="Reading the runs …")
def _values(key: Key, _run: Run) -> RunValues:
    return gate.values_of(_run)


@st.cache_resource(max_entries=32, show_spinner="Comparing …")
def _gated(
    base: Key,
    new: Key,
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
    _downloads(report)


def _downloads(report: GateReport) -> None:
    name = f"stagescope-gate-{report.base.id}-{report.new.id}"
    files: list[tuple[str, str, str, Callable[[], str]]] = [
        ("Markdown, for a pull request", "md", "text/markdown",
         lambda: drawers.markdown(gate_text.blocks(report))),
        ("JSON", "json", "application/json", lambda: drawers.as_json(gate_text.as_json(report))),
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

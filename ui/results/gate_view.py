"""Compare with baseline: a gate's verdicts on a chosen run, against a run that was kept before."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from engine.analysis import gate
from engine.analysis.gate import GateReport
from engine.errors import StageScopeError
from engine.report import drawers, gate_text
from engine.storage import run_values
from engine.storage.run_store import Run
from engine.storage.run_values import RunValues
from ui.results import opened_runs, result_sources, run_list
from ui.results.opened_runs import Key, OpenedRuns
from ui.results.result_sources import Source
from ui.widgets import blocks, choices, notices, uploads
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
FILE = "A file made by gate --pin"
FILE_FIRST = "Add the baseline file of the other run, made by: python -m engine gate RUN --pin FILE"


@dataclass(frozen=True)
class PinnedFile:
    """A baseline file of this visit; its digest distinguishes it in caches."""

    name: str
    digest: str
    values: RunValues


@dataclass(frozen=True)
class Sides:
    """BASE is a run or a file, NEW a run."""

    base: Source | PinnedFile
    new: Source

    @property
    def runs(self) -> tuple[Source, ...]:
        return tuple(one for one in (self.base, self.new) if isinstance(one, Source))

    @property
    def names(self) -> tuple[str, str]:
        """As the command line takes them."""
        base = self.base.name if isinstance(self.base, PinnedFile) else self.base.key
        return base, self.new.key


def show(opened: OpenedRuns) -> None:
    try:
        sides = _sides(opened)
    except StageScopeError as error:  # of a baseline file
        notices.problem(str(error), "results_gate_file")
        return
    if sides is None:
        return
    margin, metrics = _how()
    if not metrics:
        notices.hint("Choose at least one metric.")
        return
    try:
        (base, old), (key, new) = _of(sides.base), _of(sides.new)
        report = _gated(base, key, metrics, margin, old, new)
    except StageScopeError as error:
        notices.notice(str(error), "results_gate_refused")
    else:
        _report(report, sides)
    if not any(side.private for side in sides.runs):
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
    names = {_named(one): one for one in others}
    index = [*names].index(_named(_proposed(new, own, others))) if others else 0
    chosen = left.selectbox(
        "BASE", [*names, FILE], index, key=BASE, bind="query-params", help=BASE_HELP
    )
    base = names.get(chosen or "") or _file()
    return None if base is None else Sides(base, new)


def _file() -> PinnedFile | None:
    """The baseline file that was added; StoreError if it cannot be used."""
    added = st.file_uploader(
        "Baseline file", "json", key="results_gate_file", max_upload_size=uploads.MAX_MB
    )
    if added is None:
        notices.small(FILE_FIRST, "results_gate_file")
        return None
    data = added.getvalue()
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    return PinnedFile(added.name, digest, _pinned(digest, data, added.name))


@st.cache_resource(max_entries=4, show_spinner="Reading the baseline …")
def _pinned(digest: str, _data: bytes, name: str) -> RunValues:
    return run_values.parse(_data, name)


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


def _of(side: Source | PinnedFile) -> tuple[Key | str, RunValues]:
    """A cache key and the values."""
    if isinstance(side, PinnedFile):
        return side.digest, side.values
    opened = opened_runs.open_((side,))
    return opened.key, _values(opened.key, opened.runs[0])


@st.cache_resource(max_entries=8, show_spinner="Reading the runs …")
def _values(key: Key, _run: Run) -> RunValues:
    return gate.values_of(_run)


@st.cache_resource(max_entries=32, show_spinner="Comparing …")
def _gated(
    base: Key | str,
    new: Key | str,
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
            query = {run_list.KEYS: [side.key for side in sides.runs], "results_view": "Samples",
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
    parts = ["python", "-m", "engine", "gate", *sides.names]
    if metrics != gate.DEFAULT:
        parts += ["--metric", ",".join(metrics)]
    if margin != gate.MARGIN:
        parts += ["--margin", f"{100 * margin:g}%"]
    return shlex.join(parts)

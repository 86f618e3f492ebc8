"""Dataset runs: the progress of the shown one (results, rate, medians, failures, end), and the
unfinished ones, each with a button to resume it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

import streamlit as st

from engine import settings
from engine.analysis import model_summary
from engine.analysis.compared import StageTimes
from engine.analysis.metrics import BY_NAME
from engine.benchmark.run_progress import RATED, ModelProgress, Progress, WorkerView
from engine.errors import StoreError
from engine.jobs.benchmark_job import CHECKING, LEAVING, BenchmarkView
from engine.models import registry
from engine.report.blocks import ReportTable
from engine.storage import run_store
from engine.storage.run_store import RunInfo
from engine.types import STAGES
from ui.widgets import notices
from ui.widgets.stored_runs import Stamp, stamp_of
from ui.widgets.text import count, duration, escape, number, queued, when

if TYPE_CHECKING:
    pass

# Medians in the tables, beside the counts: the key and the head of a column.
SHOWN = {
    name: kind.title if kind.unit == "ms" else kind.label
    for name in (*STAGES, "total", "ttft", "tpot", "new_tokens")
    for kind in (BY_NAME[name],)
}
OF_BATCHES = {
    "batch_ms": "time of a batch (ms)",
    "batch_tokens_per_s": "new tokens/s",
    "batch_samples_per_s": "samples/s",
    "batch_new_tokens": BY_NAME["new_tokens"].label,
}
FEW = 8  # the newest failures; the Results page has all
RATE_HELP = (
    f"Measured results per second: the last {RATED} at most since the run was started or resumed, "
    "without pauses."
)
LIVE_ONLY = ("shared", "rate (/s)")  # columns of a live run
WORKERS_HELP = (
    "A worker has one device and one model at a time. Shared: another worker of this run uses the "
    "same device, or there are more threads than cores; such times are kept apart."
)
ENDED_HELP = (
    "Each worker had one device and one model at a time. Results: measured ones since the run was "
    "last started or resumed. Each result records whether its device was shared."
)
ENDS = {"done": "Finished", "failed": "Failed", "cancelled": "Cancelled"}
FEW_RUNS = 5  # unfinished ones that are listed before "Show all"
FORCE_HELP = (
    "A run resumes only with the same samples, code and checkpoints. "
    "With this switch it resumes anyway, and its journal says so."
)


def draw(view: BenchmarkView) -> None:
    """The whole view."""
    _status(view)
    if view.error:
        notices.ended(view.state, view.error, "benchmark_job")
    if view.progress is None:
        return
    workers(view.progress, view.ended)
    _models(view.progress, view.ended)
    if failures := view.progress.failures:
        failed = view.progress.failed
        st.subheader(f"Failures ({failed:,})", anchor=False)
        for place, one in enumerate(reversed(failures[-FEW:])):
            words = f"{registry.label(one.model)}, sample {one.sample}: {one.error}"
            notices.notice(words, f"failure_{place}")
        if failed > FEW:
            st.caption(f"The last {FEW} failures. The Results page shows all.")
    _notes(view.progress)


def _status(view: BenchmarkView) -> None:
    found = view.progress
    if found is None:
        st.progress(0.0, text=escape(doing(view)))
        return
    share = min(1.0, found.done / found.planned) if found.planned else 0.0
    st.progress(share, text=escape(headline(view)))
    with st.container(horizontal=True, gap="medium"):
        for name, value, help_text in numbers(view):
            st.metric(name, value, help=help_text, width="content")


def doing(view: BenchmarkView) -> str:
    """The current step, in a few words."""
    if view.state == "queued":
        return queued(view.position) if view.position else "Starting"
    if view.ended:
        return ENDS[view.state]
    if view.progress is None or view.stage == LEAVING:
        words = view.stage or CHECKING
        return f"{words[0].upper()}{words[1:]} …"
    stage = f", {view.stage}" if view.stage else ""
    first = "waiting for workers" if view.cluster else "starting"
    return f"{view.progress.current or first}{stage}"


def headline(view: BenchmarkView) -> str:
    found = view.progress
    assert found is not None
    return f"{found.done:,} of {count(found.planned, 'result')} · {doing(view)}"


def numbers(view: BenchmarkView) -> list[tuple[str, str, str]]:
    """(name, value, explanation) of the figures above the chart."""
    found = view.progress
    assert found is not None
    rate = "–" if found.per_s is None else f"{found.per_s:.3g} /s"
    left = "–" if found.left_s is None or view.ended else duration(found.left_s)
    shown = [
        ("Results", f"{found.done:,} / {found.planned:,}", "Measured results, without warm-up."),
        ("Rate at the end" if view.ended else "Rate", rate, RATE_HELP),
        ("Time left", left, "Estimated from this rate; models without a result yet may differ."),
        ("Failed", f"{found.failed:,}", "A failed result has a reason and no figures."),
    ]
    if found.paused_ms:
        paused = duration(found.paused_ms / 1000)
        shown.append(("Paused", paused, "Time that other jobs had the device between two samples."))
    return shown


def _models(found: Progress, ended: bool) -> None:
    from engine.report import charts  # altair and pandas are slow to import

    medians: StageTimes = {
        _name(live): {str(name): live.medians[name] for name in STAGES if name in live.medians}
        for live in found.models
    }
    st.subheader("Medians" if ended else "Medians so far", anchor=False, help=MEDIANS_HELP)
    if any(medians.values()):
        st.altair_chart(
            charts.stage_bars(medians), alt=charts.stage_words(medians), width="stretch"
        )
    if together := batches(found):
        notices.small(model_summary.APART, "benchmark_batches")
        _draw("Medians of batches.", together)
    if any(medians.values()) or not together:
        _draw("", table(found))
    for live in found.models:
        if live.given_up:
            label = registry.label(live.model)
            notices.problem(f"{label} was given up: {live.given_up}", f"given_up_{live.model}")


def _name(live: ModelProgress) -> str:
    """The model's label, with the device where device types or backends differ."""
    label = registry.label(live.model)
    return f"{label} · {live.device}" if live.device else label


MEDIANS_HELP = (
    "Medians of each model's last 200 results, without warm-up, cold and cached ones. With several "
    "device types, backends or batch sizes: of the one with the most results. The Results page "
    "shows all results with their spread."
)


def _draw(caption: str, rows: Sequence[Mapping[str, str]], words: int = 1) -> None:
    from ui.widgets import blocks  # reports are slow to import

    cells = tuple(tuple(row.values()) for row in rows)
    blocks.draw((ReportTable(caption, tuple(rows[0]), cells, words),), "benchmark_table")


def table(found: Progress) -> list[dict[str, str]]:
    return [_line(live, SHOWN) for live in found.models]


def _line(
    live: ModelProgress,
    heads: Mapping[str, str],
    more: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, str]:
    counts = {"model": _name(live), "done": f"{live.done:,}"}
    medians = {head: number(live.medians.get(name)) for name, head in heads.items()}
    return {**counts, "failed": f"{live.failed:,}", **more, **medians}


def batches(found: Progress) -> list[dict[str, str]]:
    """A row per model if the run has batches, otherwise nothing."""
    if found.batch == 1 and not any("batch" in live.medians for live in found.models):
        return []
    sizes = (live.medians.get("batch") for live in found.models)
    at_once = ({"samples at once": f"{size:,.0f}" if size else "–"} for size in sizes)
    pairs = zip(found.models, at_once, strict=True)
    return [_line(live, OF_BATCHES, more) for live, more in pairs]


def _notes(found: Progress) -> None:
    """The events of the run; equal ones once, in an expander if there are many."""
    notes = Counter(found.notes)
    many = len(notes) > FEW
    with st.expander("Events", key="benchmark_notes") if many else st.container():
        for place, (text, times) in enumerate(notes.items()):
            notices.small(text if times == 1 else f"{text} ({times:,} times)", f"note_{place}")


def workers(found: Progress, run_ended: bool) -> None:
    """A row per worker; one that has ended stays, with the reason."""
    if not found.workers:
        return
    ended = run_ended or all(worker.ended for worker in found.workers)
    st.subheader(
        heading(found.workers, ended), anchor=False, help=ENDED_HELP if ended else WORKERS_HELP
    )
    rows = [row(w, ended) for w in sorted(found.workers, key=lambda worker: worker.ended)]
    _draw("", rows, len(rows[0]))


def heading(workers: Sequence[WorkerView], ended: bool) -> str:
    """The number of live workers, or of those that had started if the run has `ended`."""
    counted = [worker for worker in workers if (worker.device if ended else not worker.ended)]
    nodes = {worker.node for worker in counted}
    words = f"{count(len(counted), 'worker')} on {count(len(nodes), 'node')}"
    return f"{words} took part" if ended else words


def row(worker: WorkerView, ended: bool) -> dict[str, str]:
    device = f"{worker.type}, {worker.device}" if worker.device else "–"
    cells = {
        "worker": worker.id,
        "node": worker.node,
        "device": device,
        "shared": " and ".join(worker.shares) or "–",
        "state": worker.state,
        "results": f"{worker.done:,}",
        "rate (/s)": "–" if worker.per_s is None else f"{worker.per_s:.3g}",
    }
    return {name: text for name, text in cells.items() if not (ended and name in LIVE_ONLY)}


@st.cache_data(max_entries=64, show_spinner=False)
def _done(folder: Path, stamp: Stamp) -> int:
    rows = (row for _, row in run_store.read(folder).results())
    return len({row.task for row in rows if row.phase == "measured"})


def unfinished(
    busy: set[Path],
    resume: Callable[[Path, bool], None],
    able: bool,
) -> None:
    """The list without `busy` folders, whose runs are live.  `able`: a run may be resumed now."""
    try:
        every = run_store.listing(settings.load().runs_dir)
    except StoreError as error:
        notices.problem(str(error), "benchmark_runs")
        return
    found = [info for info in every if info.state == "stopped" and info.folder not in busy]
    if not found:
        return
    st.subheader("Not finished", anchor=False, help="Runs that were cancelled or interrupted.")
    force = st.toggle(
        "Resume although something has changed", key="benchmark_force", help=FORCE_HELP
    )
    for info in found if st.session_state.get("benchmark_all") else found[:FEW_RUNS]:
        name = info.folder.name  # a copied run has the same id
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            notices.small(_unfinished(info), f"run_{name}")
            st.button(
                "Resume",
                key=f"benchmark_resume_{name}",
                on_click=resume,
                args=(info.folder, force),
                disabled=not able,
            )
            query = {"results_runs": name}
            st.page_link("pages/results.py", label="Results so far", query_params=query)
    if len(found) > FEW_RUNS:
        st.toggle(f"Show all {len(found):,}", key="benchmark_all")


def _unfinished(info: RunInfo) -> str:
    models = ", ".join(map(registry.label, info.models))
    try:
        lacking = info.planned - _done(info.folder, stamp_of(info.folder, (run_store.RESULTS,)))
        rest = f"{count(lacking, 'result')} of {info.planned:,} left"
    except StoreError as error:
        rest = str(error)
    return f"{when(info.created)} · {rest}\n{models} · {PurePath(info.dataset).name} · {info.id}"

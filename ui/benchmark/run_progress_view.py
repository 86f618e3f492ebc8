"""The progress of the shown dataset run: results, rate, medians, failures, workers, events."""

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st

from engine.analysis import model_summary
from engine.analysis.compared import StageTimes
from engine.analysis.metrics import BY_NAME
from engine.benchmark.cluster.workers import RATED, WorkerState
from engine.benchmark.run_progress import ModelProgress, Progress
from engine.jobs.benchmark_job import CHECKING, LEAVING, BenchmarkJob
from engine.models import registry
from engine.report.blocks import ReportTable
from engine.types import STAGES
from ui.widgets import blocks, followed_runs, notices
from ui.widgets.text import count, duration, escape, number, queued

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
    "batch_new_tokens": "new tokens (in batches)",
}
FEW = 8  # the newest failures; the Results page has all
RATE_HELP = (
    f"Measured results per second: the last {RATED} at most since the run was started or resumed, "
    "without pauses."
)
MEDIANS_HELP = (
    "Medians of each model's last 200 results, without warm-up, cold and cached ones. With several "
    "device types, backends or batch sizes: of the one with the most results. The Results page "
    "shows all results with their spread."
)
WORKERS_HELP = (
    "A worker has one device and one model at a time. Results: measured ones since the run was "
    "last started or resumed. Shared: another worker of this run uses the same device, or there "
    "are more threads than cores; each result records that, and such times are kept apart."
)
ENDS = {"done": "Finished", "failed": "Failed", "cancelled": "Cancelled"}


def draw(job: BenchmarkJob) -> None:
    found = job.seen
    if found is None:
        st.progress(0.0, text=escape(doing(job, found)))
    else:
        done = f"{found.done:,} of {count(found.planned, 'result')}"
        share = followed_runs.share((found.done, found.planned))
        st.progress(share, text=escape(f"{done} · {doing(job, found)}"))
        with st.container(horizontal=True, gap="medium"):
            for name, value, help_text in numbers(found, job.ended):
                st.metric(name, value, help=help_text, width="content")
    if job.error:
        notices.ended(job.state, job.error, "benchmark_job")
    if found is None:
        return
    workers(found, job.ended)
    _models(found, job.ended)
    if found.failures:
        st.subheader(f"Failures ({found.failed:,})", anchor=False)
        for place, one in enumerate(reversed(found.failures[-FEW:])):
            words = f"{registry.label(one.model)}, sample {one.sample}: {one.error}"
            notices.notice(words, f"failure_{place}")
        if found.failed > FEW:
            st.caption(f"The last {FEW} failures. The Results page shows all.")
    _notes(found)


def doing(job: BenchmarkJob, found: Progress | None) -> str:
    if job.state == "queued":
        return queued(job.position) if job.position else "Starting"
    if job.ended:
        return ENDS[job.state]
    if found is None or job.doing == LEAVING:
        words = job.doing or CHECKING
        return f"{words[0].upper()}{words[1:]} …"
    stage = f", {job.doing}" if job.doing else ""
    first = "waiting for workers" if job.cluster else "starting"
    return f"{found.current or first}{stage}"


def numbers(found: Progress, ended: bool) -> list[tuple[str, str, str]]:
    """(name, value, explanation) of the figures above the chart."""
    rate = "–" if found.per_s is None else f"{found.per_s:.3g} /s"
    left = "–" if found.left_s is None or ended else duration(found.left_s)
    shown = [
        ("Rate at the end" if ended else "Rate", rate, RATE_HELP),
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
        st.altair_chart(charts.stage_bars(medians), alt=charts.stage_words(medians))
    if batched(found):
        notices.small(model_summary.APART, "benchmark_batches")
    _draw(table(found))
    for live in found.models:
        if live.given_up:
            words = f"{registry.label(live.model)} was given up: {live.given_up}"
            notices.problem(words, f"given_up_{live.model}")


def _name(live: ModelProgress) -> str:
    """The model's label, with the device where device types or backends differ."""
    label = registry.label(live.model)
    return f"{label} · {live.device}" if live.device else label


def _draw(rows: Sequence[Mapping[str, str]], words: int = 1) -> None:
    cells = tuple(tuple(row.values()) for row in rows)
    blocks.draw((ReportTable("", tuple(rows[0]), cells, words),), "benchmark_table")


def batched(found: Progress) -> bool:
    """Whether samples are answered together, as planned or in an earlier session."""
    return found.batch > 1 or any("batch" in live.medians for live in found.models)


def table(found: Progress) -> list[dict[str, str]]:
    """A row per model: counts, and the medians of batches, of single runs, or of both."""
    together = batched(found)
    single = any(live.medians.keys() & set(STAGES) for live in found.models)
    heads = {**(OF_BATCHES if together else {}), **(SHOWN if single or not together else {})}
    rows = []
    for live in found.models:
        cells = {"model": _name(live), "done": f"{live.done:,}", "failed": f"{live.failed:,}"}
        if together:
            size = live.medians.get("batch")
            cells["samples at once"] = f"{size:,.0f}" if size else "–"
        rows.append(cells | {head: number(live.medians.get(name)) for name, head in heads.items()})
    return rows


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
    st.subheader(heading(found.workers, ended), anchor=False, help=WORKERS_HELP)
    rows = [row(w, ended) for w in sorted(found.workers, key=lambda worker: worker.ended)]
    _draw(rows, len(rows[0]))


def heading(workers: Sequence[WorkerState], ended: bool) -> str:
    """The number of live workers, or of those that had started if the run has `ended`."""
    counted = [worker for worker in workers if (worker.device if ended else not worker.ended)]
    nodes = {worker.node for worker in counted}
    words = f"{count(len(counted), 'worker')} on {count(len(nodes), 'node')}"
    return f"{words} took part" if ended else words


def row(worker: WorkerState, ended: bool) -> dict[str, str]:
    device = worker.device
    cells = {
        "worker": worker.id,
        "node": f"{worker.host} {worker.address} ({worker.node})".strip(),
        "device": f"{device['type']}, {device['name']}" if device else "–",
        "state": worker.state,
        "results": f"{worker.done:,}",
    }
    if not ended:
        cells["shared"] = " and ".join(worker.shared) or "–"
        cells["rate (/s)"] = "–" if worker.per_s is None else f"{worker.per_s:.3g}"
    return cells

"""The progress of the shown dataset run: results, rate, medians, failures, workers, events; and the
one place of the Benchmark page from which an unfinished run is resumed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

import streamlit as st

from engine import settings
from engine.analysis import model_summary
from engine.analysis.model_summary import BY_NAME, StageTimes
from engine.benchmark.cluster.workers import RATED, WorkerState
from engine.benchmark.run_progress import ModelProgress, Progress
from engine.errors import StoreError
from engine.jobs.benchmark_job import CHECKING, LEAVING, BenchmarkJob
from engine.models import registry
from engine.quoting import duration, listed, number
from engine.report.blocks import Table
from engine.storage import run_store
from engine.storage.run_store import RunInfo, Stamp
from engine.types import STAGES
from ui.benchmark.run_choice import RunChoice
from ui.widgets import blocks, followed_runs, links, notices
from ui.widgets.followed_runs import Followed
from ui.widgets.text import count, escape, queued, when

RUN = Followed("benchmark_job", BenchmarkJob)
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
FORCE_HELP = (
    "A run resumes only with the same samples, code and checkpoints. "
    "With this switch it resumes anyway, and its journal says so."
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
    # The events of the run; equal ones once, in an expander if there are many.
    notes = Counter(found.notes)
    with st.expander("Events", key="benchmark_notes") if len(notes) > FEW else st.container():
        for place, (text, times) in enumerate(notes.items()):
            notices.small(text if times == 1 else f"{text} ({times:,} times)", f"note_{place}")


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
    blocks.draw((Table("", tuple(rows[0]), cells, words),), "benchmark_table")


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


def unfinished(shown: BenchmarkJob | None, choice: RunChoice) -> None:
    """A list of the runs that are not finished and not live; at first, `shown` is chosen."""
    jobs = RUN.all()
    busy = {path for job in jobs if not job.ended for path in (job.folder, job.resume)}
    stopped, left = dict[str, RunInfo](), _left(shown, jobs)
    with notices.telling("benchmark_runs", notices.problem):
        for info in run_store.listing(settings.load().runs_dir):
            if info.state == "stopped" and info.folder not in busy:
                stopped[info.folder.name] = info  # a copied run has the same id
    names = ["The rest of this sweep", *stopped] if left else list(stopped)
    if not names:
        return
    st.subheader("Not finished", anchor=False, help="Runs that were cancelled or interrupted.")
    folder = shown.folder or shown.resume if shown and not left else None
    name = st.selectbox(
        "Run to resume",
        names,
        names.index(folder.name) if folder and folder.name in stopped else 0,
        format_func=lambda name: _words(stopped[name]) if name in stopped else name,
        key=f"benchmark_unfinished_{shown.id if shown else ''}",
        label_visibility="collapsed",
    )
    run = stopped.get(name)  # None: the rest of the sweep
    force = run is not None and st.toggle(
        "Resume although something has changed", key="benchmark_force", help=FORCE_HELP
    )

    def resume() -> None:
        if run is not None:
            RUN.start(BenchmarkJob(resume=run.folder, force=force, cluster=choice.cluster))
            return
        again = [  # each run continues in its folder, or begins
            BenchmarkJob(
                plan=job.plan, root=job.root, sweep=job.sweep, place=job.place, swept=job.swept
            )
            for job in left
        ]
        RUN.start(*again)

    with st.container(horizontal=True, vertical_alignment="center"):
        blocked = choice.blocked and run is not None
        st.button("Resume", key="benchmark_resume", on_click=resume, disabled=blocked)
        if run is None:
            strengths = listed(",".join(map(str, job.plan.perturb)) for job in left if job.plan)
            notices.small(f"Not finished in this sweep: {strengths}.", "benchmark_left")
            return
        notices.small(_lacking(run), "benchmark_left")
        if shown is None or shown.folder != run.folder:  # the shown run has its own link
            links.to_results("Results so far", run.folder.name)


def _left(shown: BenchmarkJob | None, jobs: Sequence[BenchmarkJob]) -> list[BenchmarkJob]:
    """The last job of each strength of the shown sweep, if it has ended without all results."""
    if shown is None or not shown.sweep or shown.state not in ("cancelled", "failed"):
        return []
    last = {job.place: job for job in jobs if job.sweep == shown.sweep}
    return [job for _, job in sorted(last.items()) if job.ended and job.state != "done"]


def _words(info: RunInfo) -> str:
    models = ", ".join(map(registry.label, info.models))
    return f"{when(info.created)} · {models} · {PurePath(info.dataset).name} · {info.id}"


def _lacking(info: RunInfo) -> str:
    try:
        lacking = info.planned - _done(info.folder, run_store.stamp(info.folder))
    except StoreError as error:
        return str(error)
    return f"{count(lacking, 'result')} of {info.planned:,} left"


@st.cache_data(max_entries=64, show_spinner=False)
def _done(folder: Path, stamp: Stamp) -> int:
    rows = (row for _, row in run_store.read(folder).results())
    return len({row.task for row in rows if row.phase == "measured"})

"""The one place of the Benchmark page from which an unfinished run is resumed."""

from collections.abc import Sequence
from pathlib import Path, PurePath

import streamlit as st

from engine import settings
from engine.errors import StoreError
from engine.jobs.benchmark_job import BenchmarkJob
from engine.models import registry
from engine.quoting import listed
from engine.storage import run_store
from engine.storage.run_store import RunInfo, Stamp
from ui.benchmark.run_choice import RunChoice
from ui.widgets import links, notices
from ui.widgets.followed_runs import Followed
from ui.widgets.text import count, when

FORCE_HELP = (
    "A run resumes only with the same samples, code and checkpoints. "
    "With this switch it resumes anyway, and its journal says so."
)


def show(shown: BenchmarkJob | None, known: Followed[BenchmarkJob], choice: RunChoice) -> None:
    """A list of the runs that are not finished and not live; at first, `shown` is chosen."""
    jobs = known.all()
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
            known.start(BenchmarkJob(resume=run.folder, force=force, cluster=choice.cluster))
            return
        again = [  # each run continues in its folder, or begins
            BenchmarkJob(
                plan=job.plan, root=job.root, sweep=job.sweep, place=job.place, swept=job.swept
            )
            for job in left
        ]
        known.start(*again)

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

"""Benchmark: start a dataset run, watch it, cancel it, resume it.

The run is a job in the engine's queue: it continues when the user opens another page or closes the
browser.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from engine.benchmark.cluster.cluster_options import ClusterOptions
from engine.jobs import queue
from engine.jobs.benchmark_job import BenchmarkJob, sweep_jobs
from engine.media.dataset import Dataset
from engine.quoting import listed
from engine.storage.run_header import HEADER
from ui.benchmark import (
    planning_view,
    run_progress_view,
)
from ui.benchmark.run_choice import RunChoice, choose, configured, words
from ui.widgets import followed_runs, links, model_picker, notices, preparation
from ui.widgets.followed_runs import Followed
from ui.widgets.run_settings import run_and_cancel
from ui.widgets.text import escape

RUN = Followed("benchmark_job", BenchmarkJob)
LOOK_S = 0.5
WHAT = (
    "Runs every chosen model on every chosen sample, one by one or in batches. Each result is "
    "saved as soon as it is measured"
)
RAY = ". With Ray, on several devices at once"
EMPTY = (
    "Choose a dataset and models in the sidebar and press Start (Ctrl+Enter). Each result is saved "
    "as soon as it is measured: a run can be cancelled, interrupted and resumed at any time, and "
    "it continues when this page is closed. A run started on the Compare page meanwhile gets the "
    "device between two samples. From a terminal:"
)
EXAMPLE = "python -m engine bench --dataset ROOT --models NAME,NAME --samples 20"


def buttons(choice: RunChoice, shown: BenchmarkJob | None, live: bool) -> None:
    """Start and Cancel, and the other runs of this server."""
    with st.container(horizontal=True, vertical_alignment="center"):
        start = ("Start", "benchmark_start")
        pressed = run_and_cancel("benchmark", start, live, choice.plan is not None, cancel)
        if shown is not None and shown.state in ("cancelled", "failed"):
            go_on(shown, choice)
        if not live:
            many = max(1, len(choice.sweep))
            planned = f"Planned: {words(choice.plan, many)}" if choice.plan else choice.problem
            notices.small(planned, "benchmark_planned")
    if pressed and choice.plan is not None and choice.dataset is not None:
        links.forget()
        submit(choice, choice.dataset)
        st.rerun()
    if not live:
        planning_view.line(choice)


def go_on(shown: BenchmarkJob, choice: RunChoice) -> None:
    """Resume, for the shown run or for all runs of its sweep that are not done."""
    # The last job of each strength that has ended without all results.
    last = {job.place: job for job in RUN.all() if shown.sweep and job.sweep == shown.sweep}
    left = [job for _, job in sorted(last.items()) if job.ended and job.state != "done"]
    if left:
        st.button("Resume", key="benchmark_go_on", on_click=resume_sweep, args=(left,))
        strengths = listed(",".join(map(str, job.plan.perturb)) for job in left if job.plan)
        notices.small(f"Not finished in this sweep: {strengths}.", "benchmark_sweep_left")
    elif shown.folder:
        st.button(
            "Resume",
            key="benchmark_go_on",
            on_click=partial(resume, cluster=choice.cluster),
            args=(shown.folder, False),
            disabled=choice.blocked,
        )


def resume_sweep(jobs: Sequence[BenchmarkJob]) -> None:
    """Continues each run in its folder, or starts it."""
    again = [
        BenchmarkJob(plan=j.plan, root=j.root, sweep=j.sweep, place=j.place, swept=j.swept)
        for j in jobs
    ]
    start(again)


def start(jobs: Sequence[BenchmarkJob]) -> None:
    RUN.start(jobs[0])
    for job in jobs[1:]:
        queue.manager().submit(job)


def submit(choice: RunChoice, dataset: Dataset) -> None:
    """Queues a job per plan of a sweep, and shows the first."""
    if len(choice.sweep) > 1:
        start(sweep_jobs(choice.sweep, dataset.root))
    else:
        start([BenchmarkJob(plan=choice.plan, root=dataset.root, cluster=choice.cluster)])


def cancel() -> None:
    """Cancels the shown run, and the rest of its sweep."""
    shown = RUN.shown()
    for job in reversed(rest_of_sweep(shown)):
        job.cancel()
    RUN.cancel()


def rest_of_sweep(shown: BenchmarkJob | None) -> list[BenchmarkJob]:
    """The live runs of the same sweep, apart from this one."""
    if shown is None or not shown.sweep:
        return []
    return [job for job in RUN.live() if job.sweep == shown.sweep and job is not shown]


def followed() -> BenchmarkJob | None:
    """The shown run; in a sweep, the next one once it has ended."""
    shown = RUN.shown()
    if shown is not None and shown.ended and (rest := rest_of_sweep(shown)):
        RUN.show(rest[0])
        return rest[0]
    return shown


def others(shown: BenchmarkJob | None) -> None:
    for job in RUN.live():
        if job is shown:
            continue
        view = job.view()
        with st.container(horizontal=True, vertical_alignment="center"):
            notices.small(f"{view.title}: {run_progress_view.doing(view)}", f"other_{job.id}")
            st.button("Show", key=f"benchmark_show_{job.id}", on_click=RUN.show, args=(job,))


def resume(folder: Path, force: bool, cluster: ClusterOptions | None) -> None:
    RUN.start(BenchmarkJob(resume=folder, force=force, cluster=cluster))


def board(job: BenchmarkJob, live: bool) -> None:
    """The shown run, refreshed until it ends.  live: what the buttons show."""
    known = job.folder is not None

    @st.fragment(run_every=LOOK_S if live else None)
    def look() -> None:
        view = job.view()
        if live and (view.ended or (view.folder is not None) != known):
            st.rerun()
        run_progress_view.draw(view)

    st.subheader(escape(job.title), anchor=False)
    look()
    if job.folder is not None:
        notices.small(f"Saved in {job.folder}", "benchmark_folder")
        st.page_link(
            "pages/results.py",
            label="Open the results" if job.state == "done" else "Results so far",
            query_params={"results_runs": job.folder.name},
        )
    begun = [path.name for path in job.sweep if (path / HEADER).exists()]
    if len(begun) > 1:
        st.page_link(
            "pages/results.py",
            label=f"Open the sweep: {len(begun)} of {len(job.sweep)} runs",
            query_params={"results_runs": begun, "results_view": "Quality"},
        )


def show(shown: BenchmarkJob | None, live: bool, choice: RunChoice) -> None:
    """The shown run or a hint, then the other runs and the unfinished ones."""
    if shown is not None:
        board(shown, live)
    else:
        if RUN.lost():
            notices.notice(
                "The run in this link is no longer active on this server: open its results, or "
                "resume it below if it is unfinished.",
                "lost",
            )
        notices.hint(EMPTY)
        plan, dataset = choice.plan, choice.dataset
        known = EXAMPLE
        if plan and dataset:
            known = planning_view.command(plan, dataset, choice.cluster, choice.sweep)
        st.code(known, language=None)
    others(shown)
    busy = {path for job in RUN.live() for path in (job.folder, job.resume) if path is not None}
    again = partial(resume, cluster=choice.cluster)
    run_progress_view.unfinished(busy, again, not choice.blocked)


def main() -> None:
    followed_runs.keep_alive()
    entries = model_picker.entries_or_stop()
    with st.sidebar:
        choice = choose(entries)
    st.title("Benchmark", anchor=False)
    st.caption(f"{WHAT}{RAY if configured() else ''}.")
    shown = followed()
    live = shown is not None and not shown.ended
    buttons(choice, shown, live)
    show(shown, live, choice)


preparation.through_app()
main()

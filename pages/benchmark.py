"""Benchmark: start a dataset run, watch it, cancel it, resume it.  The run is a job in the engine's
queue: it continues when the user opens another page or closes the browser."""

import streamlit as st

from engine import settings
from engine.jobs.benchmark_job import BenchmarkJob, sweep_jobs
from engine.storage.run_header import HEADER
from ui.benchmark import run_choice, run_progress_view
from ui.benchmark.run_choice import RunChoice, choose, words
from ui.benchmark.run_progress_view import RUN
from ui.widgets import followed_runs, links, model_picker, notices, preparation
from ui.widgets.choices import run_and_cancel
from ui.widgets.text import escape

LOOK_S = 0.5
EXAMPLE = f"{settings.COMMAND} bench --dataset ROOT --models NAME,NAME --samples 20"


def buttons(choice: RunChoice, live: bool) -> None:
    plans, dataset = choice.plans, choice.dataset
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = run_and_cancel("benchmark", "Start", "benchmark_start", live, bool(plans), cancel)
        if not live:
            planned = f"Planned: {words(plans)}" if plans else choice.problem
            notices.small(planned, "benchmark_planned")
    if pressed and plans and dataset is not None:
        links.forget()
        if len(plans) > 1:
            RUN.start(*sweep_jobs(plans, dataset.root))
        else:
            RUN.start(BenchmarkJob(plan=plans[0], root=dataset.root, cluster=choice.cluster))
        st.rerun()
    if not live:
        run_choice.forecast(choice)


def cancel() -> None:
    followed_runs.stop([*RUN.jobs(), *rest_of_sweep(RUN.shown())])


def rest_of_sweep(shown: BenchmarkJob | None) -> list[BenchmarkJob]:
    if shown is None or not shown.sweep:
        return []
    return [job for job in RUN.live() if job.sweep == shown.sweep and job is not shown]


def board(job: BenchmarkJob, live: bool) -> None:
    """The shown run, refreshed until it ends.  live: what the buttons show."""
    known = job.folder is not None

    @st.fragment(run_every=LOOK_S if live else None)
    def look() -> None:
        if live and (job.ended or (job.folder is not None) != known):
            st.rerun()
        run_progress_view.draw(job)

    st.subheader(escape(job.title), anchor=False)
    look()
    if job.folder is not None:
        notices.small(f"Saved in {job.folder}", "benchmark_folder")
        label = "Open the results" if job.state == "done" else "Results so far"
        links.to_results(label, job.folder.name)
    begun = [path.name for path in job.sweep if (path / HEADER).exists()]
    if len(begun) > 1:
        label = f"Open the sweep: {len(begun)} of {len(job.sweep)} runs"
        links.to_results(label, begun, results_view="Quality")


def main() -> None:
    entries = model_picker.entries_or_stop()
    with st.sidebar:
        choice = choose(entries)
    st.title("Benchmark", anchor=False)
    st.caption(
        "Runs every chosen model on every chosen sample, one by one or in batches. Each result is "
        "saved as soon as it is measured."
    )
    shown = RUN.shown()
    if shown is not None and shown.ended and (rest := rest_of_sweep(shown)):
        shown = rest[0]  # the next run of a sweep
        RUN.show(shown)
    live = shown is not None and not shown.ended
    buttons(choice, live)
    stopped = shown is not None and shown.state in ("cancelled", "failed")
    if stopped:  # Resume is beside Start, not below all that the run has measured
        run_progress_view.unfinished(shown, choice)
    if shown is not None:
        board(shown, live)
    else:
        if RUN.lost():
            notices.notice(
                "The run in this link is no longer active on this server: open its results, or "
                "resume it below if it is unfinished.",
                "lost",
            )
        notices.hint(
            "Choose a dataset and models in the sidebar and press Start (Ctrl+Enter). A run can be "
            "cancelled, interrupted and resumed at any time, and it continues when this page is "
            "closed. A run started on the Compare page meanwhile gets the device between two "
            "samples. From a terminal:"
        )
        command = EXAMPLE
        if choice.plans and choice.dataset:
            command = run_choice.command(choice.plans, choice.dataset, choice.cluster)
        st.code(command, language=None)
    for job in RUN.live():
        if job is not shown:
            said = f"{job.title}: {run_progress_view.doing(job, job.seen)}"
            with st.container(horizontal=True, vertical_alignment="center"):
                notices.small(said, f"other_{job.id}")
                st.button("Show", key=f"benchmark_show_{job.id}", on_click=RUN.show, args=(job,))
    if not stopped:
        run_progress_view.unfinished(shown, choice)


preparation.through_app(main)

"""Load, Unload and Full hash: buttons that queue a job, and the progress that all visitors see."""

import streamlit as st

from engine.jobs import queue
from engine.jobs.model_jobs import Action, ModelJob
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.quoting import gib
from ui.widgets import followed_runs, notices
from ui.widgets.followed_runs import Followed

JOBS = Followed("models_job", ModelJob)  # of any visitor
LOOK_S = 0.5
BUTTONS: dict[Action, tuple[str, str, str]] = {  # label, what the job does, help
    "load": (
        "Load",
        "Loading",
        "Reads the weights into the device's memory. If the memory is full, the least recently "
        "used models are unloaded.",
    ),
    "unload": (
        "Unload",
        "Unloading",
        "Frees its memory. Its features stay in the cache; a run loads the model again.",
    ),
    "hash": (
        "Full hash",
        "Computing the full hash",
        "Reads every byte of its files once. The hash identifies the checkpoint.",
    ),
}


def of(entry: ModelEntry) -> ModelJob | None:
    return next((job for job in reversed(JOBS.all()) if job.entry == entry), None)


def start(entry: ModelEntry, action: Action) -> None:
    """Queues a job, unless this model has a live one: another page may have started it."""
    if not any(job.entry == entry for job in JOBS.live()):
        queue.manager().submit(ModelJob(entry=entry, action=action))


def show(entry: ModelEntry, loadable: bool, hashable: bool) -> None:
    job = of(entry)
    if job is not None and not job.ended:
        followed_runs.bar(job, LOOK_S, doing)
        settled = job.stopping or job.action == "unload"
        st.button(
            "Cancel", key=f"models_cancel_{entry.name}", on_click=job.cancel, disabled=settled
        )
        return
    resident = entry in registry.resident()
    offered: list[Action] = ["unload"] if resident else ["load"] if loadable else []
    with st.container(horizontal=True, gap="small"):
        for action in [*offered, *(("hash",) if hashable else ())]:
            label, _, help_text = BUTTONS[action]
            key = f"models_{action}_{entry.name}"
            st.button(label, key=key, help=help_text, on_click=start, args=(entry, action))
    if job is None:
        return
    # A failure is shown until the model is loaded or retried.
    failed = job.state == "failed" and (job.action == "hash" or not resident)
    if failed or job.state == "cancelled":
        notices.ended(job.state, job.error, f"model_{entry.name}")
    elif job.action == "unload" and job.freed and not resident:
        notices.small(f"Unloaded: {gib(job.freed)} of weights freed.", f"model_{entry.name}")


def doing(job: ModelJob) -> str:
    if job.stopping:
        return f"Cancelling … {job.elapsed_s:,.0f} s"
    step, (done, total) = "", job.progress
    if job.step == "hash":
        step = f": {gib(done)} of {gib(total)} read for the hash"
    elif job.step == "weights":
        step = f": {done:,} of {total:,} weights"
    return f"{BUTTONS[job.action][1]}{step} … {job.elapsed_s:,.0f} s"

"""Load, Unload and Full hash: buttons that queue a job, and the progress that all visitors see."""

from __future__ import annotations

import streamlit as st

from engine.jobs import queue
from engine.jobs.model_jobs import Action, ModelJob, ModelView
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
    """The last job of this model."""
    return next((job for job in reversed(JOBS.all()) if job.entry == entry), None)


def start(entry: ModelEntry, action: Action) -> None:
    """Queues a job, unless this model has a live one: another page may have started it."""
    if not any(job.entry == entry for job in JOBS.live()):
        queue.manager().submit(ModelJob(entry=entry, action=action))


def show(entry: ModelEntry, loadable: bool, hashable: bool) -> None:
    """The live job, or the buttons and the outcome of the last job."""
    job = of(entry)
    if job is not None and not job.ended:
        followed_runs.bar(job, LOOK_S, progress)
        view = job.view()
        settled = view.cancelling or view.action == "unload"
        key = f"models_cancel_{view.model}"
        st.button("Cancel", key=key, on_click=job.cancel, disabled=settled)
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
    view = job.view()
    # A failure is shown until the model is loaded or retried.
    failed = view.state == "failed" and (view.action == "hash" or not resident)
    if failed or view.state == "cancelled":
        notices.ended(view.state, view.error, f"model_{entry.name}")
    elif view.action == "unload" and view.freed and not resident:
        notices.small(f"Unloaded: {gib(view.freed)} of weights freed.", f"model_{entry.name}")


def progress(view: ModelView) -> tuple[float, str]:
    share = view.done / view.total if view.total else 0.0
    return min(1.0, share), doing(view)


def doing(view: ModelView) -> str:
    if view.cancelling:
        return f"Cancelling … {view.elapsed_s:,.0f} s"
    step = ""
    if view.step == "hash":
        step = f": {gib(view.done)} of {gib(view.total)} read for the hash"
    elif view.step == "weights":
        step = f": {view.done:,} of {view.total:,} weights"
    return f"{BUTTONS[view.action][1]}{step} … {view.elapsed_s:,.0f} s"

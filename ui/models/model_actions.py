"""Load, Unload and Full hash: buttons that queue a job, and the job until it has ended.

Boundary: the engine's queue on one side, a card on the other.  Nothing is kept here: whoever opens
the page sees the jobs of all.
"""

from __future__ import annotations

import streamlit as st

from engine.jobs import queue
from engine.jobs.model_jobs import Action, ModelJob, ModelView
from engine.machine.memory import gib
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from ui.widgets import notices
from ui.widgets.text import count

LOOK_S = 0.5
LOAD_HELP = (
    "Reads the weights into the device's memory. Models that were used least recently are unloaded "
    "if this one does not fit beside them."
)
UNLOAD_HELP = "Gives its memory back. Its features stay in the cache; a run loads it again."
HASH_HELP = "Reads every byte of its files, once: the hash proves which checkpoint this is."
DOING: dict[Action, str] = {
    "load": "Loading",
    "unload": "Unloading",
    "hash": "Computing the full hash",
}


def live() -> list[ModelJob]:
    """All jobs of models that have not ended."""
    return [job for job in _all() if not job.ended]


def of(entry: ModelEntry) -> ModelJob | None:
    """The last job of this model, whoever started it."""
    found = [job for job in _all() if job.entry == entry]
    return found[-1] if found else None


def _all() -> list[ModelJob]:
    return [job for job in queue.manager().all() if isinstance(job, ModelJob)]


def start(entry: ModelEntry, action: Action) -> None:
    """Queues a job, unless one for this model is under way: another page may have been quicker."""
    if not any(job.entry == entry for job in live()):
        queue.manager().submit(ModelJob(entry=entry, action=action))


def show(entry: ModelEntry, loadable: bool, hashable: bool) -> None:
    """The job under way, or else the buttons and how the last job ended."""
    job = of(entry)
    if job is not None and not job.ended:
        st.fragment(_follow, run_every=LOOK_S)(job)
        return
    _buttons(entry, loadable, hashable)
    if job is not None:
        _ended(entry, job.view())


def _buttons(entry: ModelEntry, loadable: bool, hashable: bool) -> None:
    resident = entry in registry.resident()
    with st.container(horizontal=True, gap="small"):
        if resident:
            _button(entry, "Unload", "unload", UNLOAD_HELP)
        elif loadable:
            _button(entry, "Load", "load", LOAD_HELP)
        if hashable:
            _button(entry, "Full hash", "hash", HASH_HELP)


def _button(entry: ModelEntry, label: str, action: Action, help_text: str) -> None:
    key = f"models_{action}_{entry.name}"
    st.button(label, key=key, help=help_text, on_click=start, args=(entry, action))


def _follow(job: ModelJob) -> None:
    """The job as it stands; the page is drawn again when it has ended."""
    view = job.view()
    if view.ended:
        st.rerun()
    share = view.done / view.total if view.total else 0.0
    st.progress(min(1.0, share), text=doing(view))
    st.button(
        "Cancel",
        key=f"models_cancel_{view.model}",
        on_click=job.cancel,
        disabled=view.cancelling or view.action == "unload",
    )


def doing(view: ModelView) -> str:
    """What the job does now, how far it is, and for how long."""
    if view.state == "queued":
        if view.position:
            return f"Waiting: {count(view.position, 'job')} before this one"
        return "Waiting: next"
    if view.cancelling:
        return f"Cancelling … {view.elapsed_s:,.0f} s"
    return f"{DOING[view.action]}{_step(view)} … {view.elapsed_s:,.0f} s"


def _step(view: ModelView) -> str:
    if view.step == "hash":
        return f": {gib(view.done)} of {gib(view.total)} read for the hash"
    if view.step == "weights":
        return f": {view.done:,} of {view.total:,} weights"
    return ""


def _ended(entry: ModelEntry, view: ModelView) -> None:
    """Why the last job failed, until it is tried again or the model has been loaded by a run."""
    if view.state == "failed" and (view.action == "hash" or entry not in registry.resident()):
        notices.problem(view.error, f"model_{entry.name}")
    elif view.state == "cancelled":
        notices.small(view.error, f"model_{entry.name}")
    elif view.action == "unload" and view.freed and entry not in registry.resident():
        notices.small(f"Unloaded: {gib(view.freed)} of weights freed.", f"model_{entry.name}")

"""Buttons that load, unload and hash a model, with the progress that all visitors see; the memory
of each device, with the sizes of its models; and the feature cache on disk, which imports torch.

The bars refresh themselves, and redraw the whole page when any visitor loaded or unloaded a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html
from typing import TYPE_CHECKING

import streamlit as st

from engine.errors import CacheError
from engine.jobs import queue
from engine.jobs.model_work import Action, ModelJob
from engine.machine import device
from engine.machine.device import Memory
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.quoting import gib
from engine.verify import certificates
from ui.widgets import followed_runs, notices
from ui.widgets.followed_runs import Followed
from ui.widgets.text import count, escape

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import CacheState, FeatureCache

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
IDLE_S = 3.0  # each refresh uses the CPU that may be timed
LIVE_S = 1.0
CLEARED = "models_cleared"  # a sentence about the last clearing
UNKNOWN = "a checkpoint that is not in models.toml"


def start(entry: ModelEntry, action: Action) -> None:
    """Queues a job, unless this model has a live one: another page may have started it."""
    if not any(job.entry == entry for job in JOBS.live()):
        queue.manager().submit(ModelJob(entry=entry, action=action))


def actions(entry: ModelEntry, loadable: bool, hashable: bool) -> None:
    job = next((job for job in reversed(JOBS.all()) if job.entry == entry), None)
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


def devices(entries: Sequence[ModelEntry]) -> None:
    drawn = snapshot()

    @st.fragment(run_every=LIVE_S if drawn[1] else IDLE_S)
    def look() -> None:
        if snapshot() != drawn:
            st.rerun()
        held = registry.resident_bytes()
        places = {entry: registry.card(entry).device for entry in held}
        for memory in device.memories():
            here = {entry: size for entry, size in held.items() if _is_on(memory, places[entry])}
            free = f"{gib(memory.free)} free of {gib(memory.total)}"
            words = escape(f"{memory.device}: {memory.label}, {free}")
            st.progress(1 - memory.free / memory.total, text=words)
            st.html(facts(sizes(memory, here, entries), memory.device))

    look()


def snapshot() -> tuple[frozenset[ModelEntry], frozenset[str]]:
    return frozenset(registry.resident()), frozenset(job.id for job in JOBS.live())


def sizes(
    memory: Memory, held: Mapping[ModelEntry, int], entries: Sequence[ModelEntry]
) -> list[tuple[str, str]]:
    """Models in the order of models.toml (then those no longer in it), and other use."""
    order = [entry for entry in entries if entry in held]
    order += [entry for entry in held if entry not in order]
    rest = max(0, memory.total - memory.free - sum(held.values()))
    return [*((entry.label, gib(held[entry])) for entry in order), ("other use", gib(rest))]


def _is_on(memory: Memory, place: str) -> bool:
    """Whether a model on device `place` ("cpu", "cuda", "cuda:1", "mps") uses this memory."""
    if place.startswith("cuda"):
        return memory.device == (place if ":" in place else f"{place}:0")
    return memory.device == "cpu"  # other accelerators share the system's memory


def facts(rows: Iterable[tuple[str, str]], about: str) -> str:
    """Names and values, one pair per line; `about` is the label for screen readers."""
    inside = "".join(  # a path may break after each slash
        f"<dt>{escape_html(name)}</dt><dd>{escape_html(value).replace('/', '/<wbr>')}</dd>"
        for name, value in rows
    )
    return f'<dl class="model-facts" aria-label="{escape_html(about)}">{inside}</dl>'


def cache(entries: Sequence[ModelEntry]) -> None:
    st.subheader("Feature cache", anchor=False)
    with st.spinner("Opening the feature cache …"):
        from engine.pipeline import feature_cache
    with notices.telling("features", notices.problem):
        kept = feature_cache.shared()
        state = kept.state()
        held = f"{gib(state.bytes)} of {gib(state.limit_bytes)}"
        share = min(1.0, state.bytes / max(1, state.limit_bytes))
        st.progress(share, text=escape(f"{held}; then the oldest entries are removed"))
        reads, rate = state.hits + state.misses, "no reads since this server started"
        if reads:
            of = f"{state.hits:,} of {count(reads, 'read')} since this server started"
            rate = f"{state.hits / reads:.0%} ({of})"
        rows = [
            ("Location", str(state.folder)),
            ("Entries", f"{state.entries:,}"),
            ("Hit rate", rate),
            *cached_sizes(state, entries),
        ]
        st.html(facts(rows, "Feature cache"))
        words = f"all {count(state.entries, 'entry', 'entries')} ({gib(state.bytes)})"
        with st.popover("Clear …", key="models_clear", disabled=not state.entries):
            notices.small(f"Clear {words}? The next runs encode their pictures again.", "clear")
            key, args = "models_clear_yes", (kept, words)
            st.button("Clear", type="primary", key=key, on_click=_clear, args=args)
        if cleared := st.session_state.get(CLEARED):
            notices.small(cleared, "cleared")


def cached_sizes(state: CacheState, entries: Sequence[ModelEntry]) -> list[tuple[str, str]]:
    """By checkpoint, which models may share: first those of models.toml; then the cache's index."""
    labels: dict[str, list[str]] = {}
    for entry in entries:
        digest = certificates.digest_now(entry) or ""
        if digest in state.checkpoints:
            labels.setdefault(digest, []).append(entry.label)
    for digest in sorted(set(state.checkpoints) - set(labels)):
        labels[digest] = [f"{UNKNOWN} ({digest[:12]})"]
    rows = [(", ".join(names), gib(state.checkpoints[one][1])) for one, names in labels.items()]
    index = state.bytes - sum(size for _, size in state.checkpoints.values())
    return [*rows, ("Index", gib(max(0, index)))]


def _clear(kept: FeatureCache, words: str) -> None:
    done = f"Cleared {words}."
    try:
        kept.clear()
    except CacheError as error:
        done = str(error)
    st.session_state[CLEARED] = done

"""The feature cache: location, entries per model, hit rate, clearing it.

Clearing is fast, so it is no job.  The cache imports torch: a background thread imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from engine.errors import CacheError
from engine.models.checkpoint import ModelEntry
from engine.quoting import gib
from engine.verify import certificates
from ui.models.memory_bars import facts
from ui.widgets import notices, preparation
from ui.widgets.text import count, escape

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import CacheState

CLEARED = "models_cleared"  # a sentence about the last clearing
UNKNOWN = "a checkpoint that is not in models.toml"
INDEX = "Index"


def show(entries: Sequence[ModelEntry]) -> None:
    """The section, the last one of the page, once the cache is imported."""
    st.subheader("Feature cache", anchor=False)
    with st.spinner("Opening the feature cache …"):
        cache = preparation.cache_code().result()
    try:
        state = cache.shared().state()
    except CacheError as error:
        notices.problem(str(error), "features")
        return
    size = f"{gib(state.bytes)} of {gib(state.limit_bytes)}; then the oldest entries are removed"
    share = state.bytes / max(1, state.limit_bytes)
    st.progress(min(1.0, share), text=escape(size))
    rows = [
        ("Location", str(state.folder)),
        ("Entries", f"{state.entries:,}"),
        ("Hit rate", hit_rate(state)),
        *sizes(state, entries),
    ]
    st.html(facts(rows, "Feature cache"))
    _clearing(state)


def hit_rate(state: CacheState) -> str:
    if state.hit_rate is None:
        return "no reads since this server started"
    reads = count(state.hits + state.misses, "read")
    return f"{state.hit_rate:.0%} ({state.hits:,} of {reads} since this server started)"


def sizes(state: CacheState, entries: Sequence[ModelEntry]) -> list[tuple[str, str]]:
    """The size per checkpoint, which several models may share: those of models.toml in its order
    and then the others; and of the cache's index."""
    labels: dict[str, list[str]] = {}
    for entry in entries:
        digest = certificates.digest_now(entry) or ""
        if digest in state.checkpoints:
            labels.setdefault(digest, []).append(entry.label)
    for digest in sorted(set(state.checkpoints) - set(labels)):
        labels[digest] = [f"{UNKNOWN} ({digest[:12]})"]
    rows = [(", ".join(names), gib(state.checkpoints[one][1])) for one, names in labels.items()]
    index = state.bytes - sum(size for _, size in state.checkpoints.values())
    return [*rows, (INDEX, gib(max(0, index)))]


def _clearing(state: CacheState) -> None:
    words = f"all {count(state.entries, 'entry', 'entries')} ({gib(state.bytes)})"
    with st.popover("Clear …", key="models_clear", disabled=not state.entries):
        notices.small(f"Clear {words}? The next runs encode their pictures again.", "clear")
        st.button("Clear", type="primary", key="models_clear_yes", on_click=_clear, args=(words,))
    if cleared := st.session_state.get(CLEARED):
        notices.small(cleared, "cleared")


def _clear(words: str) -> None:
    done = f"Cleared {words}."
    try:
        preparation.cache_code().result().shared().clear()
    except CacheError as error:
        done = str(error)
    st.session_state[CLEARED] = done

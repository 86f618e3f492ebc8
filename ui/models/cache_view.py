"""The feature cache: location, entries per model, hit rate, clearing it.

Clearing is fast, so it is no job.  The cache imports torch: a background thread imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st

from engine.errors import CacheError
from engine.models.checkpoint import ModelEntry
from engine.palette import NEUTRAL, family_colour
from engine.quoting import gib
from engine.verify import certificates
from ui.models.memory_bars import FREE, BarPart, bar, facts
from ui.widgets import notices, preparation
from ui.widgets.text import count

if TYPE_CHECKING:
    from engine.pipeline.feature_cache import CacheState, FeatureCache

WAIT_S = 0.5
ASKED = "models_clear"  # the digest to confirm, or ALL
CLEARED = "models_cleared"  # a sentence about the last clearing
ALL = "all"
UNKNOWN = "a checkpoint that is not in models.toml"
INDEX = "index"
_WIDTHS = [4, 1.5, 2, 2.5]


class Share(NamedTuple):
    """The cache entries of one checkpoint, which several models may share."""

    digest: str
    label: str
    colour: str
    entries: int
    size: int

    @property
    def words(self) -> str:
        return f"{count(self.entries, 'entry', 'entries')} ({gib(self.size)})"


def show(entries: Sequence[ModelEntry]) -> None:
    """The section, once the cache is imported."""
    st.subheader("Feature cache", anchor=False)
    if not preparation.cache_code().done():
        st.fragment(_wait, run_every=WAIT_S)()
        return
    try:
        state = _cache().state()
    except CacheError as error:
        notices.problem(str(error), "features")
        return
    found = shares(state, entries)
    size = f"{gib(state.bytes)} of {gib(state.limit_bytes)}; then the oldest entries are removed"
    rows = [
        ("Location", str(state.folder)),
        ("Entries", f"{state.entries:,}"),
        ("Size", size),
        ("Hit rate", hit_rate(state)),
    ]
    st.html(facts(rows, "Feature cache"))
    with st.container(key="features_bar"):
        st.html(bar("Feature cache on disk", parts(state, found)))
    if found:
        _table(found)
    _clearing(state, found)


def _wait() -> None:
    if preparation.cache_code().done():
        st.rerun()
    st.caption("Opening the feature cache …")


def hit_rate(state: CacheState) -> str:
    if state.hit_rate is None:
        return "no reads since this server started"
    reads = count(state.hits + state.misses, "read")
    return f"{state.hit_rate:.0%} ({state.hits:,} of {reads} since this server started)"


def shares(state: CacheState, entries: Sequence[ModelEntry]) -> list[Share]:
    """Entries per checkpoint: those of models.toml in its order, then the others."""
    names: dict[str, tuple[str, str]] = {}
    for entry in entries:
        digest = certificates.digest_now(entry) or ""
        if digest in state.checkpoints:
            before = f"{names[digest][0]}, " if digest in names else ""
            names[digest] = (before + entry.label, family_colour(entry.family))
    for digest in sorted(set(state.checkpoints) - set(names)):
        names[digest] = (f"{UNKNOWN} ({digest[:12]})", NEUTRAL)
    return [Share(digest, *name, *state.checkpoints[digest]) for digest, name in names.items()]


def parts(state: CacheState, found: Sequence[Share]) -> list[BarPart]:
    """The bar: each checkpoint's entries, the cache's index, and the free rest."""
    held = [BarPart(share.label, share.size, share.colour) for share in found]
    index = max(0, state.bytes - sum(share.size for share in found))
    free = max(0, state.limit_bytes - state.bytes)
    return [*held, BarPart(INDEX, index, NEUTRAL), BarPart(FREE, free, None)]


def _table(found: Sequence[Share]) -> None:
    with st.container(key="features_table", gap="xsmall"):
        for head, column in zip(("Model", "Entries", "Size", ""), st.columns(_WIDTHS), strict=True):
            column.caption(head)
        for share in found:
            name, entries, size, place = st.columns(_WIDTHS, vertical_alignment="center")
            name.text(share.label)
            entries.text(f"{share.entries:,}")
            size.text(gib(share.size))
            place.button(
                "Clear …", key=f"models_clear_{share.digest}", on_click=_ask, args=(share.digest,)
            )


def _clearing(state: CacheState, found: Sequence[Share]) -> None:
    """The button "Clear all", or the confirmation of a clearing."""
    asked = st.session_state.get(ASKED, "")
    share = next((share for share in found if share.digest == asked), None)
    if share is not None:
        _question(f"{share.words} of {share.label}", share.digest)
    elif asked == ALL and state.entries:
        _question(f"all {Share(ALL, '', '', state.entries, state.bytes).words}", None)
    else:
        empty = not state.entries
        st.button("Clear all …", key="models_clear_all", on_click=_ask, args=(ALL,), disabled=empty)
        if cleared := st.session_state.get(CLEARED):
            notices.small(cleared, "cleared")


def _question(what: str, digest: str | None) -> None:
    notices.notice(f"Clear {what}? The next runs encode their pictures again.", "clear")
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Clear", type="primary", key="models_clear_yes", on_click=_clear, args=(what, digest)
        )
        st.button("Keep", key="models_clear_no", on_click=_ask, args=("",))


def _ask(digest: str) -> None:
    st.session_state[ASKED] = digest
    st.session_state[CLEARED] = ""


def _clear(what: str, digest: str | None) -> None:
    _ask("")
    try:
        number = _cache().clear(digest)
    except CacheError as error:
        st.session_state[CLEARED] = str(error)
        return
    st.session_state[CLEARED] = f"Cleared {what}." if number else "There was nothing to clear."


def _cache() -> FeatureCache:
    from engine.pipeline import feature_cache  # imports torch: never with the page

    return feature_cache.shared()

"""Models: the entries of models.toml, and why one cannot be used here.

Boundary: reads the registry; loads nothing.
"""

from __future__ import annotations

import streamlit as st

from engine import standing
from engine.errors import StageScopeError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from ui import cards, front, runs
from ui.verify import kept

SEES = {"events": "event images", "video": "8 frames of a video", "image": "one frame"}


COLUMNS = 3


def show(entry: ModelEntry) -> None:
    """One entry: its names, its form, and whether it can be used."""
    reason = registry.unavailable(entry)
    with cards.frame(entry):
        cards.heading(entry)
        if reason is None:
            ready(entry)
        else:
            st.badge("not available", color="orange")
            cards.notice(reason, f"reason_{entry.name}")
        revision = f", revision {entry.revision}" if entry.revision else ""
        cards.small(f"Sees {SEES[entry.kind]}; runs in {entry.dtype}.", f"form_{entry.name}")
        cards.small(f"{entry.name}: {entry.checkpoint}{revision}", f"checkpoint_{entry.name}")


def ready(entry: ModelEntry) -> None:
    """Whether a certificate covers the entry as it would run now, and the way to it."""
    found = standing.covering(entry)
    words, colour, help_text = cards.standing(found["hash"] if found else None)
    query = {kept.HASH: found["hash"]} if found else {"verify_models": entry.label}
    label = "Show the certificate →" if found else "Verify this model →"
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge("ready", color="green")
        st.badge(words, color=colour, help=help_text)
        st.page_link("pages/verify.py", label=label, query_params=query)


def main() -> None:
    runs.keep_alive()
    st.title("Models", anchor=False)
    st.caption("The entries of models.toml, in its order. Nothing is downloaded by the app.")
    try:
        entries = registry.entries()
    except StageScopeError as error:
        cards.problem(str(error), "models_file")
        st.stop()
    for start in range(0, len(entries), COLUMNS):
        row = entries[start : start + COLUMNS]
        for entry, column in zip(row, st.columns(COLUMNS), strict=False):
            with column:
                show(entry)


front.through_app()
main()

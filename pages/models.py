"""Models: the entries of models.toml, and why one cannot be used here.

Boundary: reads the registry; loads nothing.
"""

from __future__ import annotations

import streamlit as st

from engine.errors import StageScopeError
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from ui import cards
from ui.text import escape

SEES = {"events": "event images", "video": "8 frames of a video", "image": "one frame"}


def show(entry: ModelEntry) -> None:
    """One entry: its names, its form, and whether it can be used."""
    reason = registry.unavailable(entry)
    with st.container(border=True, key=f"card_{entry.family}_{entry.name}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{escape(entry.label)}**", width="content")
            if entry.demo:
                st.badge("demo checkpoint", color="gray")
            st.badge("ready", color="green") if reason is None else st.badge(
                "not available", color="orange"
            )
        revision = f", revision {entry.revision}" if entry.revision else ""
        st.text(f"{entry.name}: sees {SEES[entry.kind]}, {entry.dtype}")
        cards.small(f"{entry.checkpoint}{revision}", f"checkpoint_{entry.name}")
        if reason:
            cards.problem(reason, f"reason_{entry.name}")


def main() -> None:
    st.title("Models", anchor=False)
    st.caption("Entries of models.toml. Nothing is downloaded by the app.")
    try:
        entries = registry.entries()
    except StageScopeError as error:
        cards.problem(str(error), "models_file")
        st.stop()
    for entry in entries:
        show(entry)


main()

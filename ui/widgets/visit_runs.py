"""Runs of this visit only: comparisons of a visitor's own files.

Boundary: a temporary folder of the session, which no other visit lists.  It is deleted when the
visit ends and when the server stops.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui.widgets.uploads import Visit

_MADE = "visit_runs"


def folder() -> Path | None:
    """This visit's runs folder, if it has one."""
    return make() if st.session_state.get(_MADE) else None


def make() -> Path:
    """This visit's runs folder."""
    st.session_state[_MADE] = True
    return _visit().root


@st.cache_resource(scope="session", show_spinner=False, on_release=Visit.end)
def _visit() -> Visit:
    return Visit()

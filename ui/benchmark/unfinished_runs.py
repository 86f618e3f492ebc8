"""Runs that are not finished: what is left of each, and a button to go on.

Boundary: reads the runs folder, starts jobs through the page's follower.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePath

import streamlit as st

from engine import settings
from engine.errors import StoreError
from engine.storage import run_store
from engine.storage.run_store import RunInfo
from ui.widgets import notices
from ui.widgets.text import count, when

FEW = 5
FORCE_HELP = (
    "A run goes on only with the samples, the code and the checkpoints it began with. "
    "With this switch it goes on all the same, and its journal says so."
)


def unfinished() -> list[RunInfo]:
    """The newest first; none where the runs folder cannot be read, with a sentence."""
    try:
        found = run_store.listing(settings.load().runs_dir)
    except StoreError as error:
        notices.problem(str(error), "benchmark_runs")
        return []
    return [info for info in found if info.state == "stopped"]


def left(info: RunInfo) -> int:
    """Measured results that a run still lacks."""
    return info.planned - _done(info.folder, stamp(info.folder))


@st.cache_data(max_entries=64, show_spinner=False)
def _done(folder: Path, stamp: tuple[int, int]) -> int:
    rows = (row for _, row in run_store.read(folder).results())
    return len({row.task for row in rows if row.phase == "measured"})


def stamp(folder: Path) -> tuple[int, int]:
    """Changes with a run's results."""
    try:
        found = (folder / run_store.RESULTS).stat()
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def listed(busy: set[Path], resume: Callable[[Path, bool], None], able: bool) -> None:
    """The list; runs at work or waiting in this server are left out.  `able`: one may be resumed
    now."""
    found = [info for info in unfinished() if info.folder not in busy]
    if not found:
        return
    st.subheader("Not finished", anchor=False, help="Runs that were cancelled or interrupted.")
    force = st.toggle(
        "Go on although something has changed", key="benchmark_force", help=FORCE_HELP
    )
    shown = found if st.session_state.get("benchmark_all") else found[:FEW]
    for info in shown:
        _line(info, force, resume, able)
    if len(found) > FEW:
        st.toggle(f"Show all {len(found):,}", key="benchmark_all")


def _line(info: RunInfo, force: bool, resume: Callable[[Path, bool], None], able: bool) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        notices.small(words(info), f"run_{info.folder.name}")  # a copied run has the same id
        st.button(
            "Resume",
            key=f"benchmark_resume_{info.folder.name}",
            on_click=resume,
            args=(info.folder, force),
            disabled=not able,
        )
        st.page_link(
            "pages/results.py",
            label="Results so far",
            query_params={"results_runs": info.folder.name},
        )


def words(info: RunInfo) -> str:
    """What a run is and what is left of it."""
    models = ", ".join(info.models)
    try:
        lacking = left(info)
        rest = f"{count(lacking, 'result')} of {info.planned:,} left"
    except StoreError as error:
        rest = str(error)
    return f"{when(info.created)} · {rest}\n{models} · {PurePath(info.dataset).name} · {info.id}"

"""Unfinished runs: how many results each lacks, and a button to resume it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    "A run resumes only with the same samples, code and checkpoints. "
    "With this switch it resumes anyway, and its journal says so."
)


def unfinished() -> list[RunInfo]:
    """Unfinished runs, newest first; none, with a message, if the runs folder is unreadable."""
    try:
        found = run_store.listing(settings.load().runs_dir)
    except StoreError as error:
        notices.problem(str(error), "benchmark_runs")
        return []
    return [info for info in found if info.state == "stopped"]


def left(info: RunInfo) -> int:
    """The number of measured results that a run lacks."""
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


def listed(
    busy: set[Path],
    resume: Callable[[Path, bool], None],
    able: bool,
    labels: Mapping[str, str],
) -> None:
    """The list without `busy` folders, whose runs are live.  `able`: a run may be resumed now."""
    found = [info for info in unfinished() if info.folder not in busy]
    if not found:
        return
    st.subheader("Not finished", anchor=False, help="Runs that were cancelled or interrupted.")
    force = st.toggle(
        "Resume although something has changed", key="benchmark_force", help=FORCE_HELP
    )
    shown = found if st.session_state.get("benchmark_all") else found[:FEW]
    for info in shown:
        _line(info, words(info, labels), force, resume, able)
    if len(found) > FEW:
        st.toggle(f"Show all {len(found):,}", key="benchmark_all")


def _line(
    info: RunInfo, text: str, force: bool, resume: Callable[[Path, bool], None], able: bool
) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        notices.small(text, f"run_{info.folder.name}")  # a copied run has the same id
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


def words(info: RunInfo, labels: Mapping[str, str]) -> str:
    """A run and how many results it lacks."""
    models = ", ".join(labels.get(name, name) for name in info.models)
    try:
        lacking = left(info)
        rest = f"{count(lacking, 'result')} of {info.planned:,} left"
    except StoreError as error:
        rest = str(error)
    return f"{when(info.created)} · {rest}\n{models} · {PurePath(info.dataset).name} · {info.id}"

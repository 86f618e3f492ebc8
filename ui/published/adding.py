"""Adding published result files: dropped, from a folder, kept as a set, removed again.

A folder can be named only if the server listens on this machine only.
"""

from __future__ import annotations

import streamlit as st

from engine import settings
from engine.published.read import RecordsError, imported_sets, read_files
from engine.quoting import listed
from ui.published import opened_sets
from ui.widgets import notices
from ui.widgets.dataset_picker import on_loopback
from ui.widgets.text import count, when

WHAT = (
    "JSON result files of the original benchmark, one or several. Dropped files stay in memory for "
    "this visit only; a kept set is stored and has a link."
)
SETS = "published_sets"  # the names of the chosen sets, in the URL
MOST = 8  # open at once
_ROUND = "published_import_round"
_PROBLEM = "published_import"  # what went wrong
_DONE = "published_import_done"
TOLD = 5  # at most so many reasons


def panel(expanded: bool) -> None:
    """Where files are added; open if there is nothing else to show."""
    key = "published_import" if expanded else "published_import_more"
    with st.expander("Import published result files", expanded=expanded, key=key):
        notices.small(WHAT, "imported_what")
        left, right = st.columns(2) if on_loopback() else (st.container(), None)
        uploader = f"published_import_files_{st.session_state.get(_ROUND, 0)}"  # empty after a drop
        left.file_uploader(
            f"Drop JSON files here (at most {opened_sets.MAX_MB} MB each, "
            f"{opened_sets.TOTAL_MB} MB in all)",
            type="json",
            accept_multiple_files=True,
            key=uploader,
            on_change=_take,
            args=(uploader,),
        )
        if right is not None:
            with right.form("published_import_form", border=False):
                title, key = "Or a folder or file on this machine", "published_import_folder"
                path = st.text_input(title, key=key, placeholder="/data/results")
                asked = st.form_submit_button("Read it", key="published_import_read")
            if asked and path.strip():
                with st.spinner("Reading"):
                    _read(path.strip())
                st.rerun()
    notices.said(_PROBLEM, notices.problem)


def _take(key: str) -> None:
    if dropped := st.session_state.get(key):
        notices.attempt(_PROBLEM, _bring, [(one.name, one.getvalue()) for one in dropped])
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def _read(typed: str) -> None:
    """Every .json file below the path; files that cannot be read are left out and named."""
    brought, problems = [], []
    try:
        for name, path in read_files.find([settings.expand(typed)]):
            try:
                brought.append((name, read_files.data_of(path, name)))
            except RecordsError as error:
                problems.append(str(error))
    except RecordsError as error:
        problems.append(str(error))
    if brought:
        notices.attempt(_PROBLEM, _bring, brought)
    if problems:
        notices.keep("\n".join(problems[:TOLD]), _PROBLEM)


def _bring(named: list[tuple[str, bytes]]) -> None:
    st.session_state[_DONE] = opened_sets.drop(named)


def say_added() -> None:
    """Which of the files just added could be read."""
    added = st.session_state.pop(_DONE, [])
    unusable = [file.name for file in added if file.read.status == "unknown"]
    if read := len(added) - len(unusable):
        notices.small(f"{count(read, 'file')} read into this visit.", "imported_done")
    if unusable:
        words = f"{count(len(unusable), 'file')} cannot be used: {listed(unusable)}."
        notices.problem(f"{words} See Files and findings for the reasons.", "imported_unusable")


def visit() -> None:
    """Offers to keep the visit's files as a set."""
    if not opened_sets.dropped():
        return
    held = f"{opened_sets.VISIT}: {count(len(opened_sets.dropped()), 'file')}, without a link."
    with st.container(horizontal=True, vertical_alignment="center"):
        words = f"{held} Keep them as a set to open them again later."
        notices.small(words, "imported_visit")
        with st.popover("Keep as a set", key="published_keep_more"):
            key = "published_import_name"
            st.text_input("Name of the set", key=key, placeholder="original")
            keep, args = notices.attempt, (_PROBLEM, _save)
            st.button("Keep", key="published_keep", on_click=keep, args=args)
        st.button("Forget these files", key="published_forget", on_click=opened_sets.forget)


def _save() -> None:
    """Keeps the readable files as a set and opens it instead of the visit's files; RecordsError if
    it cannot."""
    name = str(st.session_state.get("published_import_name", "")).strip()
    every = opened_sets.dropped()
    usable = [(file.name, file.data) for file in every if file.read.status != "unknown"]
    if not usable:
        raise RecordsError("No file of this visit can be used, so there is nothing to keep.")
    imported_sets.save(name, usable)
    opened_sets.forget()
    st.session_state[SETS] = [*st.session_state.get(SETS, ()), name][-MOST:]


def head(one: imported_sets.Kept) -> None:
    """A kept set in a line; offers to delete it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        words = f"{one.name} · imported {when(one.imported)} · {count(one.files, 'file')}"
        notices.small(words, f"imported_head_{one.name}")
        with st.popover("Remove this set", key=f"published_remove_{one.name}", type="tertiary"):
            st.text("This deletes its files from this machine. Your own runs are kept.")
            key = f"published_delete_{one.name}"
            st.button("Delete it", key=key, type="primary", on_click=_delete, args=(one.name,))


def _delete(name: str) -> None:
    notices.attempt(_PROBLEM, imported_sets.delete, name)
    st.session_state[SETS] = [one for one in st.session_state[SETS] if one != name]

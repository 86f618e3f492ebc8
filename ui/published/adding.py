"""Adding published result files: dropped, from a folder, kept as a set, removed again.

A folder can be named only if the server listens on this machine only.
"""

from __future__ import annotations

import streamlit as st

from engine import settings
from engine.errors import BadInput
from engine.published.read import RecordsError, imported_sets, read_bytes, read_files
from ui.published.opened_sets import OpenedSets
from ui.results import result_sources, run_list
from ui.results.result_sources import DroppedFile, Source
from ui.widgets import notices
from ui.widgets.dataset_picker import on_loopback
from ui.widgets.text import count

WHAT = (
    "JSON result files of the original benchmark, one or several. Dropped files stay in memory for "
    "this visit only; a kept set is stored and has a link."
)
_ROUND, _PROBLEM, _DONE = "results_import_round", "results_import_problem", "results_import_done"
NAMED = 3  # at most so many unusable files are named
_FOLDER, _NAME = "results_import_folder", "results_import_name"


def panel(expanded: bool) -> None:
    """Where files are added; open if there is nothing else to show."""
    key = (
        "results_import" if expanded else "results_import_more"
    )  # closed if there are files or runs
    with st.expander("Import published result files", expanded=expanded, key=key):
        notices.small(WHAT, "imported_what")
        left, right = st.columns(2) if on_loopback() else (st.container(), None)
        with left:
            _drop()
        if right is not None:
            with right:
                _folder()
    if problem := st.session_state.pop(_PROBLEM, ""):
        notices.problem(problem, "imported_add")


def _drop() -> None:
    """An empty uploader after each drop; added files are in the list on the left."""
    key = f"results_import_files_{st.session_state.get(_ROUND, 0)}"
    st.file_uploader(
        f"Drop JSON files here (at most {result_sources.MAX_MB} MB each, "
        f"{result_sources.TOTAL_MB} MB in all)",
        type="json",
        accept_multiple_files=True,
        key=key,
        on_change=_take,
        args=(key,),
    )


def _take(key: str) -> None:
    dropped = st.session_state.get(key) or []
    if dropped:
        _bring([(one.name, one.getvalue()) for one in dropped])
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def _bring(found: list[tuple[str, bytes]]) -> None:
    try:
        added = result_sources.drop(found)
    except BadInput as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[_DONE] = frozenset(added)
    run_list.add(result_sources.VISIT)


def say_added(found: OpenedSets) -> None:
    """Which of the files just added could be read."""
    added: frozenset[DroppedFile] = st.session_state.pop(_DONE, frozenset())
    files = [file for one in found.sources for file in one.dropped]
    items = [item for item in found.items if item.source == result_sources.VISIT]
    now = [item.file for one, item in zip(files, items, strict=True) if one in added]
    unusable = [file for file in now if file.status == "unknown"]
    if read := len(now) - len(unusable):
        notices.small(f"{count(read, 'file')} read into this visit.", "imported_done")
    if unusable:
        more = len(unusable) - NAMED
        rest = f" and {count(more, 'other file')}" if more > 0 else ""
        names = ", ".join(file.name for file in unusable[:NAMED])
        notices.problem(
            f"{count(len(unusable), 'file')} cannot be used: {names}{rest}. See Files and "
            "findings for the reasons.",
            "imported_unusable",
        )


def _folder() -> None:
    with st.form("results_import_form", border=False):
        path = st.text_input(
            "Or a folder or file on this machine", key=_FOLDER, placeholder="/data/results"
        )
        asked = st.form_submit_button("Read it", key="results_import_read")
    if asked and path.strip():
        _read(path.strip())
        st.rerun()


def _read(typed: str) -> None:
    """Every .json file below the path; files that cannot be read are left out and named."""
    place, brought, left_out = st.empty(), [], []
    try:
        found = read_files.find([settings.expand(typed)])
        for number, (name, path) in enumerate(found):
            text = f"Reading: {number:,} of {len(found):,} files"
            place.progress(number / len(found), text=text)
            try:
                brought.append((name, read_files.data_of(path, name)))
            except RecordsError as error:
                left_out.append(str(error))
    except RecordsError as error:
        left_out.append(str(error))
    if brought:
        _bring(brought)
    if left_out:
        st.session_state[_PROBLEM] = "\n".join(left_out[:5])


def keep(one: Source) -> None:
    """Offers to keep the visit's files as a set."""
    if one.kind != "visit":
        return
    notices.small(
        "These files are kept for this visit only and have no link. Keep them as a set to open "
        "them again later.",
        "imported_visit",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("Name of the set", key=_NAME, placeholder="original", width=260)
        st.button("Keep as a set", key="results_keep", on_click=_save, args=(one,))
        st.button("Forget these files", key="results_forget", on_click=_forget)
    if problem := st.session_state.pop("results_keep_problem", ""):
        notices.problem(problem, "imported_keep")


def _save(one: Source) -> None:
    """Keeps the readable files as a set and opens it instead of the visit's files."""
    name = str(st.session_state.get(_NAME, "")).strip()
    usable = [
        (file.name, file.data)
        for file in one.dropped
        if read_bytes(file.name, file.data).status != "unknown"
    ]
    try:
        if not usable:
            raise RecordsError("No file of this visit can be used, so there is nothing to keep.")
        imported_sets.save(name, usable)
    except RecordsError as error:
        st.session_state["results_keep_problem"] = str(error)
        return
    _forget()
    run_list.add(result_sources.SET + name)


def _forget() -> None:
    result_sources.forget()
    run_list.drop(result_sources.VISIT)


def remove(one: Source) -> None:
    """Offers to delete a kept set."""
    if one.kind != "set":
        return
    with st.popover("Remove this set", key=f"results_remove_{one.key}", type="tertiary"):
        st.text("This deletes its files from this machine. Your own runs are kept.")
        st.button(
            "Delete it",
            key=f"results_delete_{one.key}",
            type="primary",
            on_click=_delete,
            args=(one.name,),
        )


def _delete(name: str) -> None:
    try:
        imported_sets.delete(name)
    except RecordsError as error:
        st.session_state[_PROBLEM] = str(error)
    run_list.drop(result_sources.SET + name)

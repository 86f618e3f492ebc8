"""The chosen runs above the figures: settings and problems; name, tags, baseline, deletion.

Boundary: widgets that change only what users say of a run, or delete it; the engine writes.
"""

from __future__ import annotations

import streamlit as st

from engine.errors import StageScopeError
from engine.storage import plan_words, run_details, run_store
from engine.storage.run_details import MAX_NAME_CHARS, MAX_TAGS
from ui.results import run_list, run_sources
from ui.results.opened_runs import OpenedRuns
from ui.results.run_sources import ResultSource, RunSource
from ui.widgets import dataset_picker, notices
from ui.widgets.text import escape, when

ASKED, SAID = "results_delete_asked", "results_edit_said"
DIFFERS_HELP = "The chosen runs differ in this setting."
CHANGED_HELP = "This setting is not the default."
BASELINE_HELP = (
    "One run can be the baseline. It comes first in lists and comparisons, and other runs are "
    "compared with it."
)
NOT_HERE = (
    "Others can reach this server, so runs are not deleted from the page: delete the folder of "
    "the run on the server."
)


def show(opened: OpenedRuns) -> None:
    """A line per run, its problems, and what the last change failed with."""
    infos = [one.info.settings if isinstance(one, RunSource) else {} for one in opened.sources]
    chips = plan_words.chips(infos)
    for source, part, found in zip(opened.sources, opened.parts, chips, strict=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _name(source)
            for chip in found:
                st.badge(
                    escape(chip.words),
                    color="blue" if chip.differs else "gray",
                    help=DIFFERS_HELP if chip.differs else CHANGED_HELP,
                )
            if isinstance(source, RunSource):
                with st.popover("Edit", key=f"results_edit_{source.key}"):
                    _edit(source)
                    said(source.key)
        broken = source.details_problem if isinstance(source, RunSource) else ""
        for number, problem in enumerate(filter(None, (*part.problems, broken))):
            notices.notice(problem, f"head_{source.key}_{number}")
    said()


def said(key: str = "") -> None:
    """What came of the last change: of one run, in its box, or of a deletion."""
    if text := st.session_state.pop(f"{SAID}_{key}", ""):
        notices.notice(text, f"results_edit_{key}")


def _name(source: ResultSource) -> None:
    state = run_list.STATES.get(source.state, source.state)
    named = source.title if source.title != when(source.created) else ""
    words = (named, when(source.created), source.dataset, state, *source.tags)
    notices.small(" · ".join(filter(None, words)), f"head_{source.key}")


def _edit(source: RunSource) -> None:
    name, tags = f"results_name_{source.key}", f"results_tags_{source.key}"
    st.session_state.setdefault(name, source.details.name)
    st.session_state.setdefault(tags, list(source.tags))
    st.text_input(
        "Name",
        key=name,
        max_chars=MAX_NAME_CHARS,
        placeholder="A name for this run",
        on_change=_keep,
        args=(source,),
    )
    known = {tag for other in run_sources.listing() for tag in other.tags}
    st.multiselect(
        "Tags",
        sorted(known | set(st.session_state[tags])),
        key=tags,
        accept_new_options=True,
        max_selections=MAX_TAGS,
        placeholder="Choose or type a tag",
        on_change=_keep,
        args=(source,),
    )
    notices.small(f"Run {source.info.id}", f"edit_{source.key}")
    if not source.private:
        words = "Unpin the baseline" if source.baseline else "Pin as the baseline"
        key = f"results_pin_{source.key}"
        st.button(words, key=key, help=BASELINE_HELP, on_click=_pin, args=(source,))
    _deletion(source)


def _keep(source: RunSource) -> None:
    name_key, tags_key = f"results_name_{source.key}", f"results_tags_{source.key}"
    name, tags = st.session_state[name_key], tuple(st.session_state[tags_key])
    try:
        run_details.put(source.info.folder, run_details.cleaned(name, tags))
    except StageScopeError as error:
        st.session_state[name_key] = source.details.name
        st.session_state[tags_key] = list(source.tags)
        st.session_state[f"{SAID}_{source.key}"] = str(error)


def _pin(source: RunSource) -> None:
    base = source.info.folder.parent
    try:
        run_details.unpin(base) if source.baseline else run_details.pin(base, source.key)
    except StageScopeError as error:
        st.session_state[f"{SAID}_{source.key}"] = str(error)


def _deletion(source: RunSource) -> None:
    """The button "Delete", then the question."""
    if not (source.private or dataset_picker.on_loopback()):
        notices.small(NOT_HERE, f"delete_{source.key}")
    elif st.session_state.get(ASKED) != source.key:
        st.button(
            "Delete …",
            key=f"results_delete_{source.key}",
            on_click=_ask,
            args=(source.key,),
            disabled=source.state == "running",
        )
    else:
        notices.notice(
            f"Delete this run? Lost for good: its notes and {source.amount}.",
            f"delete_{source.key}",
        )
        with st.container(horizontal=True, gap="small"):
            yes, no = f"results_delete_yes_{source.key}", f"results_delete_no_{source.key}"
            st.button("Delete", key=yes, type="primary", on_click=_delete, args=(source,))
            st.button("Keep", key=no, on_click=_ask, args=("",))


def _ask(key: str) -> None:
    st.session_state[ASKED] = key


def _delete(source: RunSource) -> None:
    _ask("")
    base = source.info.folder.parent
    try:
        run_store.delete(source.info.folder, base)
        if source.baseline:
            run_details.unpin(base)
    except StageScopeError as error:
        st.session_state[f"{SAID}_{source.key}"] = str(error)
        return
    run_list.drop_deleted(source.key)
    st.session_state[f"{SAID}_"] = f"Deleted the run {source.details.name or source.info.id}."

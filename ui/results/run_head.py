"""The chosen runs above the figures: settings and problems; name, tags, baseline, deletion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from engine.errors import StageScopeError
from engine.storage import plan_words, run_details, run_store
from engine.storage.run_details import MAX_NAME_CHARS, MAX_TAGS
from ui.results import result_sources, run_list
from ui.results.opened_runs import OpenedRuns
from ui.results.result_sources import Source
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
    chips = plan_words.chips([source.info.settings for source in opened.sources])
    for source, problems, found in zip(opened.sources, opened.problems, chips, strict=True):
        created, key = when(source.info.created), source.key
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            named = source.title if source.title != created else ""
            state = run_list.STATES.get(source.state, source.state)
            words = (named, created, source.dataset, state, *source.details.tags)
            notices.small(" · ".join(filter(None, words)), f"head_{key}")
            for chip in found:
                st.badge(
                    escape(chip.words),
                    color="blue" if chip.differs else "gray",
                    help=DIFFERS_HELP if chip.differs else CHANGED_HELP,
                )
            with st.popover("Edit", key=f"results_edit_{key}"):
                _edit(source)
                said(key)
        for number, problem in enumerate(filter(None, (*problems, source.details_problem))):
            notices.notice(problem, f"head_{key}_{number}")
    said()


def said(key: str = "") -> None:
    """What came of the last change: of one run, in its box, or of a deletion."""
    if text := st.session_state.pop(f"{SAID}_{key}", ""):
        notices.notice(text, f"results_edit_{key}")


def _edit(source: Source) -> None:
    name, tags = f"results_name_{source.key}", f"results_tags_{source.key}"
    st.session_state.setdefault(name, source.details.name)
    st.session_state.setdefault(tags, list(source.details.tags))
    st.text_input(
        "Name",
        key=name,
        max_chars=MAX_NAME_CHARS,
        placeholder="A name for this run",
        on_change=_keep,
        args=(source,),
    )
    known = {tag for other in result_sources.runs() for tag in other.details.tags}
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


def _keep(source: Source) -> None:
    name_key, tags_key = f"results_name_{source.key}", f"results_tags_{source.key}"
    name, tags = st.session_state[name_key], tuple(st.session_state[tags_key])
    try:
        run_details.put(source.info.folder, run_details.cleaned(name, tags))
    except StageScopeError as error:
        st.session_state[name_key] = source.details.name
        st.session_state[tags_key] = list(source.details.tags)
        st.session_state[f"{SAID}_{source.key}"] = str(error)


@contextmanager
def _problem_said(source: Source) -> Iterator[None]:
    """What goes wrong is said in the run's box."""
    try:
        yield
    except StageScopeError as error:
        st.session_state[f"{SAID}_{source.key}"] = str(error)


def _pin(source: Source) -> None:
    base = source.info.folder.parent
    with _problem_said(source):
        run_details.unpin(base) if source.baseline else run_details.pin(base, source.key)


def _deletion(source: Source) -> None:
    """The button "Delete", then the question."""
    key = source.key
    if not (source.private or dataset_picker.on_loopback()):
        notices.small(NOT_HERE, f"delete_{key}")
    elif st.session_state.get(ASKED) != key:
        running = source.state == "running"
        more, name = "Delete …", f"results_delete_{key}"
        st.button(more, key=name, on_click=_ask, args=(key,), disabled=running)
    else:
        question = f"Delete this run? Lost for good: its notes and {source.amount}."
        notices.notice(question, f"delete_{key}")
        with st.container(horizontal=True, gap="small"):
            yes, no = f"results_delete_yes_{key}", f"results_delete_no_{key}"
            st.button("Delete", key=yes, type="primary", on_click=_delete, args=(source,))
            st.button("Keep", key=no, on_click=_ask, args=("",))


def _ask(key: str) -> None:
    st.session_state[ASKED] = key


def _delete(source: Source) -> None:
    _ask("")
    base = source.info.folder.parent
    with _problem_said(source):
        run_store.delete(source.info.folder, base)
        if source.baseline:
            run_details.unpin(base)
        run_list.drop_deleted(source.key)
        st.session_state[f"{SAID}_"] = f"Deleted the run {source.details.name or source.info.id}."

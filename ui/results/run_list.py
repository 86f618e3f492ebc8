"""The runs on Results: the list in the sidebar with its filters, and the chosen runs above the
figures (settings, problems; name, tags, baseline, deletion).

The choice is in the URL and in the session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import streamlit as st

from engine import settings
from engine.errors import StageScopeError, StoreError
from engine.storage import plan_words, run_details, run_store
from engine.storage.run_details import MAX_NAME_CHARS, MAX_TAGS
from ui.results import result_sources
from ui.results.opened_runs import OpenedRuns
from ui.results.result_sources import Source
from ui.widgets import choices, dataset_picker, links, notices
from ui.widgets.text import count, escape, when

KEYS = "results_runs"  # in the session and in the URL
MOST = 8  # chosen at once: the runs of a sweep
FEW = 12  # listed before "Show all"
STATES = {
    "all": "Any state",
    "finished": "Finished",
    "running": "Running",
    "stopped": "Not finished",
    "unreadable": "Unreadable",
}
RUN_GONE = (
    "The run {!r} in the link was not found: choose another one on the left, or put its folder "
    "back into the runs folder."
)
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


def choose() -> tuple[Source, ...] | None:
    """Draw the list; returns the chosen ones in its order, None if there is no run at all."""
    try:
        found = result_sources.runs()
    except StoreError as error:
        notices.problem(str(error), "results_runs")
        return ()
    newest = newest_finished(found)
    if newest and KEYS not in st.session_state and not st.query_params.get_all(KEYS):
        # A visit without a choice begins with the newest run.
        links.put(KEYS, [newest.key])
    chosen = keys()
    if problem := run_details.baseline(settings.load().runs_dir)[1]:
        notices.notice(problem, "results_baseline")
    if not found:
        return None
    listed = _filtered(found)
    pinned = next((one for one in found if one.baseline and not one.info.problem), None)
    if pinned and newest and newest.key != pinned.key:  # the most frequent choice in one click
        st.button(
            "Newest beside the baseline",
            key="results_beside_baseline",
            on_click=_put,
            args=([pinned.key, newest.key],),
            width="stretch",
            disabled=set(chosen) == {pinned.key, newest.key},
        )
    _list(listed, chosen)
    return tuple(one for one in found if one.key in chosen and not one.info.problem)


def newest_finished(found: Sequence[Source]) -> Source | None:
    """The newest finished run; the baseline only if there is no other."""
    finished = [one for one in found if one.info.state == "finished"]
    return max(
        finished, key=lambda run: (not run.baseline, run.info.created, run.info.id), default=None
    )


def keys() -> list[str]:
    """The chosen keys, from the link or the session."""
    return links.ids(KEYS, MOST)


def say_gone(picked: Sequence[Source] | None) -> None:
    """A notice for the first key in the link that is not in the list; on the page, because the
    sidebar may be closed.  None for an entry, or a whole list, whose problem the list reports."""
    unknown = set(keys()) - {source.key for source in picked or ()}
    try:
        found = result_sources.runs() if unknown else ()
    except StoreError:
        return
    unknown -= {source.key for source in found if source.info.problem}
    if missing := [key for key in keys() if key in unknown]:
        notices.notice(RUN_GONE.format(missing[0][:80]), "results_unknown")


def _filtered(found: Sequence[Source]) -> list[Source]:
    text = st.text_input(
        "Runs",
        key="results_find",
        bind="query-params",
        placeholder="Find by name, date, dataset, model",
        live=True,
    )
    left, right = st.columns(2)
    models = {model for one in found for model in one.info.models}
    model = choices.any_of("Model", models, "results_find_model", left, hidden=True)
    state = choices.listed("State", STATES, "results_find_state", right, hidden=True)
    tags = {tag for one in found for tag in one.details.tags}
    tag = choices.any_of("Tag", tags, "results_find_tag", hidden=True) if tags else None
    return [source for source in found if fits(source, text or "", model, state, tag)]


def fits(
    source: Source, text: str, model: str | None, state: str | None, tag: str | None = None
) -> bool:
    """Whether a source passes the filters; it must contain every word of the text."""
    info, tags = source.info, source.details.tags
    searched = " ".join(
        (source.title, source.name, source.key, when(info.created), source.dataset, info.id,
         *info.models, *info.labels, *info.settings.values(), *tags)
    ).lower()  # fmt: skip
    return (
        all(word in searched for word in text.lower().split())
        and (model is None or model in info.models)
        and state in (None, "all", source.info.state)
        and (tag is None or tag in tags)
    )


def _list(found: Sequence[Source], chosen: Sequence[str]) -> None:
    if not found:
        st.caption("No run matches these filters.")
    full = len(chosen) >= MOST
    with st.container(key="results_list", gap="xsmall"):
        for source in found if st.session_state.get("results_all") else found[:FEW]:
            key, picked = f"results_pick_{source.key}", source.key in chosen
            st.session_state[key] = picked
            st.checkbox(
                escape(source.title),
                key=key,
                on_change=drop if picked else add,
                args=(source.key,),
                disabled=bool(source.info.problem) or (full and not picked),
            )
            notices.small(source.info.problem or words(source), f"run_{source.key}")
    if len(found) > FEW:
        st.toggle(f"Show all {len(found):,}", key="results_all")
    if full:
        st.caption(f"At most {count(MOST, 'run')}: deselect one to choose another.")


def words(source: Source) -> str:
    info, details = source.info, source.details
    lines = (
        when(info.created) if details.name else "",
        f"{STATES.get(source.info.state, source.info.state).lower()} · {source.amount}",
        ", ".join(info.labels or info.models),
        f"tags: {', '.join(details.tags)}" if details.tags else "",
        "of your own files: for this visit only" if source.private else "",
    )
    return "\n".join(filter(None, lines))


def add(key: str) -> None:
    """For callbacks: choose a run too; if there are too many, the first one is dropped."""
    others = [other for other in keys() if other != key]
    _put([*others[max(0, len(others) - MOST + 1) :], key])


def drop(key: str) -> None:
    """For callbacks: remove a run from the choice."""
    _put([other for other in keys() if other != key])


def _put(found: list[str]) -> None:
    """Choose these; the open sample is closed."""
    links.put(KEYS, found)
    for name in ("results_sample", "results_page"):
        st.query_params.pop(name, None)


def head(opened: OpenedRuns) -> None:
    """A line per run, its problems, and what the last change failed with."""
    chips = plan_words.chips([source.info.settings for source in opened.sources])
    for source, problems, found in zip(opened.sources, opened.problems, chips, strict=True):
        created, key = when(source.info.created), source.key
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            named = source.title if source.title != created else ""
            state = STATES.get(source.info.state, source.info.state)
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
    key, ask = source.key, st.session_state.update
    if not (source.private or dataset_picker.on_loopback()):
        notices.small(NOT_HERE, f"delete_{key}")
    elif st.session_state.get(ASKED) != key:
        running = source.info.state == "running"
        more, name = "Delete …", f"results_delete_{key}"
        st.button(more, key=name, on_click=ask, args=({ASKED: key},), disabled=running)
    else:
        question = f"Delete this run? Lost for good: its notes and {source.amount}."
        notices.notice(question, f"delete_{key}")
        with st.container(horizontal=True, gap="small"):
            yes, no = f"results_delete_yes_{key}", f"results_delete_no_{key}"
            st.button("Delete", key=yes, type="primary", on_click=_delete, args=(source,))
            st.button("Keep", key=no, on_click=ask, args=({ASKED: ""},))


def _delete(source: Source) -> None:
    st.session_state[ASKED] = ""
    base = source.info.folder.parent
    with _problem_said(source):
        run_store.delete(source.info.folder, base)
        if source.baseline:
            run_details.unpin(base)
        drop(source.key)
        if not keys():  # the newest run follows
            del st.session_state[KEYS]
        st.session_state[f"{SAID}_"] = f"Deleted the run {source.details.name or source.info.id}."

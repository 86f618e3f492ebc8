"""The list of runs in the sidebar: filters, and the choice.

Boundary: sources in, chosen sources out.  The choice is in the URL and in the session.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from engine.errors import StoreError
from ui.results import run_sources
from ui.results import set_sources as imported
from ui.results.run_sources import Listed, RunSource
from ui.widgets import notices
from ui.widgets.text import count, escape, when

KEYS = "results_runs"  # in the session and in the URL
LANDED = "results_landed"  # the run that was chosen for the visitor
MOST = 8  # chosen at once: the runs of a sweep
FEW = 12  # listed before "Show all"
STATES = {
    "all": "Any state",
    "finished": "Finished",
    "running": "Running",
    "stopped": "Not finished",
    "unreadable": "Unreadable",
    imported.ELSEWHERE: imported.ELSEWHERE_WORDS,
}


def choose() -> tuple[Listed, ...] | None:
    """Draw the list; returns the chosen ones in its order, None if there is no run at all."""
    try:
        found: tuple[Listed, ...] = (*run_sources.listing(), *imported.listing())
    except StoreError as error:
        notices.problem(str(error), "results_runs")
        return ()
    _land(found)
    chosen = keys()
    if problem := run_sources.baseline_problem():
        notices.notice(problem, "results_baseline")
    if found:
        listed = _filtered(found)
        _beside_baseline(found)
        _list(listed, chosen)
    return (
        tuple(source for source in found if source.key in chosen and not source.problem)
        if found
        else None
    )


def _land(found: Sequence[Listed]) -> None:
    """A visit that begins without a choice begins with the newest finished run."""
    newest = newest_finished(found)
    if newest is None or KEYS in st.session_state or st.query_params.get_all(KEYS):
        return
    st.session_state[KEYS] = [newest.key]
    st.query_params[KEYS] = _linkable([newest.key])
    st.session_state[LANDED] = newest.key


def newest_finished(found: Sequence[Listed]) -> RunSource | None:
    """The newest finished run; the baseline only if there is no other."""
    runs = [one for one in found if isinstance(one, RunSource) and one.state == "finished"]
    newest = sorted(runs, key=lambda run: (not run.baseline, run.created, run.info.id))
    return newest[-1] if newest else None


def _beside_baseline(found: Sequence[Listed]) -> None:
    """One click for the most frequent choice: the newest run beside the baseline."""
    newest = newest_finished(found)
    pinned = next((source for source in found if source.baseline and not source.problem), None)
    if pinned is not None and newest is not None and newest.key != pinned.key:
        st.button(
            "Newest beside the baseline",
            key="results_beside_baseline",
            on_click=_put,
            args=([pinned.key, newest.key],),
            width="stretch",
            disabled=set(keys()) == {pinned.key, newest.key},
        )


def keys() -> list[str]:
    """The chosen keys, from the link or the session.  The visit's own files are in no link,
    because no other visit can open them."""
    if KEYS not in st.session_state:
        st.session_state[KEYS] = st.query_params.get_all(KEYS)[:MOST]
    found: list[str] = st.session_state[KEYS]
    linked = st.query_params.get_all(KEYS)[:MOST]
    if _linkable(found) and not linked:
        st.query_params[KEYS] = _linkable(found)  # another page has cleared the URL
    elif linked not in (found, _linkable(found)):
        st.session_state[KEYS] = found = linked  # Back, Forward, a link from another page
    return found


def _linkable(found: Sequence[str]) -> list[str]:
    return [key for key in found if key != imported.VISIT]


def say_gone(picked: Sequence[Listed] | None) -> None:
    """A notice for the first key in the link that is not in the list; on the page, because the
    sidebar may be closed."""
    known = {source.key for source in picked or ()}
    for key in keys():
        if key not in known and not _damaged(key):
            notices.notice(gone(key), "results_unknown")
            return


def _damaged(key: str) -> bool:
    """Whether the list itself reports a problem: of this entry, or of the whole list."""
    try:
        found: tuple[Listed, ...] = (*run_sources.listing(), *imported.listing())
    except StoreError:
        return True
    return any(source.key == key and source.problem for source in found)


def gone(key: str) -> str:
    """What happened to an entry in a link, and what to do."""
    if key == imported.VISIT:
        return (
            "The files in this link belonged to an earlier visit and are gone: import them again, "
            "and save them as a set to get a lasting link."
        )
    if key.startswith(imported.SET):
        name = key.removeprefix(imported.SET)[:80]
        return (
            f"The set of published files {name!r} in the link was not found: import its files "
            "again, or choose another one on the left."
        )
    return (
        f"The run {key[:80]!r} in the link was not found: choose another one on the left, or put "
        "its folder back into the runs folder."
    )


def _filtered(found: Sequence[Listed]) -> list[Listed]:
    text = st.text_input(
        "Runs",
        key="results_find",
        bind="query-params",
        placeholder="Find by name, date, dataset, model",
        live=True,
    )
    left, right = st.columns(2)
    models = sorted({model for source in found for model in source.models})
    model = left.selectbox(
        "Model",
        models,
        index=None,
        key="results_find_model",
        bind="query-params",
        placeholder="Any model",
        label_visibility="collapsed",
    )
    state = right.selectbox(
        "State",
        list(STATES),
        format_func=lambda name: STATES.get(name, name),
        key="results_find_state",
        bind="query-params",
        label_visibility="collapsed",
    )
    tags = sorted({tag for source in found for tag in source.tags})
    tag = _tag(tags) if tags else None
    return [source for source in found if fits(source, text or "", model, state, tag)]


def _tag(tags: Sequence[str]) -> str | None:
    return st.selectbox(
        "Tag",
        tags,
        index=None,
        key="results_find_tag",
        bind="query-params",
        placeholder="Any tag",
        label_visibility="collapsed",
    )


def fits(
    source: Listed, text: str, model: str | None, state: str | None, tag: str | None = None
) -> bool:
    """Whether a source passes the filters; it must contain every word of the text."""
    parts = (source.title, source.name, source.key, when(source.created), source.dataset)
    searched = " ".join((*parts, *source.models, *source.words, *source.tags)).lower()
    return (
        all(word in searched for word in text.lower().split())
        and (model is None or model in source.models)
        and state in (None, "all", source.state)
        and (tag is None or tag in source.tags)
    )


def _list(found: Sequence[Listed], chosen: Sequence[str]) -> None:
    if not found:
        st.caption("No run matches these filters.")
    shown = found if st.session_state.get("results_all") else found[:FEW]
    full = len(chosen) >= MOST
    with st.container(key="results_list", gap="xsmall"):
        for source in shown:
            _line(source, source.key in chosen, full)
    if len(found) > FEW:
        st.toggle(f"Show all {len(found):,}", key="results_all")
    if full:
        st.caption(f"At most {count(MOST, 'run')}: deselect one to choose another.")


def _line(source: Listed, chosen: bool, full: bool) -> None:
    key = f"results_pick_{source.key}"
    st.session_state[key] = chosen
    st.checkbox(
        escape(source.title),
        key=key,
        on_change=_pick,
        args=(source.key,),
        disabled=bool(source.problem) or (full and not chosen),
    )
    notices.small(source.problem or words(source), f"run_{source.key}")


def words(source: Listed) -> str:
    """A source in a few short lines."""
    state = f"{STATES.get(source.state, source.state).lower()} · {source.amount}"
    named = isinstance(source, RunSource) and source.details.name
    models = source.info.labels if isinstance(source, RunSource) else source.models
    return "\n".join(
        filter(
            None,
            (
                when(source.created) if named else "",
                state,
                ", ".join(models or source.models),
                f"tags: {', '.join(source.tags)}" if source.tags else "",
                "of your own files: for this visit only" if _private(source) else "",
            ),
        )
    )


def _private(source: Listed) -> bool:
    return isinstance(source, RunSource) and source.private


def _pick(key: str) -> None:
    """Adds a run to the choice or removes it, and closes the open sample."""
    if st.session_state[f"results_pick_{key}"]:
        add(key)
    else:
        drop(key)


def add(key: str) -> None:
    """For callbacks: choose a run too; if there are too many, the first one is dropped."""
    others = [other for other in keys() if other != key]
    if key == imported.VISIT or key.startswith(imported.SET):
        others = [other for other in others if other != st.session_state.get(LANDED)]
    _put([*others[max(0, len(others) - MOST + 1) :], key])


def drop(key: str) -> None:
    """For callbacks: remove a run from the choice."""
    _put([other for other in keys() if other != key])


def drop_deleted(key: str) -> None:
    """For callbacks: as drop(); if nothing is left of the choice, the newest run follows."""
    drop(key)
    if not keys():
        del st.session_state[KEYS]


def _put(found: list[str]) -> None:
    st.session_state[KEYS] = found
    st.session_state.pop(LANDED, None)
    st.query_params[KEYS] = _linkable(found)
    for name in ("results_sample", "results_page"):
        st.query_params.pop(name, None)

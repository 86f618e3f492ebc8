"""The runs on Results: the field where they are chosen, and a line for each chosen one (settings,
problems; name, tags, baseline, deletion)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from engine import settings
from engine.errors import StoreError
from engine.report import bundle
from engine.storage import annotations, run_store
from engine.storage.annotations import MAX_NAME_CHARS, MAX_TAGS
from engine.storage.plan import chips
from ui.results import opened_runs
from ui.results.opened_runs import OpenedRuns, Source
from ui.widgets import dataset_picker, links, notices, uploads
from ui.widgets.text import count, escape, when

KEYS, FIELD = "results_runs", "results_pick"  # in the URL, and the field
MOST = 8  # chosen at once: the runs of a sweep
RUN_GONE = (
    "The run {!r} in the link was not found: choose another one, or put its folder back into the "
    "runs folder."
)
BUNDLE = "results_bundle"  # in the session: the uploaded file
STATES = {"running": "running", "stopped": "not finished"}
DELETED = "results_deleted"  # what came of a deletion
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


def choose() -> list[Source] | None:
    """Draws the field; the chosen runs, baseline and newer ones first; None without any run."""
    try:
        runs = opened_runs.sources()
    except StoreError as error:
        notices.problem(str(error), "results_runs")
        return []
    if problem := annotations.baseline(settings.load().runs_dir)[1]:
        notices.notice(problem, "results_baseline")
    readable = {one.key: one for one in runs if not one.info.problem}
    newest = newest_finished(runs)
    if newest and KEYS not in st.session_state and KEYS not in st.query_params:
        links.put(KEYS, [newest.key])  # a visit without a choice begins with the newest run
    asked = links.ids(KEYS, MOST)
    for key in asked:
        if key not in {one.key for one in runs}:
            notices.notice(RUN_GONE.format(key[:80]), f"results_unknown_{asked.index(key)}")
    chosen = [key for key in asked if key in readable]
    if readable:
        _field(readable, chosen)
    else:
        _others()
    notices.said(BUNDLE)
    if unreadable := [one for one in runs if one.info.problem]:
        with st.expander(f"Unreadable: {count(len(unreadable), 'run')}"):
            for one in unreadable:
                notices.small(one.info.problem, f"run_{one.key}")
    return [one for key, one in readable.items() if key in chosen] if runs else None


def _others() -> None:
    with st.popover("Open a bundle", key=f"{BUNDLE}_box"):
        st.file_uploader(
            "A bundle as ZIP",
            type=["zip"],
            key=BUNDLE,
            on_change=notices.attempt,
            args=(BUNDLE, _unzip),
            help="Each of its files is checked against its manifest. Its runs are shown in this "
            "visit only.",
        )


def _unzip() -> None:
    file = st.session_state[BUNDLE]
    if file is not None:
        _put(bundle.unzipped(file, uploads.runs_of_visit().root)[:MOST])


def _field(readable: Mapping[str, Source], chosen: list[str]) -> None:
    st.session_state[FIELD] = chosen
    alike = Counter(map(words, readable.values()))  # the field tells options apart by their words
    with st.container(horizontal=True, vertical_alignment="bottom", key="results_field"):
        st.multiselect(
            "Runs",
            list(readable),
            format_func=lambda key: (
                f"{said} · {key}" if alike[said := words(readable[key])] > 1 else said
            ),
            key=FIELD,
            max_selections=MOST,
            select_all=False,
            wrap=True,
            placeholder="Choose runs: type a name, date, dataset, model or tag",
            label_visibility="collapsed",
            on_change=lambda: _put(st.session_state[FIELD]),
        )
        pinned = next((one for one in readable.values() if one.baseline), None)
        like = [one for one in readable.values() if pinned and comparable(pinned, one)]
        if pinned and (newest := newest_finished(like)):
            label, key = "Newest beside the baseline", "results_beside_baseline"
            both = [pinned.key, newest.key]
            shown = set(chosen) == set(both)
            st.button(label, key=key, on_click=_put, args=(both,), disabled=shown)
        _others()


def newest_finished(runs: Sequence[Source]) -> Source | None:
    """The newest finished run; the baseline only if there is no other."""
    finished = [one for one in runs if one.info.state == "finished"]
    return max(
        finished, key=lambda run: (not run.baseline, run.info.created, run.info.id), default=None
    )


def comparable(one: Source, other: Source) -> bool:
    """Whether two runs can share samples of a model: they are of one kind and dataset."""
    a, b = one.info, other.info
    same = a.dataset == b.dataset and a.settings.get("kind") == b.settings.get("kind")
    return a is not b and same and not set(a.models).isdisjoint(b.models)


def words(source: Source) -> str:
    info, details = source.info, source.details
    parts = (
        source.title,
        when(info.created) if details.name else "",
        info.settings.get("kind", ""),
        source.dataset,
        STATES.get(info.state, ""),
        ", ".join(info.labels or info.models),
        source.amount,
        *details.tags,
        "for this visit only" if source.private else "",
    )
    return " · ".join(filter(None, parts))


def _put(keys: list[str]) -> None:
    """For callbacks: choose these; the open sample is closed."""
    links.put(KEYS, keys)
    st.query_params.pop("results_sample", None)


def head(opened: OpenedRuns) -> None:
    settings_of = chips([source.info.settings for source in opened.sources])
    names = opened_runs.named(opened.sources)
    for source, name, problems, found in zip(
        opened.sources, names, opened.problems, settings_of, strict=True
    ):
        key = source.key
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            notices.small(name, f"head_{key}")
            for words, differs in found.items():
                why = DIFFERS_HELP if differs else CHANGED_HELP
                st.badge(escape(words), color="blue" if differs else "gray", help=why)
            with st.popover("Edit", key=f"results_edit_{key}"):
                _edit(source)
                notices.said(key)
        notices.each(filter(None, (*problems, source.details_problem)), f"head_{key}")


def _edit(source: Source) -> None:
    """Each field shows what is stored, also after a text that was refused."""
    key, name, tags = source.key, f"results_name_{source.key}", f"results_tags_{source.key}"
    st.session_state[name] = source.details.name
    st.session_state[tags] = list(source.details.tags)
    keep: dict[str, Any] = {"on_change": notices.attempt, "args": (key, _keep, source)}
    st.text_input(
        "Name", key=name, max_chars=MAX_NAME_CHARS, placeholder="A name for this run", **keep
    )
    every = sorted({tag for one in opened_runs.sources() for tag in one.details.tags})
    keep |= {"max_selections": MAX_TAGS, "placeholder": "Choose or type a tag"}
    st.multiselect("Tags", every, key=tags, accept_new_options=True, **keep)
    notices.small(f"Run {source.info.id}", f"edit_{key}")
    if not source.private:
        words = "Unpin the baseline" if source.baseline else "Pin as the baseline"
        pin, args = f"results_pin_{key}", (key, _pin, source)
        st.button(words, key=pin, help=BASELINE_HELP, on_click=notices.attempt, args=args)
    if not (source.private or dataset_picker.on_loopback()):
        notices.small(NOT_HERE, f"delete_{key}")
        return
    with st.expander("Delete …"):
        notices.notice(f"Lost for good: its notes and {source.amount}.", f"delete_{key}")
        label, delete = "Delete this run", f"results_delete_{key}"
        args, live = (key, _delete, source), source.info.state == "running"
        st.button(
            label, key=delete, type="primary", on_click=notices.attempt, args=args, disabled=live
        )


def _keep(source: Source) -> None:
    name, tags = (st.session_state[f"results_{one}_{source.key}"] for one in ("name", "tags"))
    annotations.put_details(source.info.folder, annotations.cleaned_details(name, tuple(tags)))


def _pin(source: Source) -> None:
    base = source.info.folder.parent
    annotations.unpin(base) if source.baseline else annotations.pin(base, source.key)


def _delete(source: Source) -> None:
    base = source.info.folder.parent
    run_store.delete(source.info.folder, base)
    if source.baseline:
        annotations.unpin(base)
    left = [key for key in st.session_state[KEYS] if key != source.key]
    newest = newest_finished(opened_runs.sources())
    _put(left or ([newest.key] if newest else []))
    notices.keep(f"Deleted the run {source.details.name or source.info.id}.", DELETED)

"""What this visit has asked on Compare, newest first, and a comparison kept as a run.  The session
has ids of jobs and values of widgets; results stay in the queue, which drops old ones.  A
comparison of a visitor's own files becomes a run of this visit only."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import streamlit as st

from engine import settings
from engine.attribution.explained import Explanation
from engine.errors import BadInput, DatasetError, StageScopeError
from engine.jobs.run_job import RunView
from engine.models.checkpoint import ModelEntry
from engine.storage import annotations as feedback
from engine.storage import run_store
from engine.storage.annotations import VotedAnswer
from engine.types import OFFERED, RunResult, Sample
from ui.compare import blind_vote
from ui.widgets import dataset_picker, followed_runs, links, notices, uploads
from ui.widgets.choices import link_of
from ui.widgets.followed_runs import EXPLAINED, RUNS, ModelRuns, explains, grouped
from ui.widgets.text import count, escape, ms, name_of

if TYPE_CHECKING:
    from engine.benchmark.saved_comparison import ModelAnswers

HISTORY, SAVED = "history_runs", "history_saved"
MOST = 20
# Widgets whose values belong to a question; a file cannot be put back.
INPUTS = (
    *(link_of("compare", name) for name in OFFERED),
    *("compare_sample_tokens", "compare_split_parts", "compare_repeat"),
    *("compare_source", "compare_root", "compare_sample", "compare_models"),
    *("compare_question", "compare_pictures"),
)
SAVE_HELP = (
    "Keeps the answers and times of these cards as a run, which the Results page, reports and the "
    "command line read like any other. Cancelled runs are left out."
)
BUNDLE_HELP = (
    "Answers, pictures, times and the replay: unpacked, its index.html opens in any browser. "
    "Answers with different settings are not in one bundle: press Run to repeat all of them."
)
WAIT = "Models are still running: wait until they end, or press Cancel, then reopen."


@dataclass(frozen=True)
class Asked:
    """One comparison of this visit: its jobs, when and what was asked, and the page's inputs."""

    ids: tuple[str, ...]
    question: str
    sample: str
    models: tuple[str, ...]
    inputs: dict[str, Any]
    when: str = field(default_factory=lambda: time.strftime("%H:%M"))


def section(by_name: Mapping[str, ModelEntry]) -> None:
    shown = followed_runs.model_runs()
    asked: list[Asked] = st.session_state.setdefault(HISTORY, [])
    ids = tuple(RUNS.ids())
    if shown and all(one.ids != ids for one in asked):
        # The shown runs come first; a card that ran again replaces its comparison.
        request = shown[0].shown.request
        names = [runs.shown.model for runs in shown]
        # The runs of a link decide over what the widgets show.
        inputs = {name: st.session_state[name] for name in INPUTS if name in st.session_state}
        inputs |= {"compare_question": request.prompt, "compare_models": names}
        if not uploads.owner(request.sample):
            inputs["compare_sample"] = request.sample.id
        models = tuple(by_name[name].label if name in by_name else name for name in names)
        entry = Asked(ids, request.prompt, name_of(request.sample), models, inputs)
        asked = [entry, *(one for one in asked if not set(one.ids) & set(ids))][:MOST]
        st.session_state[HISTORY] = asked
    if shown:
        _saving(shown)
    notices.said(HISTORY, notices.problem)
    if asked:
        words = count(len(asked), "comparison")
        with st.expander(f"History of this visit ({words})", key="history_box"):
            for number, one in enumerate(asked):
                _line(number, one, one.ids == ids, by_name)


def _line(number: int, one: Asked, current: bool, by_name: Mapping[str, ModelEntry]) -> None:
    views = [job.view() for job in RUNS.known(one.ids)]
    gone = len(views) < len(one.ids)
    compared = [runs.compared(by_name.get(runs.shown.model)) for runs in grouped(views)]
    totals = [f"{model.label} {ms(model.total.middle)}" for model in compared if model]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label, key = "Shown" if current else "Reopen", f"history_open_{number}"
        args = (HISTORY, _reopen, one)
        st.button(label, key=key, on_click=notices.attempt, args=args, disabled=current)
        with st.container():
            st.text(one.question)
            state = "\nThe results are no longer in memory: reopen it, then press Run." * gone
            models = ", ".join(one.models if gone or not totals else totals)
            each = count(len(one.ids) // len(one.models), "run")
            words = f"{one.when} · {one.sample} · {models}, {each} each{state}"
            notices.small(words, f"history_{number}")


def _reopen(one: Asked) -> None:
    if followed_runs.live():
        raise BadInput(WAIT)
    st.session_state.update(one.inputs)
    links.put(RUNS.key, list(one.ids))


def _saving(shown: Sequence[ModelRuns]) -> None:
    saved: dict[tuple[str, ...], Path] = st.session_state.setdefault(SAVED, {})
    folder = saved.get(tuple(RUNS.ids()))
    ended = all(view.ended for runs in shown for view in runs.views)
    answered = any(view.state == "done" for runs in shown for view in runs.views)
    if ended and not answered:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="history_saving"):
        if folder is None or not folder.is_dir():
            st.button(
                "Save to Results",
                key="history_save",
                help=SAVE_HELP,
                on_click=notices.attempt,
                args=(HISTORY, _save, tuple(RUNS.ids()), shown),
                disabled=not ended,
            )
            notices.small("A comparison that is not saved is lost after this visit.", "unsaved")
        else:
            links.to_results(f"Saved: open {escape(folder.name)} in Results", folder.name)
            if folder.parent == uploads.runs_folder():
                st.caption("For this visit only, because it is about your own files.")
        try:
            root = _root_of(shown[0].shown.request.sample)
        except StageScopeError:
            return  # Save says why
        requests = [replace(runs.shown.request, model="") for runs in shown]
        st.download_button(
            "Bundle (ZIP)",
            partial(_zipped, _answers(shown), root) if ended else b"",
            "comparison.zip",
            "application/zip",
            key="history_bundle",
            help=BUNDLE_HELP,
            on_click="ignore",
            disabled=not ended or requests != requests[:1] * len(requests),
        )


def _answers(shown: Sequence[ModelRuns]) -> list[ModelAnswers]:
    from engine.benchmark.saved_comparison import ModelAnswers  # slow to import

    found = []
    for runs in shown:
        if views := [view for view in runs.views if _outcome(view)]:
            outcomes = tuple(one for one in map(_outcome, views) if one)
            found.append(ModelAnswers(runs.shown.request, outcomes, _explanations(views)))
    return found


def _zipped(answers: Sequence[ModelAnswers], root: Path) -> bytes:
    from engine.benchmark import saved_comparison
    from engine.report import bundle

    with TemporaryDirectory(prefix="stagescope-comparison-") as place:
        folder = saved_comparison.save(answers, root, Path(place))
        return bundle.zipped([run_store.read(folder)])


def _save(ids: tuple[str, ...], shown: Sequence[ModelRuns]) -> None:
    """Makes a run of the shown ones; BadInput or StoreError if it cannot be saved."""
    from engine.benchmark import saved_comparison  # slow to import

    answers = _answers(shown)
    if not answers:
        raise BadInput("There is no answer to save: wait until a model has answered.")
    sample = answers[0].request.sample
    own = bool(uploads.owner(sample))
    base = uploads.runs_of_visit().root if own else settings.load().runs_dir
    folder = saved_comparison.save(answers, _root_of(sample), base)
    answered = []  # the answers on the cards, which were voted on
    for runs in shown:
        saved = [view.id for view in runs.views if _outcome(view)]
        if runs.shown.state == "done":
            answered.append(VotedAnswer(folder.name, runs.shown.model, saved.index(runs.shown.id)))
    for vote in blind_vote.votes(ids, sample.id, answered):
        feedback.put_vote(folder, vote)
    st.session_state[SAVED][ids] = folder


def _explanations(views: Sequence[RunView]) -> tuple[tuple[int, Explanation], ...]:
    """With the first repeat that gave the answer; of the same words and options the newest."""
    found: dict[Any, tuple[int, Explanation]] = {}
    for job in EXPLAINED.all():
        repeats = [place for place, view in enumerate(views) if explains(job, view)]
        if repeats and job.found is not None:
            found[repeats[0], job.request.words, job.request.options] = repeats[0], job.found
    return tuple(sorted(found.values(), key=lambda one: one[0]))


def _outcome(view: RunView) -> RunResult | str | None:
    """The result or the error; None for a run that was cancelled or has not ended."""
    return (view.result or view.error or None) if view.state in ("done", "failed") else None


def _root_of(sample: Sample) -> Path:
    """The dataset of the sample, among those of the picker, the chosen one first."""
    if uploads.owner(sample):
        return uploads.visit().root
    known = settings.load()
    chosen = st.session_state.get("compare_root")
    first = [settings.expand(chosen)] if chosen and chosen != dataset_picker.DEMO else []
    for root in dict.fromkeys((*first, known.demo_dir, *known.datasets)):
        try:
            if sample in dataset_picker.read_quietly(root).samples:
                return root
        except DatasetError:
            continue
    raise BadInput(
        "The dataset of this sample is not among those on this page: choose it in the sidebar, "
        "then save."
    )

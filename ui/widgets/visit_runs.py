"""Comparisons as runs on disk, and the runs of this visit only.

A comparison of a visitor's own files goes to a temporary folder of the session, which no other
visit lists and which is deleted when the visit ends and when the server stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import streamlit as st

from engine import settings
from engine.attribution.explained import Explanation
from engine.errors import BadInput, DatasetError
from engine.jobs.run_job import RunView
from engine.types import RunResult, Sample
from ui.widgets import dataset_picker, followed_runs, uploads
from ui.widgets.followed_runs import ModelRuns
from ui.widgets.uploads import Visit

_MADE = "visit_runs"


def folder() -> Path | None:
    """The folder of this visit's runs, if there are any."""
    return _visit().root if st.session_state.get(_MADE) else None


def save(shown: Sequence[ModelRuns]) -> Path:
    """The folder of the new run; BadInput or StoreError if it cannot be saved."""
    from engine.benchmark import saved_comparison  # slow to import

    answers = [
        saved_comparison.ModelAnswers(
            runs.shown.request,
            tuple(one for view in views if (one := _outcome(view))),
            tuple(_explanations(views)),
        )
        for runs in shown
        if (views := [view for view in runs.views if _outcome(view)])
    ]
    if not answers:
        raise BadInput("There is no answer to save: wait until a model has answered.")
    sample = answers[0].request.sample
    if uploads.owner(sample):
        st.session_state[_MADE] = True
        return saved_comparison.save(answers, uploads.visit().root, _visit().root)
    return saved_comparison.save(answers, _root(sample), settings.load().runs_dir)


def _explanations(views: Sequence[RunView]) -> Iterator[tuple[int, Explanation]]:
    """Each explanation once, with the number of the first repeat that gave its answer."""
    seen: set[int] = set()
    for repeat, of_view in enumerate(followed_runs.explanations(views).values()):
        for found in of_view:
            if id(found) not in seen:
                seen.add(id(found))
                yield repeat, found


def _outcome(view: RunView) -> RunResult | str | None:
    """The result or the error; None for a run that was cancelled or has not ended."""
    return (view.result or view.error or None) if view.state in ("done", "failed") else None


def _root(sample: Sample) -> Path:
    """The dataset of the sample, among those of the picker, the chosen one first."""
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


@st.cache_resource(scope="session", show_spinner=False, on_release=Visit.end)
def _visit() -> Visit:
    return Visit()

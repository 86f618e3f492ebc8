"""The explanations that are kept with the shown answers of one sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from engine.attribution import kept
from engine.attribution.explained import Explanation
from engine.errors import StageScopeError
from engine.media.thumbnails import stamp_of
from engine.storage.explanations import StoredExplanation
from engine.storage.run_header import Header
from engine.storage.run_store import Run
from engine.types import Sample
from ui.compare import explanation_view
from ui.widgets import notices

TITLE = "What the answers rest on"
CHOSEN = "results_explained"
MOST_CHARS = 80  # of the words in the list
CUT = "…"


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as the page shows it: its label, its run, and what names it there."""

    label: str
    run: Run
    model: str
    repeat: int
    text: str


def section(answers: Sequence[KeptAnswer], sample: Sample) -> None:
    """The chosen explanation; nothing if none is kept with these answers."""
    found = [(answer, stored) for answer in answers for stored in _of(answer, sample.id)]
    if not found:
        return
    st.subheader(TITLE, anchor=False)
    names = [f"{answer.label}: {_short(stored.words)}" for answer, stored in found]
    chosen = st.selectbox(
        "Words",
        range(len(found)),
        format_func=names.__getitem__,
        key=CHOSEN,
        label_visibility="collapsed",
    )
    answer, stored = found[chosen or 0]
    what = repr((answer.run.folder, stored))
    try:
        shown, picture = _drawn(stored, answer.run.header, sample, what, stamp_of(sample))
    except StageScopeError as error:
        notices.notice(str(error), "results_explained")
        return
    explanation_view.draw(shown, picture, sample.id, "results")


def _of(answer: KeptAnswer, sample: str) -> list[StoredExplanation]:
    """Those of this answer to the sample; lines of another answer do not belong to it."""
    wanted = (answer.model, sample, answer.repeat, answer.text)
    return [
        stored
        for stored in kept.of_run(answer.run.folder)
        if (stored.model, stored.sample, stored.repeat, stored.answer) == wanted
    ]


def _short(words: str) -> str:
    """On one line."""
    line = " ".join(words.split())
    return line if len(line) <= MOST_CHARS else line[: MOST_CHARS - 1] + CUT


@st.cache_resource(max_entries=32, show_spinner="Drawing the map …")
def _drawn(
    _stored: StoredExplanation, _header: Header, _sample: Sample, what: str, stamp: str
) -> tuple[Explanation, bytes]:
    return kept.mapped(_stored, _header, _sample)

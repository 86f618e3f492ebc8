"""The main part of the Compare page: cards side by side, then the stage times of all models.

Boundary: shows the runs if there are any, otherwise the pictures that the chosen models would get.
Results stay until the next Run, with the settings they belong to, even if the sidebar changes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from engine.errors import MediaError
from engine.jobs.run_job import RunView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.prompts import DEFAULT_QUESTION
from engine.types import (
    CACHE_WORDS,
    EXTENT_WORDS,
    FRAME_WORDS,
    Extent,
    RunRequest,
    RunResult,
    Sample,
)
from ui.compare import cards
from ui.compare.spoken import Spoken
from ui.widgets import contact_sheets, followed_runs, notices
from ui.widgets.text import count, escape, name_of
from ui.widgets.theme import STAGE_MEANING

DEMO_NOTICE = (
    "Demo checkpoints know only drawn driving scenes and the common questions. "
    "Their answers to anything else are meaningless."
)
PICTURES_S = 0.05  # time for pictures between two updates of the runs
STAGE_HELP = "\n".join(f"- **{name}**: {meaning}" for name, meaning in STAGE_MEANING.items())


@dataclass(frozen=True)
class _Subject:
    """What the board shows: a sample, the models and a caption."""

    sample: Sample
    models: tuple[ModelEntry, ...]
    frames: str
    extent: Extent
    words: str


def show(
    entries: Sequence[ModelEntry],
    sample: Sample | None,
    chosen: Sequence[ModelEntry],
    frames: str,
    extent: Extent,
    spoken: Spoken,
) -> None:
    """Everything below the buttons."""
    names = {entry.name for entry in entries}
    found = _alike([view for view in followed_runs.views() if view.model in names])
    if followed_runs.lost():
        notices.notice(
            "The runs in this link are no longer in memory: press Run to repeat them.", "lost"
        )
    if found:
        subject = _of_runs(entries, found)
    elif sample is None or not chosen:
        missing = "a sample, or drop your own files," if sample is None else "one to three models"
        notices.hint(f"Choose {missing} in the sidebar, then press Run.")
        return
    else:
        words = f"{name_of(sample)}: not run yet"
        subject = _Subject(sample, tuple(chosen), frames, extent, words)
    slots, stages = _skeleton(subject, any(not view.ended for view in found))
    failed = {view.model for view in found if view.error}
    pictures = _fill_pictures(subject, slots, bool(found), failed)
    if found:
        by_id = dict(zip((view.id for view in found), slots, strict=True))
        _follow(by_id, pictures, stages, entries, spoken)
    else:
        for slot, entry in zip(slots, subject.models, strict=True):
            cards.idle(slot, entry, registry.cannot_run(entry, subject.sample))
        deque(pictures, maxlen=0)


def _of_runs(entries: Sequence[ModelEntry], found: Sequence[RunView]) -> _Subject:
    by_name = {entry.name: entry for entry in entries}
    request = found[0].request
    models = tuple(by_name[view.model] for view in found)
    words = f"{name_of(request.sample)}: {request.prompt}\n{_how(request)}"
    return _Subject(request.sample, models, request.frames, request.extent, words)


def _how(request: RunRequest) -> str:
    """The settings of these runs, in words."""
    d = request.decode
    chosen = f"temperature {d.temperature:g}, top p {d.top_p:g}, seed {d.seed}"
    decoding = "greedy" if d.greedy else f"sampled ({chosen})"
    return (
        f"{decoding}, at most {count(d.max_new_tokens, 'new token')}, "
        f"8 {FRAME_WORDS[request.frames]} frames, {CACHE_WORDS[request.cache]}, {request.mode}, "
        f"{request.pixels} pixels, event pictures {EXTENT_WORDS[request.extent]}"
        f"{', prompt prefix reused' if request.prefix else ''}"
    )


def _alike(views: Sequence[RunView]) -> list[RunView]:
    """The runs with the sample and question of the first one: a link may name any runs."""
    first = views[0].request if views else None
    if first is None:
        return []
    asked = first.sample, first.prompt
    return [view for view in views if (view.request.sample, view.request.prompt) == asked]


def _skeleton(subject: _Subject, live: bool) -> tuple[list[cards.CardSlot], DeltaGenerator]:
    """The board's containers, always the same ones in the same order.

    Streamlit removes old elements only when the script ends, and a streaming run delays that:
    every container has to be drawn over or, if live, emptied.
    """
    if any(entry.demo for entry in subject.models):
        st.caption(DEMO_NOTICE)
    else:
        st.empty()
    notices.small(subject.words, "subject")
    _truth(subject.sample)
    columns = st.columns(max(2, len(subject.models)))[: len(subject.models)]
    slots = []
    for entry, column in zip(subject.models, columns, strict=True):
        with column:
            slots.append(cards.card(entry, live))
    with st.container(key="compare_stages"):
        return slots, cards.place(live)


def _fill_pictures(
    subject: _Subject, slots: Sequence[cards.CardSlot], ran: bool, failed: Set[str]
) -> Iterator[None]:
    """Draws one card's pictures at each step, because decoding must not delay the answers."""
    for slot, entry in zip(slots, subject.models, strict=True):
        seen = _seen(subject, entry)
        if ran:  # a result repeats the notes and an error the message; neither reports lost files
            repeated = entry.name in failed if isinstance(seen, str) else True
        else:
            repeated = registry.cannot_run(entry, subject.sample) is not None
        cards.show_pictures(slot, entry, seen, repeated)
        yield


def _step(pictures: Iterator[None]) -> None:
    """Draws pictures for PICTURES_S, at least one."""
    end = time.monotonic() + PICTURES_S
    for _ in pictures:
        if time.monotonic() > end:
            break


def _seen(subject: _Subject, entry: ModelEntry) -> contact_sheets.ContactSheet | str:
    try:
        return contact_sheets.seen(subject.sample, entry.kind, subject.frames, subject.extent)
    except MediaError as error:
        return str(error)


def _follow(
    slots: dict[str, cards.CardSlot],
    pictures: Iterator[None],
    stages: DeltaGenerator,
    entries: Sequence[ModelEntry],
    spoken: Spoken,
) -> None:
    """Draw what has changed since the last update, until all runs have ended."""
    labels = {entry.name: entry.label for entry in entries}
    drawn: dict[str, RunView] = {}

    def draw(now: list[RunView]) -> None:
        ended = {view.id for view in drawn.values() if view.ended}
        live = [view for view in now if view.id in slots and view.id not in ended]
        fresh = [view for view in live if drawn.get(view.id) != view]
        for view in fresh:
            cards.draw(slots[view.id], view)
            drawn[view.id] = view
        spoken.say(now, labels)
        if any(view.ended for view in fresh):
            _stages(stages, [view for view in now if view.ended], labels)
        _step(pictures)

    waited = followed_runs.follow(draw)
    deque(pictures, maxlen=0)
    if waited:
        st.rerun()


def _stages(place: DeltaGenerator, ended: Sequence[RunView], labels: dict[str, str]) -> None:
    """The chart and the table of the runs that have a result."""
    results = {view.id: view.result for view in ended if view.result}
    if not results:
        return
    names = tuple(labels[view.model] for view in ended if view.result)
    with place.container():
        st.subheader("Stages", anchor=False, help=STAGE_HELP)
        _drawn_stages(list(results.values()), tuple(results), names)


@st.cache_data(max_entries=32, show_spinner=False)
def _drawn_stages(
    _results: Sequence[RunResult], jobs: tuple[str, ...], labels: tuple[str, ...]
) -> None:
    """Drawn once per set of jobs, then repeated from Streamlit's cache: making a chart takes
    longer than the rest of a rerun."""
    from ui.charts import run_charts  # altair and pandas are slow to import

    rows = [
        run_charts.ModelResult(label, result)
        for label, result in zip(labels, _results, strict=True)
    ]
    st.altair_chart(run_charts.stage_chart(rows), alt=run_charts.words(rows), width="stretch")
    if any(result.cached for result in _results):
        st.caption(
            "Striped: features read from the cache, or a reused prompt prefix. Pale stripes "
            "behind: the time of the stage when it was computed."
        )
    st.table(run_charts.table(rows), alt="Stage times and their sources.")


def _truth(sample: Sample) -> None:
    """The reference answer and scene attributes, if the visitor asks for them."""
    if not st.session_state.get("compare_truth"):
        st.empty()
        return
    with st.container(border=True):
        if not sample.truth and not sample.reference:
            st.caption("This sample has no reference answer.")
        if sample.reference:
            st.caption("Reference answer to the dataset's question:")
            notices.small(sample.question or DEFAULT_QUESTION, "reference_question")
            st.text(sample.reference)
        if sample.truth:
            st.caption("Scene attributes")
            with st.container(horizontal=True, gap="medium"):
                for name, value in sample.truth.items():
                    st.metric(escape(name), escape(value), width="content")

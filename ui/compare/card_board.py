"""The main part of the Compare page: verdict and stage bars of all models, then their cards.

Results stay until the next Run, with the settings they belong to, even if the sidebar changes.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import streamlit as st

from engine.errors import MediaError
from engine.jobs.run_job import RunView
from engine.models import registry
from engine.models.checkpoint import ModelEntry
from engine.types import MediaOptions, RunRequest, Sample, pixels_of
from ui.compare import (
    agreement_view,
    cards,
    overview,
    replay_view,
    seen_timeline,
    setting_chips,
)
from ui.compare.overview import Overview
from ui.compare.spoken import Spoken
from ui.widgets import contact_sheets, followed_runs, notices
from ui.widgets.text import name_of

DEMO_NOTICE = (
    "Demo checkpoints know only drawn driving scenes and the common questions. "
    "Their answers to anything else are meaningless."
)
PICTURES_S = 0.05  # time for pictures between two updates of the runs


@dataclass(frozen=True)
class _Subject:
    """What the board shows: a sample, the models and a caption."""

    sample: Sample
    models: tuple[ModelEntry, ...]
    how: MediaOptions
    words: str
    requests: tuple[RunRequest, ...] = ()  # of the shown runs, one per model

    def chips(self, entry: ModelEntry) -> list[str]:
        """The changed settings that only some cards have."""
        own = next((one for one in self.requests if one.model == entry.name), None)
        if own is None:
            return []
        common = setting_chips.shared(self.requests)
        named = f"{own.pixels} pixels" if pixels_of(entry.name) else ""  # a badge says it
        return [words for words in setting_chips.changed(own) if words not in (*common, named)]


def show(
    entries: Sequence[ModelEntry],
    sample: Sample | None,
    chosen: Sequence[ModelEntry],
    how: MediaOptions,
    spoken: Spoken,
) -> None:
    """Everything below the buttons."""
    names = {entry.name for entry in entries}
    found = [view for view in followed_runs.views() if view.model in names]
    if followed_runs.lost():
        notices.notice(
            "The runs in this link are no longer in memory: press Run to repeat them.", "lost"
        )
    if found:
        subject = _of_runs(entries, found)
    elif sample is None or not chosen:
        missing = "a sample, or drop your own files," if sample is None else "one to six models"
        notices.hint(f"Choose {missing} in the sidebar, then press Run.")
        return
    else:
        words = f"{name_of(sample)}: not run yet"
        subject = _Subject(sample, tuple(chosen), how, words)
    above = overview.begin(found, entries)
    live = any(not view.ended for view in found)
    replay_view.section(followed_runs.compared(entries), live)
    slots = _skeleton(subject, live)
    agreement = cards.place(live)
    failed = {view.model for view in found if view.error}
    pictures = _fill_pictures(subject, slots, bool(found), failed)
    if found:
        by_model = dict(zip((view.model for view in found), slots, strict=True))
        _follow(by_model, pictures, above, entries, spoken)
        if live:
            st.rerun()
        with agreement.container():
            agreement_view.section(followed_runs.compared(entries))
    else:
        for slot, entry in zip(slots, subject.models, strict=True):
            cards.idle(slot, entry, registry.cannot_run(entry, subject.sample))
        deque(pictures, maxlen=0)
    seen_timeline.section(subject.sample, subject.models, subject.how)


def _of_runs(entries: Sequence[ModelEntry], found: Sequence[RunView]) -> _Subject:
    by_name, request = {entry.name: entry for entry in entries}, found[0].request
    models = tuple(by_name[view.model] for view in found)
    words = f"{name_of(request.sample)}: {request.prompt}"
    requests = tuple(view.request for view in found)
    return _Subject(request.sample, models, request.media, words, requests)


def _skeleton(subject: _Subject, live: bool) -> list[cards.CardSlot]:
    """The board's containers, always the same ones in the same order.

    Streamlit removes old elements only when the script ends, and a streaming run delays that:
    every container has to be drawn over or, if live, emptied.
    """
    notices.small(subject.words, "subject")
    if any(entry.demo for entry in subject.models):
        st.caption(DEMO_NOTICE)
    else:
        st.empty()
    if subject.requests:
        setting_chips.row(subject.requests)
    else:
        st.empty()
    return cards.row(subject.models, live, subject.chips)


def _fill_pictures(
    subject: _Subject, slots: Sequence[cards.CardSlot], ran: bool, failed: Set[str]
) -> Iterator[None]:
    """Draws one card's pictures at each step, because decoding must not delay the answers."""
    for slot, entry in zip(slots, subject.models, strict=True):
        seen: contact_sheets.ContactSheet | str
        try:
            seen = contact_sheets.seen(subject.sample, entry.kind, subject.how)
        except MediaError as error:
            seen = str(error)
        if ran:  # a result repeats the notes and an error the message; neither reports lost files
            repeated = entry.name in failed if isinstance(seen, str) else True
        else:
            repeated = registry.cannot_run(entry, subject.sample) is not None
        cards.show_pictures(slot, entry, seen, repeated)
        yield


def _follow(
    slots: dict[str, cards.CardSlot],
    pictures: Iterator[None],
    above: Overview,
    entries: Sequence[ModelEntry],
    spoken: Spoken,
) -> None:
    """Draw what has changed since the last update, until all runs have ended."""
    labels = {entry.name: entry.label for entry in entries}
    drawn: dict[str, RunView] = {}

    def draw(now: list[RunView]) -> None:
        ended = {view.model for view in drawn.values() if view.ended}
        live = [view for view in now if view.model in slots and view.model not in ended]
        fresh = [view for view in live if drawn.get(view.model) != view]
        compared = {model.label: model for model in followed_runs.compared(entries) if fresh}
        for view in fresh:
            cards.draw(slots[view.model], view, compared.get(labels[view.model]))
            drawn[view.model] = view
        spoken.say(now, labels)
        above.draw([view for view in now if view.model in slots])
        end = time.monotonic() + PICTURES_S
        for _ in pictures:  # at least one
            if time.monotonic() > end:
                break

    followed_runs.follow(draw)
    deque(pictures, maxlen=0)

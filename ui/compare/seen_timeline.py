"""What each model saw: the time line, the clip, and the events of any moment.

Nothing is read before the section is opened.  Files that cannot be read become one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from engine.errors import MediaError
from engine.media.thumbnails import stamp_of
from engine.media_options import Window
from engine.models.checkpoint import ModelEntry
from engine.palette import family_colour
from engine.types import Events, MediaKind, MediaOptions, Sample
from engine.viewing import event_times, playing, seen_markup, seen_times
from engine.viewing.playing import PlayableClip
from engine.viewing.seen_markup import RowHead
from ui.widgets import notices
from ui.widgets.text import count

OPEN = "compare_seen"
LENGTH = "compare_window"
BEGIN = "compare_moment"
LENGTHS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
DEFAULT_MS = 20
STEPS = 200  # positions of the slider, at most
WIDTH = 640  # pixels on the page
KEPT_S = 600  # an event stream leaves the memory when nobody has used it for so long


def section(sample: Sample, entries: Sequence[ModelEntry], options: MediaOptions) -> None:
    """The section below the cards; `entries` are the models whose pictures are shown."""
    place = st.expander("What each model saw", key=OPEN, bind="query-params")
    if not place.open:
        return
    with place:
        _timeline(sample, entries, options)
        left, right = st.columns(2, gap="medium")
        with left:
            _clip(sample)
        with right:
            _scrubber(sample, options.window_of(sample))


def _timeline(sample: Sample, entries: Sequence[ModelEntry], options: MediaOptions) -> None:
    heads = dict[MediaKind, RowHead]()
    for entry in entries:
        models, colour = heads.get(entry.kind, ("", family_colour(entry.colour)))
        heads[entry.kind] = RowHead(f"{models}, {entry.label}" if models else entry.label, colour)
    how = (options, repr((heads, options)), stamp_of(sample))
    try:
        shown, notes = _drawn(sample, heads, *how)
    except MediaError as error:
        notices.notice(str(error), "seen_times")
        return
    st.html(shown)
    if notes:
        notices.small("\n".join(notes), "seen_notes")


@st.cache_data(max_entries=16, show_spinner="Reading the sample …")
def _drawn(
    _sample: Sample,
    _heads: Mapping[MediaKind, RowHead],
    _options: MediaOptions,
    how: str,
    stamp: str,
) -> tuple[str, tuple[str, ...]]:
    """The time line's markup and its notes."""
    found = seen_times.timeline(_sample, tuple(_heads), _options)
    drawn = seen_markup.markup(found, _heads) if found.rows or found.density else ""
    return f"<style>{seen_markup.STYLE}</style>{drawn}", found.notes


def _clip(sample: Sample) -> None:
    """The clip, to play."""
    st.markdown("**Clip**")
    try:
        found = _playable(sample, stamp_of(sample))
    except MediaError as error:
        notices.notice(str(error), "seen_clip")
        return
    if found is None:
        st.caption("This sample has no clip.")
        return
    st.video(found.data, loop=True, muted=True, alt=f"The clip of sample {sample.id}.")
    if found.words:
        notices.small(found.words, "seen_clip")


@st.cache_resource(max_entries=4, ttl=KEPT_S, show_spinner="Preparing the clip …")
def _playable(_sample: Sample, stamp: str) -> PlayableClip | None:
    return playing.playable(_sample)


@st.fragment
def _scrubber(sample: Sample, part: Window | None) -> None:
    """The events of a moment that can be moved; a fragment, so that only the picture is redrawn.

    `part` is the window that models are shown; only its events are read.
    """
    st.markdown("**Events**")
    if sample.events is None:
        st.caption("This sample has no raw events.")
        return
    try:
        stream = _stream(sample, part, str(part), stamp_of(sample))
    except MediaError as error:
        notices.notice(str(error), "seen_events")
        return
    if part:
        st.caption(f"Of the window {part}; times count from its first event.")
    length = st.selectbox(
        "Window length (ms)",
        LENGTHS_MS,
        index=LENGTHS_MS.index(DEFAULT_MS),
        key=LENGTH,
        bind="query-params",
        width=180,
    )
    _window(stream, _begin(stream, length), length)


def _begin(stream: Events, length: int) -> float:
    """The chosen start of the window in ms; 0 if the window holds the whole recording."""
    last = stream.duration_ms - length
    if last <= 0:
        st.caption(f"The window holds the whole recording ({stream.duration_ms:,.1f} ms).")
        return 0.0
    st.session_state[BEGIN] = min(float(st.session_state.get(BEGIN, 0.0)), last)
    return st.slider(
        "Start of the window (ms)", 0.0, last, step=last / STEPS, format="%.1f", key=BEGIN
    )


def _window(stream: Events, begin: float, length: int) -> None:
    picture, on, off = event_times.window(stream, begin * 1000, length * 1000)
    words = (
        f"{begin:,.1f} to {begin + length:,.1f} ms: {count(on + off, 'event')}, "
        f"{on:,} brighter (red), {off:,} darker (blue)"
    )
    st.image(seen_markup.event_address(picture), width=WIDTH, alt=f"Events from {words}.")
    st.caption(words)


@st.cache_resource(max_entries=2, ttl=KEPT_S, show_spinner="Reading the events …")
def _stream(_sample: Sample, _part: Window | None, part: str, stamp: str) -> Events:
    """The events as arrays in memory: cache_resource copies and pickles nothing."""
    assert _sample.events is not None
    return seen_times.read_events(_sample.events, _part)

"""What a sample's recording holds: its rate of events, the window that models are shown, the time
line of what each model saw, the clip, and the events of any moment.

The slider below the chart is the field Window by other means: what it is moved to becomes the
field's text.  Nothing is read before a section is opened.  Files that cannot be read become one
sentence.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import streamlit as st

from engine.errors import MediaError
from engine.media_options import Window
from engine.models.checkpoint import ModelEntry
from engine.palette import family_colour
from engine.types import Events, MediaKind, MediaOptions, Sample
from engine.viewing import playing, seen_markup, seen_times
from engine.viewing.playing import PlayableClip
from engine.viewing.seen_markup import RowHead
from engine.viewing.seen_times import EventRates
from ui.widgets import choices, contact_sheets, notices
from ui.widgets.choices import link_of
from ui.widgets.contact_sheets import BY_FILES
from ui.widgets.text import count, escape

RATES, ENDS = "compare_rates", "compare_rates_ends"
SHORT_US = 200_000  # a shorter recording of raw events is shown as a whole
STEPS = 500  # of the slider, at most
LENGTH, MOMENT = "compare_window", "compare_moment"
LENGTHS_MS = ("1", "2", "5", "10", "20", "50", "100", "200", "500", "1000")
SLIDER_STEPS = 200  # positions of the slider, at most
KEPT_S = 600  # an event stream leaves the memory when nobody has used it for so long


def rates(sample: Sample | None, models: Sequence[ModelEntry], options: MediaOptions) -> None:
    """The chart, if a model can be shown event images drawn from the sample's recording."""
    events = any(model.kind == "events" for model in models)
    if sample is None or sample.events is None or not events:
        return
    try:
        found = _rates(sample)
    except MediaError:  # the pictures say why
        return
    window = options.window_of(sample)
    if found.duration_us < SHORT_US and not window:
        return
    from engine.report import charts  # slow to import: the first page does without

    with st.container(key=RATES):
        held = count(int(found.counts.sum()), "event")
        shown = "its event images are shown" if sample.event_images else "all of them are shown"
        part = f"the window {window} is shown" if window else shown
        notices.small(f"{held} in {found.lasts}; {part}.", "rates")
        alt = charts.event_rates_words(found, window)
        st.altair_chart(charts.event_rates(found, window), alt=alt)
        unit, length = found.unit
        last = found.duration_us + 1
        ends = [min(end, last) for end in (window.start_us, window.end_us)] if window else [0, last]
        # Set only if the window changed elsewhere: setting takes back keys pressed meanwhile.
        if [round(end * length) for end in st.session_state.get(ENDS, ())] != ends:
            st.session_state[ENDS] = tuple(end / length for end in ends)
        title = f"Part that is drawn as event images ({unit})"
        step = step_us(found.duration_us) / length
        st.slider(title, 0.0, last / length, step=step, format="%.7g", key=ENDS,
                  on_change=_moved, args=(found, sample.window))  # fmt: skip


@st.cache_data(max_entries=64, show_spinner="Reading the recording …", hash_funcs=BY_FILES)
def _rates(sample: Sample) -> EventRates:
    assert sample.events is not None
    return seen_times.rates(sample.events)


def _moved(rates: EventRates, own: Window | None) -> None:
    """The slider's ends become the text of the field; at both ends of a recording that has no
    window of its `own` it is empty."""
    begin, end = (round(value * rates.unit[1]) for value in st.session_state[ENDS])
    last, step = rates.duration_us + 1, step_us(rates.duration_us)
    part = Window(min(begin, last - step), max(end - begin, step))
    whole = own is None and (begin, end) == (0, last)
    st.session_state[link_of("compare", "window")] = "" if whole else str(part)


def step_us(duration_us: int) -> int:
    """1, 2 or 5 times a power of ten microseconds: about a 500th of the recording."""
    steps = (factor * int(10**power) for power in range(16) for factor in (1, 2, 5))
    return max(takewhile(lambda step: step == 1 or step * STEPS <= duration_us, steps))


def seen(sample: Sample, entries: Sequence[ModelEntry], options: MediaOptions) -> None:
    """The pictures of each model, their places in time, the clip, and any moment's events."""
    for entry, place in zip(entries, st.columns(max(2, len(entries))), strict=False):
        with place:
            st.markdown(f"**{escape(entry.label)}**")
            with notices.telling(f"seen_{entry.name}"):
                found = contact_sheets.seen(sample, entry.kind, options)
                st.image(found.picture, width="stretch", alt=found.alt)
                notices.small(found.caption, f"seen_{entry.name}")
                notices.each(found.notes, f"seen_{entry.name}", notices.small)
    with notices.telling("seen_times"):
        heads = dict[MediaKind, RowHead]()
        for entry in entries:
            models, colour = heads.get(entry.kind, ("", family_colour(entry.colour)))
            words = f"{models}, {entry.label}" if models else entry.label
            heads[entry.kind] = RowHead(words, colour)
        shown, notes = _markup(sample, heads, options)
        if shown:
            st.html(shown)
        if notes:
            notices.small("\n".join(notes), "seen_notes")
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**Clip**")
        with notices.telling("seen_clip"):
            clip = _playable(sample)
            if clip is None:
                st.caption("This sample has no clip.")
            else:
                st.video(clip.data, loop=True, muted=True, alt=f"The clip of sample {sample.id}.")
                if clip.words:
                    notices.small(clip.words, "seen_clip")
    with right:
        _scrubber(sample, options.window_of(sample))


@st.cache_data(max_entries=16, show_spinner="Reading the sample …", hash_funcs=BY_FILES)
def _markup(
    sample: Sample, heads: Mapping[MediaKind, RowHead], options: MediaOptions
) -> tuple[str, tuple[str, ...]]:
    found = seen_times.timeline(sample, tuple(heads), options)
    drawn = seen_markup.markup(found, heads) if found.rows or found.density else ""
    return drawn, found.notes


@st.cache_resource(
    max_entries=4, ttl=KEPT_S, show_spinner="Preparing the clip …", hash_funcs=BY_FILES
)
def _playable(sample: Sample) -> PlayableClip | None:
    return playing.playable(sample)


@st.fragment
def _scrubber(sample: Sample, part: Window | None) -> None:
    """The events of a moment that can be moved; only those of `part`, the window, are read."""
    st.markdown("**Events**")
    if sample.events is None:
        st.caption("This sample has no raw events.")
        return
    with notices.telling("seen_events"):
        stream = _stream(sample, part)
        if part:
            st.caption(f"Of the window {part}; times count from its first event.")
        lengths = {length: length for length in LENGTHS_MS}
        title = "Window length (ms)"
        length = int(choices.listed(title, lengths, LENGTH, default="20", width=180))
        begin, last = 0.0, stream.duration_ms - length
        if last <= 0:
            st.caption(f"The window holds the whole recording ({stream.duration_ms:,.1f} ms).")
        else:
            st.session_state[MOMENT] = min(float(st.session_state.get(MOMENT, 0.0)), last)
            step, title = last / SLIDER_STEPS, "Start of the window (ms)"
            begin = st.slider(title, 0.0, last, step=step, format="%.1f", key=MOMENT)
        picture, on, off = seen_times.window(stream, begin * 1000, length * 1000)
        words = (
            f"{begin:,.1f} to {begin + length:,.1f} ms: {count(on + off, 'event')}, "
            f"{on:,} brighter (red), {off:,} darker (blue)"
        )
        st.image(seen_markup.event_address(picture), width=640, alt=f"Events from {words}.")
        st.caption(words)


@st.cache_resource(
    max_entries=2, ttl=KEPT_S, show_spinner="Reading the events …", hash_funcs=BY_FILES
)
def _stream(sample: Sample, part: Window | None) -> Events:
    """The events as arrays in memory: cache_resource copies and pickles nothing."""
    assert sample.events is not None
    return seen_times.read_events(sample.events, part)

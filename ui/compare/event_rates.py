"""Events over time: the rate of a sample's recording, and the window that models are shown.

A drag becomes the text of the field Window.  The chart keeps its own brush while it is dragged: it
is drawn anew only if the window changes elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import streamlit as st

from engine.errors import MediaError
from engine.media.thumbnails import stamp_of
from engine.media_options import Window
from engine.models.checkpoint import ModelEntry
from engine.report import charts
from engine.report.charts import BEGIN, BRUSH, CLICK
from engine.types import MediaOptions, Sample
from engine.viewing import event_times
from engine.viewing.event_times import EventRates
from ui.widgets import notices
from ui.widgets.run_settings import link_of
from ui.widgets.text import count

TITLE = "Events over time"
OPEN, RESET, CHART = "compare_rates", "compare_rates_whole", "compare_rates_chart"
STATE = "compare_rates_drawn"
SHORT_US = 200_000  # a shorter recording of raw events is shown as a whole
STEPS = 500  # a drag is rounded to a step of at least this part of the recording
HOW = (
    "Drag to choose the part that is drawn as event images. Drag or click to move it. With the "
    "keyboard: the field Window in the sidebar."
)


@dataclass
class _Drawn:
    """The chart on the page: the window in its specification (`first`) and of its brush (`now`)."""

    stamp: str
    number: int
    first: Window | None
    now: Window | None


def section(sample: Sample | None, models: Sequence[ModelEntry], options: MediaOptions) -> None:
    """The chart, if a model can be shown event images drawn from the sample's recording.

    A sample with prepared event images has it in a closed section, which reads nothing.
    """
    events = any(model.kind == "events" for model in models)
    if sample is None or sample.events is None or not events:
        return
    window = options.window_of(sample)
    if not sample.event_images:
        found = _read(sample)
        if found and (found.duration_us >= SHORT_US or window):
            with st.container(key=f"{OPEN}_raw"):
                _draw(sample, found, options)
        return
    place = st.expander(TITLE, key=OPEN, bind="query-params")
    if place.open:
        with place:
            if found := _read(sample):
                _draw(sample, found, options)


def _read(sample: Sample) -> EventRates | None:
    """None for a recording that cannot be read: the cards say why."""
    try:
        return _rates(sample, stamp_of(sample))
    except MediaError:
        return None


@st.cache_data(max_entries=64, show_spinner="Reading the recording …")
def _rates(_sample: Sample, stamp: str) -> EventRates:
    assert _sample.events is not None
    return event_times.rates(_sample.events)


def _draw(sample: Sample, rates: EventRates, options: MediaOptions) -> None:
    window = options.window_of(sample)
    drawn = _drawn(stamp_of(sample), window)
    with st.container(horizontal=True, vertical_alignment="center", key="compare_rates_head"):
        st.button(
            "The sample's window" if sample.window else "Whole recording",
            key=RESET,
            on_click=_reset,
            disabled=options.window is None,
        )
        held = count(int(rates.counts.sum()), "event")
        shown = "its event images are shown" if sample.event_images else "all of them are shown"
        part = f"the window {window} is shown" if window else shown
        notices.small(f"{held} in {rates.lasts}; {part}.", "rates")
    key = f"{CHART}_{drawn.number}"
    st.altair_chart(
        charts.event_rates(rates, drawn.first),
        width="stretch",
        key=key,
        on_select=lambda: _dragged(key, rates),
        selection_mode=[BRUSH, CLICK],
        alt=charts.event_rates_words(rates, window),
    )
    st.caption(HOW)


def _drawn(stamp: str, window: Window | None) -> _Drawn:
    """The chart that is on the page, or a new one if that has another recording or window."""
    found: _Drawn | None = st.session_state.get(STATE)
    same = found is not None and (found.stamp, found.now) == (stamp, window)
    # A visitor who was on another page has lost the brush.
    if found and same and (found.first == window or f"{CHART}_{found.number}" in st.session_state):
        return found
    number = found.number + 1 if found else 0
    st.session_state[STATE] = made = _Drawn(stamp, number, window, window)
    return made


def _dragged(key: str, rates: EventRates) -> None:
    """The brush becomes the text of the field; a click moves the window there."""
    found: _Drawn = st.session_state[STATE]
    selection = st.session_state[key]["selection"]
    chosen = brushed(selection, rates)
    if chosen is None:
        found.stamp = ""  # a click takes the brush away: draw it again
        chosen = clicked(selection, rates, found.now)
    found.now = chosen
    if chosen is not None:
        st.session_state[link_of("compare", "window")] = str(chosen)


def _reset() -> None:
    st.session_state[link_of("compare", "window")] = ""


def brushed(selection: Mapping[str, Any], rates: EventRates) -> Window | None:
    """The window of the chart's brush, None without a brush."""
    _, length = rates.unit
    begin, end = selection.get(BRUSH, {}).get(BEGIN) or (0, 0)
    return rounded(begin * length, end * length, rates.duration_us) if end > begin else None


def clicked(
    selection: Mapping[str, Any], rates: EventRates, window: Window | None
) -> Window | None:
    """The window, moved so that the clicked bar is in its middle; without a click where it is."""
    places = selection.get(CLICK)
    if not places or window is None:
        return window
    _, length = rates.unit
    begin = places[0][BEGIN] * length + rates.bin_us / 2 - window.length_us / 2
    last, step = rates.duration_us + 1 - window.length_us, step_us(rates.duration_us)
    return Window(max(0, round(min(begin, last) / step) * step), window.length_us)


def rounded(begin: float, end: float, duration_us: int) -> Window:
    """The window from `begin` to `end`, in whole steps and at least one."""
    step = step_us(duration_us)
    first = max(0, min(round(begin / step), duration_us // step))
    steps = round((end - max(begin, 0)) / step)  # a brush that is moved keeps its length
    return Window(first * step, max(1, steps) * step)


def step_us(duration_us: int) -> int:
    """1, 2 or 5 times a power of ten microseconds: about a 500th of the recording."""
    steps = (factor * int(10**power) for power in range(16) for factor in (1, 2, 5))
    return max(takewhile(lambda step: step == 1 or step * STEPS <= duration_us, steps))

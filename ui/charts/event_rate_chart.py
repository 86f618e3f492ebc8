"""The number of events per second over a recording, with a window that can be dragged.

Boundary: an EventRates and a Window in, an Altair chart and its words out.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from engine.media_options import Window, time_text
from engine.viewing.event_times import EventRates
from ui.charts import chart_theme  # noqa: F401  registers the theme

BRUSH, CLICK, BEGIN = "window", "at", "begin"  # the parameters, and the field of both
HEIGHT = 170  # with the axis
SHOWN, REST = "#2F7BB5", "#868D97"  # at least 3:1 on both grounds
_MILLISECONDS_FROM, _SECONDS_FROM = 10_000, 2_000_000


def unit_of(rates: EventRates) -> tuple[str, int]:
    """The unit of the time axis, and its length in microseconds."""
    return ("s", 1_000_000) if rates.duration_us >= _SECONDS_FROM else ("ms", 1_000)


def chart(rates: EventRates, window: Window | None) -> alt.Chart:
    """One bar per bin; those in the window, or all without one, are coloured."""
    unit, length = unit_of(rates)
    end = (rates.duration_us + 1) / length
    value: Any = alt.Undefined
    if window is not None and window.start_us <= rates.duration_us:
        value = {"x": [window.start_us / length, min(window.end_us / length, end)]}
    mark = alt.BrushConfig(fill=SHOWN, fillOpacity=0.15, stroke=SHOWN, strokeWidth=2, cursor="move")
    # Without zoom: the wheel scrolls the page.
    brush = alt.selection_interval(
        name=BRUSH, encodings=["x"], value=value, mark=mark, zoom=False, clear=False
    )
    click = alt.selection_point(name=CLICK, fields=[BEGIN], on="click", nearest=True, clear=False)
    scale = alt.Scale(domain=[0, end], nice=False)
    drawn: alt.Chart = (
        alt.Chart(_table(rates, length), height=HEIGHT)
        .mark_rect()
        .encode(
            alt.X(f"{BEGIN}:Q", title=f"Time after the first event ({unit})", scale=scale),
            alt.X2("end"),
            alt.Y("rate:Q", title="Events per s", axis=_axis()),
            alt.Y2(datum=0),
            color=alt.condition(brush, alt.value(SHOWN), alt.value(REST)),
        )
        .add_params(brush, click)
    )
    return drawn


def _axis() -> alt.Axis:
    """Numbers such as 500k; the format of an axis alone writes 0.5M beside 1M."""
    return alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=3)


def _table(rates: EventRates, length: int) -> pd.DataFrame:
    edges = [index * rates.bin_us / length for index in range(len(rates.counts) + 1)]
    return pd.DataFrame({BEGIN: edges[:-1], "end": edges[1:], "rate": rates.per_second})


def lasts(rates: EventRates) -> str:
    """The recording's duration, to the millisecond if it is long."""
    digits = -3 if rates.duration_us > _MILLISECONDS_FROM else 0
    return time_text(round(rates.duration_us, digits))


def words(rates: EventRates, window: Window | None) -> str:
    """What the chart shows, for readers who do not see it."""
    most = int(rates.counts.argmax())
    at = time_text(round(most * rates.bin_us / 1000) * 1000)
    part = f"the window {window} is marked" if window else "no window is chosen"
    return (
        f"Events per second over the {lasts(rates)} of the recording: at most "
        f"{rates.per_second[most]:,.0f}, from {at} on; {part}. The field Window in the sidebar "
        "chooses one with the keyboard."
    )

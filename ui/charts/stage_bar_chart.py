"""Median stage times as stacked bars, one per model, of a live run or of saved results.

Boundary: medians in, an Altair chart or its text out; no streamlit.
"""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import pandas as pd

from engine.analysis import stage_bars as bars
from engine.analysis.stage_bars import StageTimes
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.widgets.text import ms
from ui.widgets.theme import PARTS, STAGE_COLOURS

_BAND, _BAR, _AROUND = 44, 20, 128  # pixels: a row, its bar, legend and axis
_LINE = 13
_COLUMNS = alt.ExprRef("width < 420 ? 2 : 5")  # of the legend: five are cut off on a phone
_LEGEND = alt.Legend(
    title=None,
    orient="bottom",
    columns=_COLUMNS,
    columnPadding=6,
    labelFontSize=12,
    symbolType="square",
)


def segments(medians: StageTimes) -> pd.DataFrame:
    """One line per segment of a bar."""
    lines = [
        (one.label, one.part, one.start_ms, one.end_ms, one.ms) for one in bars.segments(medians)
    ]
    return pd.DataFrame(lines, columns=["model", "stage", "start", "end", "ms"])


def names(labels: Iterable[str]) -> alt.Axis:
    """The axis of labels.  Each part of a label has a line, because a long line is cut off."""
    return alt.Axis(
        labelExpr="split(datum.label, ' · ')",
        labelLimit=320,
        labelLineHeight=_LINE,
        labelOffset=-room(labels) / 2,
        labelOverlap=False,
        ticks=False,
    )


def room(labels: Iterable[str]) -> int:
    """Pixels that a row needs for the second and later lines of its label."""
    return _LINE * max((label.count(" · ") for label in labels), default=0)


def chart(medians: StageTimes, what: str = "median") -> alt.Chart:
    """The chart, with labels in the given order; `what` names the statistic."""
    colours = alt.Scale(domain=list(PARTS), range=[STAGE_COLOURS[part] for part in PARTS])
    drawn: alt.Chart = alt.Chart(segments(medians)).mark_bar(height=_BAR)
    found = drawn.encode(
        y=alt.Y("model:N", sort=list(medians), title=None, axis=names(medians)),
        x=alt.X("start:Q", title=f"{what} of each stage (ms)"),
        x2="end:Q",
        color=alt.Color(
            "stage:N",
            scale=colours,
            legend=_LEGEND,
        ),
        tooltip=[
            alt.Tooltip("model:N", title="Model"),
            alt.Tooltip("stage:N", title="Stage"),
            alt.Tooltip("ms:Q", title=f"{what.capitalize()} (ms)", format=",.2f"),
        ],
    )
    return found.properties(height=(_BAND + room(medians)) * max(1, len(medians)) + _AROUND)


def words(medians: StageTimes, what: str = "median") -> str:
    """The chart as text, for screen readers."""
    sentences = [
        f"{label}: {', '.join(f'{part} {ms(parts[part])}' for part in PARTS if part in parts)}"
        if parts
        else f"{label}: not measured"
        for label, parts in medians.items()
    ]
    return f"Bars of stage {what}s. " + " ".join(f"{text}." for text in sentences)

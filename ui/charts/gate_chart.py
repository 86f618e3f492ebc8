"""A gate's changes with their intervals against the margin: a row per metric and model.

Boundary: a report in, an Altair chart and its text out; no streamlit and no statistics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.gate import ACCURACY, GateReport
from engine.analysis.gate_limits import limits, shown
from engine.report import gate_text
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.widgets.theme import family_colour

ROW, AROUND, LABEL = 26, 70, 420
MARGIN_COLOUR, ZERO_COLOUR = "#C9820A", "#868D97"
PERCENT = "change, %"
POINTS = [PERCENT, "(accuracy: points)"]  # two lines, for narrow windows
LEGEND = (
    "Dots: change of NEW against BASE with its 95 % interval. Orange marks: the margin; beyond it "
    "NEW is worse. Tokens have two, because more and fewer both count as a change."
)


def rows(report: GateReport) -> list[dict[str, Any]]:
    """name, label, change, low, high, verdict and text of each result; the ends are None without an
    interval."""
    return [
        {
            "name": _name(gate_text.name_of(one), one.label),
            "label": one.label,
            "change": shown(one, one.change),
            "low": None if one.low is None else shown(one, one.low),
            "high": None if one.high is None else shown(one, one.high),
            "verdict": gate_text.verdict_text(one),
            "text": gate_text.change_text(one),
        }
        for one in report.results
    ]


def marks(report: GateReport) -> list[dict[str, Any]]:
    """name and place of each mark of the margin."""
    return [
        {"name": _name(gate_text.name_of(one), one.label), "limit": shown(one, limit)}
        for one in report.results
        for limit in limits(one, report.margin)
    ]


def _name(metric: str, label: str) -> str:
    return f"{label}: {metric}"


def chart(report: GateReport, tones: Mapping[str, str]) -> alt.LayerChart:
    """`tones`: the colour of each label, as in palette.tones."""
    table, limits_ = pd.DataFrame(rows(report)), pd.DataFrame(marks(report))
    order = table["name"].tolist()
    accuracy = any(one.metric == ACCURACY for one in report.results)
    title = POINTS if accuracy else PERCENT
    y = alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=LABEL))
    scale = alt.Scale(
        domain=list(report.labels),
        range=[family_colour(tones.get(label, "")) for label in report.labels],
    )
    colour = alt.Color("label:N", scale=scale, legend=None)
    tip = [
        alt.Tooltip("name:N", title="Model and metric"),
        alt.Tooltip("text:N", title="Change"),
        alt.Tooltip("verdict:N", title="Verdict"),
    ]
    base: Any = alt.Chart(table).encode(y=y, color=colour, tooltip=tip)
    zero: Any = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(color=ZERO_COLOUR)
    margin: Any = alt.Chart(limits_).mark_tick(
        color=MARGIN_COLOUR, thickness=3, height=20, opacity=1
    )
    layers = [
        zero.encode(x=alt.X("zero:Q", title=title)),
        margin.encode(y=y, x=alt.X("limit:Q", title=title)),
        base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(x="change:Q"),
    ]
    return alt.LayerChart(layer=layers, height=ROW * len(order) + AROUND)


def words(report: GateReport) -> str:
    """The chart as text."""
    return " ".join(
        [f"Changes against a margin of {gate_text.percent(report.margin)}.", *_sentences(report)]
    )


def _sentences(report: GateReport) -> Iterator[str]:
    for one in rows(report):
        yield f"{one['name']} {one['text']}, {one['verdict']}."

"""A gate's changes with their intervals against the margin: a row per metric and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from engine.analysis.gate import ACCURACY, GateReport, limits, shown
from engine.palette import family_colour
from engine.report import charts, gate_text

PERCENT = "change, %"
POINTS = [PERCENT, "(accuracy: points)"]  # two lines, for narrow windows
LEGEND = (
    "Dots: change of NEW against BASE with its 95 % interval. Orange marks: the margin; beyond it "
    "NEW is worse. Tokens have two, because more and fewer both count as a change."
)


def rows(report: GateReport, tones: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row of charts.intervals() per result, with its verdict and its change in words."""
    return [
        {
            "name": f"{one.label}: {gate_text.name_of(one)}",
            "value": shown(one, one.change),
            "low": None if one.low is None else shown(one, one.low),
            "high": None if one.high is None else shown(one, one.high),
            "colour": family_colour(tones.get(one.label, "")),
            "verdict": gate_text.verdict_text(one),
            "text": gate_text.change_text(one),
            "limits": [shown(one, limit) for limit in limits(one, report.margin)],
        }
        for one in report.results
    ]


def chart(report: GateReport, tones: Mapping[str, str]) -> alt.LayerChart:
    """`tones`: the colour of each label, as in palette.tones."""
    found = rows(report, tones)
    return charts.intervals(
        found,
        POINTS if any(one.metric == ACCURACY for one in report.results) else PERCENT,
        {"name:N": "Model and metric", "text:N": "Change", "verdict:N": "Verdict"},
        marks=[{"name": row["name"], "at": at} for row in found for at in row["limits"]],
        equal=0.0,
    )


def words(report: GateReport) -> str:
    told = [f"{row['name']} {row['text']}, {row['verdict']}." for row in rows(report, {})]
    return " ".join([f"Changes against a margin of {gate_text.percent(report.margin)}.", *told])

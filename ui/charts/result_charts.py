"""Interactive charts of results: distributions, a scatter of samples, a timeline.

Boundary: tables in, Altair charts and their text out; no streamlit.  A chart has at most a few
thousand marks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.metrics import Metric
from engine.report.svg_charts import in_lines
from engine.types import STAGES
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.charts.stage_bar_chart import names, room
from ui.widgets.text import ms, number
from ui.widgets.theme import STAGE_COLOURS, family_colour

MOST_POINTS = 1500  # of a scatter; more are thinned evenly
DOTS = 500  # per label of a distribution
POINT = "sample"  # the scatter's selection
_BAND, _AROUND = 52, 56
_GREY = "#868D97"


def title(metric: Metric) -> str:
    return f"{metric.label} ({metric.unit})"


def thinned(lines: pd.DataFrame, most: int = MOST_POINTS) -> pd.DataFrame:
    return lines.iloc[:: max(1, -(-len(lines) // most))]


def colours(labels: Sequence[str], families: Mapping[str, str]) -> alt.Color:
    """The colours of the models' families."""
    scale = alt.Scale(
        domain=list(labels), range=[family_colour(families.get(label, "")) for label in labels]
    )
    return alt.Color("label:N", scale=scale, legend=None)


def distribution(
    lines: pd.DataFrame, labels: Sequence[str], families: Mapping[str, str], metric: Metric
) -> alt.LayerChart:
    """A dot per result, and quartile boxes; `lines` has the columns label, sample, value."""
    y = alt.Y("label:N", sort=list(labels), title=None, axis=names(labels))
    x = alt.X("value:Q", title=title(metric), scale=alt.Scale(zero=False))
    colour = colours(labels, families)
    dots = pd.concat([thinned(group, DOTS) for _, group in lines.groupby("label", sort=False)])
    dots = dots.assign(place=[index % 17 - 8 for index in range(len(dots))])
    tip = [
        alt.Tooltip("label:N", title="Model"),
        alt.Tooltip("sample:N", title="Sample"),
        alt.Tooltip("value:Q", title=title(metric), format=",.4~g"),
    ]
    strip: Any = alt.Chart(dots).mark_circle(size=16, opacity=0.35)
    offset = alt.YOffset("place:Q", scale=alt.Scale(domain=[-14, 14]))
    box: Any = alt.Chart(quarters(lines)).encode(y=y)
    layers = [
        strip.encode(y=y, x=x, yOffset=offset, color=colour, tooltip=tip),
        box.mark_bar(height=22, opacity=0.25).encode(
            x=alt.X("first:Q", title=title(metric)), x2="third:Q", color=colour
        ),
        box.mark_tick(thickness=3, height=26).encode(x="median:Q", color=colour),
    ]
    return alt.LayerChart(layer=layers, height=_height(labels))


def _height(labels: Sequence[str]) -> int:
    return (_BAND + room(labels)) * max(1, len(labels)) + _AROUND


def quarters(lines: pd.DataFrame) -> pd.DataFrame:
    """label, low, first, median, third, high (quartiles) of each label's values."""
    shares = {"low": 0.0, "first": 0.25, "median": 0.5, "third": 0.75, "high": 1.0}
    values = lines.groupby("label", sort=False)["value"]
    return pd.DataFrame({name: values.quantile(q) for name, q in shares.items()}).reset_index()


def distribution_words(lines: pd.DataFrame, metric: Metric) -> str:
    """The chart as text."""
    sentences = [
        f"{row['label']}: median {number(row['median'])}, half of the results between "
        f"{number(row['first'])} and {number(row['third'])}, all between {number(row['low'])} and "
        f"{number(row['high'])}."
        for row in quarters(lines).to_dict("records")
    ]
    return f"Distribution of {title(metric)}. " + " ".join(sentences)


def scatter(both: pd.DataFrame, a: str, b: str, metric: Metric) -> alt.LayerChart:
    """A point per sample (columns sample, sequence, a, b), and the line of equal values.

    The selection is named POINT and contains the sample's id.
    """
    drawn = thinned(both)
    top = float(max(drawn["a"].max(), drawn["b"].max())) * 1.05 or 1.0
    scale = alt.Scale(domain=[0, top], nice=False)
    pick = alt.selection_point(name=POINT, fields=["sample"], on="click", empty=False)
    chart: Any = alt.Chart(drawn).mark_circle(
        size=70, color=STAGE_COLOURS["load"], cursor="pointer"
    )
    points = chart.encode(
        x=alt.X("b:Q", title=in_lines(f"{b}: {title(metric)}"), scale=scale),
        y=alt.Y("a:Q", title=in_lines(f"{a}: {title(metric)}"), scale=scale),
        opacity=alt.condition(pick, alt.value(1.0), alt.value(0.55)),
        tooltip=[
            alt.Tooltip("sample:N", title="Sample"),
            alt.Tooltip("sequence:N", title="Sequence"),
            alt.Tooltip("a:Q", title=a, format=",.4~g"),
            alt.Tooltip("b:Q", title=b, format=",.4~g"),
        ],
    ).add_params(pick)
    ends: Any = alt.Chart(pd.DataFrame({"a": [0.0, top], "b": [0.0, top]}))
    equal = ends.mark_line(strokeDash=[5, 4], color=_GREY).encode(x="b:Q", y="a:Q")
    return alt.LayerChart(layer=[equal, points], height=420)


def scatter_words(both: pd.DataFrame, a: str, b: str, metric: Metric) -> str:
    above = int((both["a"] > both["b"]).sum())
    thin = f" ({MOST_POINTS:,} drawn, thinned evenly)" if len(both) > MOST_POINTS else ""
    return (
        f"{title(metric)} of {len(both):,} samples{thin}: {a} vertical, {b} horizontal. "
        f"{above:,} are above the line, where {a} has the larger value."
    )


@dataclass(frozen=True)
class AnswerTimes:
    """One answer's times: its row of the table, and the known starts of stages."""

    label: str
    row: Mapping[str, Any]
    starts: Mapping[str, float]


def timeline(answers: Sequence[AnswerTimes]) -> alt.LayerChart:
    """Stages as bars and new tokens as ticks, in ms since the start."""
    stages, tokens = stage_lines(answers), token_lines(answers)
    labels = [answer.label for answer in answers]
    y = alt.Y("label:N", sort=labels, title=None, axis=names(labels))
    axis = "time since the start of the run (ms)"
    scale = alt.Scale(domain=list(STAGES), range=[STAGE_COLOURS[name] for name in STAGES])
    bars: Any = alt.Chart(stages).mark_bar(height=24, opacity=0.8)
    ticks: Any = alt.Chart(tokens).mark_tick(thickness=1.5, height=34, color=_GREY)
    layers = [
        bars.encode(
            y=y,
            x=alt.X("start:Q", title=axis),
            x2="end:Q",
            color=alt.Color(
                "stage:N",
                scale=scale,
                legend=alt.Legend(title=None, orient="top", symbolType="square"),
            ),
            tooltip=[
                alt.Tooltip("stage:N", title="Stage"),
                alt.Tooltip("ms:Q", title="ms", format=",.2f"),
                alt.Tooltip("source:N", title="Source"),
            ],
        ),
        ticks.encode(
            y=y,
            x="ms:Q",
            tooltip=[
                alt.Tooltip("token:Q", title="New token"),
                alt.Tooltip("ms:Q", title="At (ms)", format=",.2f"),
                alt.Tooltip("gap:Q", title="Since the previous token (ms)", format=",.2f"),
            ],
        ),
    ]
    return alt.LayerChart(layer=layers, height=_height(labels) + 30)


def stage_lines(answers: Sequence[AnswerTimes]) -> pd.DataFrame:
    """A line per timed stage; without a known start it begins at the end of the one before."""
    lines = []
    for answer in answers:
        at = 0.0
        for name in STAGES:
            length = answer.row[f"{name}_ms"]
            if length != length:
                continue
            start = answer.starts.get(name, at)
            at = start + length
            source = answer.row[f"{name}_source"]
            lines.append((answer.label, name, start, at, length, source))
    return pd.DataFrame(lines, columns=["label", "stage", "start", "end", "ms", "source"])


def token_lines(answers: Sequence[AnswerTimes]) -> pd.DataFrame:
    lines = []
    for answer in answers:
        before = None
        for position, at in enumerate(answer.row["token_ms"], start=1):
            lines.append(
                (answer.label, position, float(at), None if before is None else at - before)
            )
            before = float(at)
    frame = pd.DataFrame(lines, columns=["label", "token", "ms", "gap"])
    return frame.astype({"gap": "float64"})


def timeline_words(answers: Sequence[AnswerTimes]) -> str:
    sentences = []
    for answer in answers:
        row = answer.row
        timed = {name: row[f"{name}_ms"] for name in STAGES}
        parts = ", ".join(f"{name} {ms(long)}" for name, long in timed.items() if long == long)
        sentences.append(
            f"{answer.label}: {parts}; {len(row['token_ms']):,} tokens, the first after "
            f"{ms(row['ttft_ms'])}, the last after {ms(row['total_ms'])}."
        )
    return "Timeline of stages and tokens. " + " ".join(sentences)

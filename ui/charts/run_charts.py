"""Stage times of single runs as a chart, a table and text.

Boundary: RunResults in, DataFrame, Altair chart or text out; no streamlit.  All figures are the
engine's; only the start of each bar is computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import altair as alt
import pandas as pd

from engine.analysis import stage_bars as bars
from engine.analysis.metrics import BY_NAME
from engine.types import STAGES, RunResult, Span
from ui.widgets.text import escape, ms
from ui.widgets.theme import PARTS, STAGE_COLOURS, UNACCOUNTED

SOURCE_WORDS = {
    "measured": "measured",
    "cached": "read from the cache",
    "hook": "measured by a hook",
    "derived": "derived: total minus the hook's time",
}
STEPS = {f"decode.{name}": BY_NAME[name].label for name in ("prefill", "steps")}
MISSING = "not measured"
UNKNOWN = "unknown"
THIS_RUN, ORIGINAL = BY_NAME["total"].label, BY_NAME["uncached_total"].label
REUSED = "prompt prefix reused from memory"
_BAND, _BAR, _GHOST = 62, 20, 40  # pixels: a model's row, its bar, the original time behind it
_AROUND = 96  # pixels of legend and axis
_CHART_PIXELS = 900  # approximate chart width, for equal stripes


@dataclass(frozen=True)
class ModelResult:
    """A model's label and its result."""

    label: str
    result: RunResult


def segments(rows: Sequence[ModelResult]) -> pd.DataFrame:
    """One line per model and stage, in the fixed order, end to end."""
    lines = []
    for row in rows:
        for segment in bars.segments({row.label: _lengths(row.result)}):
            span = row.result.span(segment.part)
            lines.append(
                {
                    "model": row.label,
                    "name": f"{row.label}\n{_total_words(row.result)}",
                    "stage": segment.part,
                    "order": PARTS.index(segment.part),
                    "start_ms": segment.start_ms,
                    "end_ms": segment.end_ms,
                    "ms": segment.ms,
                    "source": source_words(row.result, span) if span else _no_span(segment.part),
                    "cached": span is not None and span.source == "cached",
                    "original_ms": span.original_ms if span else None,
                }
            )
    return pd.DataFrame(lines).astype({"original_ms": "float64"})


def _lengths(result: RunResult) -> dict[str, float]:
    spans = {str(stage): result.span(stage) for stage in STAGES}
    known = {stage: span.ms for stage, span in spans.items() if span}
    return known | {UNACCOUNTED: result.unaccounted_ms}


def _no_span(part: str) -> str:
    return "total minus the stages" if part == UNACCOUNTED else MISSING


def table(rows: Sequence[ModelResult]) -> pd.DataFrame:
    """The numbers of the chart and their sources: one row per stage, one column per model.

    Labels are escaped, because st.table reads Markdown.
    """
    return pd.DataFrame({escape(row.label): _column(row.result) for row in rows})


def _column(result: RunResult) -> dict[str, str]:
    cells: dict[str, str] = {stage: _cell(result, result.span(stage)) for stage in STAGES}
    for name, shown in STEPS.items():
        cells[shown] = _cell(result, result.span(name))
    cells[UNACCOUNTED] = ms(result.unaccounted_ms)
    cells[THIS_RUN] = ms(result.total_ms)
    cells[ORIGINAL] = _original(result) if result.cached else "no cached stage"
    return cells


def _original(result: RunResult) -> str:
    """The total without cache; unknown if a prefix was reused."""
    total = result.uncached_total_ms
    return UNKNOWN if total is None else ms(total)


def source_words(result: RunResult, span: Span) -> str:
    """The source of a stage's time; a reused prefix comes from memory, not from the cache."""
    use = result.prefix
    if span.source == "cached" and use is not None and use.state == "reused":
        return REUSED
    return SOURCE_WORDS[span.source]


def _cell(result: RunResult, span: Span | None) -> str:
    if span is None:
        return MISSING
    words = f"{ms(span.ms)}, {source_words(result, span)}"
    if span.source != "cached":
        return words
    took = UNKNOWN if span.original_ms is None else ms(span.original_ms)
    return f"{words} (computing time {took})"


def words(rows: Sequence[ModelResult]) -> str:
    """The chart as text, for screen readers."""
    sentences = []
    for row in rows:
        cells = _column(row.result)
        parts = ", ".join(f"{name} {cells[name]}" for name in (*STAGES, UNACCOUNTED))
        sentences.append(f"{row.label}: {parts}; {THIS_RUN} {cells[THIS_RUN]}.")
    return "Stacked bars of stage times. " + " ".join(sentences)


def stage_chart(rows: Sequence[ModelResult]) -> alt.LayerChart:
    """One bar per model; a cached stage is striped, with its original time behind it if known."""
    frame = segments(rows)
    ghosts = _ghosts(frame)
    end = float(max(frame["end_ms"].max(), ghosts["end_ms"].max() if len(ghosts) else 0.0, 1e-3))
    axes = _axes(list(dict.fromkeys(frame["name"])), end)
    layers = [
        *(_striped(axes, line, end, _GHOST, (0.30, 0.08)) for _, line in ghosts.iterrows()),
        _bars(axes, frame[~frame["cached"]]),
        *(
            _striped(axes, line, end, _BAR, (1.0, 0.25))
            for _, line in frame[frame["cached"]].iterrows()
        ),
    ]
    chart = alt.LayerChart(layer=layers, height=_BAND * len(rows) + _AROUND)
    return cast(alt.LayerChart, chart.configure_view(stroke=None))


def _ghosts(frame: pd.DataFrame) -> pd.DataFrame:
    """The known original times of each model, without overlaps."""
    laid, ends = [], dict[str, float]()
    for line in frame.dropna(subset=["original_ms"]).to_dict("records"):
        start = max(line["start_ms"], ends.get(line["name"], 0.0))
        ends[line["name"]] = start + line["original_ms"]
        laid.append(line | {"start_ms": start, "end_ms": ends[line["name"]]})
    return pd.DataFrame(laid, columns=frame.columns)


_NAME_AXIS = alt.Axis(
    labelExpr="split(datum.value, '\\n')", labelLimit=300, labelLineHeight=16, ticks=False
)


@dataclass(frozen=True)
class _Axes:
    """Channels shared by all layers, so that order, units and margins agree."""

    y: alt.Y
    x: alt.X
    x2: alt.X2
    colour: alt.Color


def _axes(names: list[str], end: float) -> _Axes:
    return _Axes(
        y=alt.Y("name:N", sort=names, title=None, axis=_NAME_AXIS),
        x=alt.X(
            "start_ms:Q",
            title="time (ms), the stages end to end",
            scale=alt.Scale(domain=[0, end * 1.02], nice=False),
        ),
        x2=alt.X2("end_ms:Q"),
        colour=alt.Color(
            "stage:N",
            scale=alt.Scale(domain=list(PARTS), range=[STAGE_COLOURS[part] for part in PARTS]),
            legend=alt.Legend(title=None, orient="top", symbolType="square"),
        ),
    )


_TOOLTIP = [
    alt.Tooltip("model:N", title="Model"),
    alt.Tooltip("stage:N", title="Stage"),
    alt.Tooltip("ms:Q", title="This run (ms)", format=",.2f"),
    alt.Tooltip("source:N", title="Source"),
]
_TOOLTIP_CACHED = [*_TOOLTIP, alt.Tooltip("original_ms:Q", title="Computed in (ms)", format=",.2f")]


def _bars(axes: _Axes, frame: pd.DataFrame) -> alt.Chart:
    bars: alt.Chart = alt.Chart(frame).mark_bar(height=_BAR)
    return bars.encode(y=axes.y, x=axes.x, x2=axes.x2, color=axes.colour, tooltip=_TOOLTIP)


def _striped(
    axes: _Axes, line: pd.Series, end: float, height: int, strengths: tuple[float, float]
) -> alt.Chart:
    """One bar filled with diagonal stripes of its stage's colour."""
    colour = STAGE_COLOURS[str(line["stage"])]
    width = (float(line["end_ms"]) - float(line["start_ms"])) / end * _CHART_PIXELS
    fill = stripes(colour, max(1.0, width), height, strengths)
    base = alt.Chart(pd.DataFrame([line.to_dict()]))
    bar: alt.Chart = base.mark_bar(height=height, fill=fill, stroke=colour, strokeWidth=1)
    known = pd.notna(line["original_ms"])
    tooltip = _TOOLTIP_CACHED if known else _TOOLTIP  # an unknown time would be shown as 0
    return bar.encode(y=axes.y, x=axes.x, x2=axes.x2, tooltip=tooltip)


def stripes(
    colour: str, width: float, height: float, strengths: tuple[float, float]
) -> dict[str, object]:
    """Diagonal stripes as a Vega gradient with hard edges, because Vega has no patterns.

    An SVG gradient is stretched with the bar: this vector gives stripes at 45 degrees on a bar of
    `width` x `height` pixels.
    """
    pairs = max(1, min(60, round((width + height) / 9)))
    stops: list[dict[str, object]] = []
    for index in range(2 * pairs):
        shade = _translucent(colour, strengths[index % 2])
        stops += [{"offset": edge / (2 * pairs), "color": shade} for edge in (index, index + 1)]
    scale = (width + height) / (width**2 + height**2)
    end = {"x2": scale * width, "y2": scale * height}
    return {"gradient": "linear", "x1": 0, "y1": 0, **end, "stops": stops}


def _translucent(colour: str, strength: float) -> str:
    return f"{colour}{round(255 * strength):02X}"


def _total_words(result: RunResult) -> str:
    """The totals, shown under the model's name."""
    if not result.cached:
        return ms(result.total_ms)
    if result.uncached_total_ms is None:
        return f"{ms(result.total_ms)}; unknown without cache"
    return f"{ms(result.total_ms)}; {ms(result.uncached_total_ms)} without cache"

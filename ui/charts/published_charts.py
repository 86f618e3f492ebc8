"""Charts of recorded files: waterfall, acceptance against chance, ratios against claims.

Boundary: the engine's figures in, Altair charts and their text out; no streamlit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.acceptance import Acceptance, Range
from engine.analysis.number_text import ms, times
from engine.published.claims.headlines import Headline
from engine.published.claims.published_report import range_percent, range_times
from engine.published.claims.waterfall import ONE_SIDED, Waterfall
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.widgets.theme import PARTS, STAGE_COLOURS

_BAND, _AROUND = 34, 84  # pixels: a row, axis and title
_GREY = "#868D97"
_STAGES = {
    "load+preprocess": "load",
    "prefill": "decode",
    "prefill + vision": "decode",
    "vision + decode": "decode",
    "prefill + decode": "decode",
    "fewer tokens": "decode",
    "time per token": "decode",
}
WHOLE = "total"
_DECODING = {"fewer tokens": "decode: number of tokens", "time per token": "decode: time per token",
             "prefill": "decode: prefill"}  # fmt: skip


def falls(fall: Waterfall) -> pd.DataFrame:
    """A line per bar: the slow total, each part from where the last one ended, the fast total."""
    lines: list[dict[str, Any]] = [_line(fall.slow, WHOLE, 0.0, fall.slow_ms, fall.slow_ms)]
    level = fall.slow_ms
    for part in fall.parts:
        of = part.name.removesuffix(ONE_SIDED)
        stage = _STAGES.get(of, of)
        name = _DECODING.get(part.name, part.name)
        lines.append(_line(name, stage, level, level - part.ms, -part.ms))
        level -= part.ms
    lines.append(_line(fall.fast, WHOLE, 0.0, fall.fast_ms, fall.fast_ms))
    frame = pd.DataFrame(lines).assign(place=range(len(lines)))
    return frame.assign(
        right=frame[["start", "end"]].max(axis=1),
        words=[_signed(line["ms"], line["stage"] == WHOLE) for line in lines],
    )


def _line(name: str, stage: str, start: float, end: float, length: float) -> dict[str, Any]:
    return {"name": name, "stage": stage, "start": start, "end": end, "ms": length}


def _signed(value: float, whole: bool) -> str:
    return ms(value) if whole else f"{'+' if value >= 0 else '−'}{ms(abs(value))}"


def waterfall(fall: Waterfall) -> alt.LayerChart:
    """Parts in the colours of their stages; the totals in grey.

    The values are labels of an axis on the right, because axis labels follow changes of the theme
    and text marks do not.
    """
    frame = falls(fall)
    order = alt.EncodingSortField("place", order="ascending")
    y = alt.Y("name:N", sort=order, title=None, axis=alt.Axis(labelLimit=320, ticks=False))
    title = ["mean time per sample (ms),", f"from {fall.slow}", f"down to {fall.fast}"]
    top = float(frame["right"].max()) * 1.02
    scale = alt.Scale(domain=[min(0.0, float(frame["end"].min())), top], nice=False)
    colours = alt.Scale(
        domain=[*PARTS, WHOLE], range=[*(STAGE_COLOURS[part] for part in PARTS), _GREY]
    )
    base: Any = alt.Chart(frame)
    bars = base.mark_bar(height=18).encode(
        y=y,
        x=alt.X("start:Q", title=title, scale=scale),
        x2="end:Q",
        color=alt.Color("stage:N", scale=colours, legend=None),
        tooltip=[
            alt.Tooltip("name:N", title="Part"),
            alt.Tooltip("ms:Q", title="Change (ms)", format="+,.1f"),
        ],
    )
    values = alt.Axis(orient="right", ticks=False, labelExpr=_by_place(list(frame["words"])))
    words = base.mark_point(opacity=0).encode(y=alt.Y("place:O", title=None, axis=values))
    chart: Any = alt.LayerChart(layer=[bars, words], height=_BAND * len(frame) + _AROUND)
    found: alt.LayerChart = chart.resolve_scale(y="independent")
    return found


def _by_place(words: Sequence[str]) -> str:
    """Vega's expression for the value of each row; it contains only numbers, no user input."""
    return f"{json.dumps(words)}[datum.value]"


def waterfall_words(fall: Waterfall) -> str:
    lines = falls(fall).to_dict("records")[1:-1]
    parts = ", ".join(f"{line['name']} {line['words']}" for line in lines)
    return (
        f"From {fall.slow}, {ms(fall.slow_ms)} in the mean, to {fall.fast}, {ms(fall.fast_ms)}: "
        f"{parts}."
    )


def _percent(found: Range) -> dict[str, float]:
    """In percent; without an interval both ends are the value, so only a dot is drawn."""
    low, high = found.interval or (found.value, found.value)
    return {"value": 100 * found.value, "low": 100 * low, "high": 100 * high}


def matches(found: Acceptance) -> pd.DataFrame:
    """True and shuffled pairs: percent of ids that match by position, with intervals."""
    pairs = (("true pairs", found.rate), ("shuffled pairs", found.shuffled))
    return pd.DataFrame(
        [{"pairs": name, **_percent(value)} for name, value in pairs if value is not None]
    )


def matching(found: Acceptance) -> alt.LayerChart:
    frame = matches(found)
    colours = alt.Scale(domain=list(frame["pairs"]), range=[STAGE_COLOURS["decode"], _GREY])
    return _intervals(frame, "pairs", "ids that match by position (%)", colours)


def matching_words(found: Acceptance) -> str:
    sentences = ["Ids that match by position."]
    for name, one in (("true pairs", found.rate), ("shuffled pairs", found.shuffled)):
        if one is not None:
            sentences.append(f"{name}: {range_percent(one)}.")
    return " ".join(sentences)


def _intervals(frame: pd.DataFrame, field: str, title: str, colours: alt.Scale) -> alt.LayerChart:
    """A dot per line, on its 95 % interval."""
    y = alt.Y(f"{field}:N", sort=list(frame[field]), title=None,
              axis=alt.Axis(labelLimit=260, ticks=False))  # fmt: skip
    top = max(float(frame["high"].max()) * 1.1, 1.0)
    x = alt.Scale(domain=[0, top], nice=False)
    colour = alt.Color(f"{field}:N", scale=colours, legend=None)
    tip = [
        alt.Tooltip(f"{field}:N", title=" "),
        alt.Tooltip("value:Q", title="Value", format=".2f"),
        alt.Tooltip("low:Q", title="95 %, from", format=".2f"),
        alt.Tooltip("high:Q", title="to", format=".2f"),
    ]
    base: Any = alt.Chart(frame)
    rule = base.mark_rule(strokeWidth=5, opacity=0.4).encode(
        y=y, x=alt.X("low:Q", title=title, scale=x), x2="high:Q", color=colour, tooltip=tip
    )
    dot = base.mark_point(filled=True, size=110, opacity=1).encode(
        y=y, x="value:Q", color=colour, tooltip=tip
    )
    return alt.LayerChart(layer=[rule, dot], height=_BAND * len(frame) + _AROUND)


def ratios(headline: Headline, corrected: bool) -> pd.DataFrame:
    """A line per file with both times: its ratio, and the interval of the median over samples."""
    lines = []
    for one in headline.evidence:
        ratio = one.ratio(corrected)
        if ratio is not None and ratio > 0 and not one.doubted:
            span = one.paired
            lines.append(
                {
                    "file": one.file,
                    "other": one.other,
                    "ratio": ratio,
                    "low": span.low if span else ratio,
                    "high": span.high if span else ratio,
                }
            )
    return pd.DataFrame(lines, columns=["file", "other", "ratio", "low", "high"])


def claim(headline: Headline, corrected: bool) -> alt.LayerChart:
    """Ratios on a log scale, with lines at the claimed ratio and at 1 (equally fast)."""
    frame = ratios(headline, corrected)
    low = min(0.5, *frame["ratio"], *frame["low"]) * 0.9
    high = max(headline.stated, *frame["ratio"], *frame["high"]) * 1.3
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y = alt.Y("file:N", sort=list(frame["file"]), title=None,
              axis=alt.Axis(labelLimit=380, ticks=False))  # fmt: skip
    title = ["other model's time /", "EventGPT's (log scale)"]
    x = alt.X("ratio:Q", title=title, scale=scale, axis=alt.Axis(values=_ticks(low, high)))
    tip = [
        alt.Tooltip("file:N", title="File"),
        alt.Tooltip("other:N", title="Against"),
        alt.Tooltip("ratio:Q", title="Ratio of means", format=".2f"),
    ]
    marks = pd.DataFrame(
        {"at": [1.0, headline.stated], "what": ["equally fast", f"claimed: {headline.stated:g}x"]}
    )
    names: Any = alt.Chart(marks)
    base: Any = alt.Chart(frame)
    lines: Any = alt.Chart(marks)
    layers = [
        lines.mark_rule(strokeDash=[5, 4], color=_GREY).encode(x=alt.X("at:Q", scale=scale)),
        *(
            # The claim is near the right end, so its name stands to the left of its line.
            names.transform_filter(alt.datum.at == at)
            .mark_text(align=side, dx=away, baseline="top", color=_GREY)
            .encode(x=alt.X("at:Q", scale=scale), y=alt.value(high_up), text="what:N")
            for at, side, away, high_up in (
                (1.0, "left", 4, -26),
                (headline.stated, "right", -4, -12),
            )
        ),
        base.mark_rule(strokeWidth=5, opacity=0.4, color=STAGE_COLOURS["load"]).encode(
            y=y, x=alt.X("low:Q", scale=scale), x2="high:Q"
        ),
        base.mark_point(filled=True, size=90, opacity=1, color=STAGE_COLOURS["load"]).encode(
            y=y, x=x, tooltip=tip
        ),
    ]
    return alt.LayerChart(layer=layers, height=28 * len(frame) + _AROUND)


def _ticks(low: float, high: float) -> list[float]:
    """At most 8 round numbers."""
    known = [tick for tick in (0.5, 1, 2, 3, 5, 10, 30, 100, 300, 1000) if low <= tick <= high]
    return known[:: 1 + len(known) // 9]


def claim_words(headline: Headline, corrected: bool) -> str:
    sentences = [
        f"{line['file']}: {times(line['ratio'])} against {line['other']}."
        for line in ratios(headline, corrected).to_dict("records")
    ]
    return f"{headline.claim}. {headline.verdict} " + " ".join(sentences)


def outlook(found: Sequence[Acceptance]) -> pd.DataFrame:
    """Predicted speed-up, its interval and the ceiling for each draft length."""
    lines = []
    for one in found:
        if one.speedup is not None:
            low, high = one.speedup.interval or (one.speedup.value, one.speedup.value)
            lines.append(
                {
                    "gamma": one.gamma,
                    "value": one.speedup.value,
                    "low": low,
                    "high": high,
                    "ceiling": one.ceiling,
                }
            )
    return pd.DataFrame(lines, columns=["gamma", "value", "low", "high", "ceiling"])


def speedups(found: Sequence[Acceptance], chosen: int) -> alt.LayerChart:
    """By draft length: the predicted speed-up, its 95 % interval, and the ceiling."""
    frame = outlook(found)
    names = alt.Scale(
        domain=["predicted", "if all are accepted"],
        range=[STAGE_COLOURS["decode"], _GREY],
    )
    legend = alt.Legend(title=None, orient="top", columns=1, labelLimit=320)
    x = alt.X("gamma:Q", title="draft length g (tokens)", axis=alt.Axis(tickMinStep=1),
              scale=alt.Scale(domain=[1, len(found)], nice=False))  # fmt: skip
    y = "speed-up against the target alone (x)"
    base: Any = alt.Chart(frame)
    both = frame.melt("gamma", ["value", "ceiling"], "kind", "speedup")
    both["kind"] = both["kind"].map({"value": names.domain[0], "ceiling": names.domain[1]})
    drawn: Any = alt.Chart(both)
    marks: Any = alt.Chart(pd.DataFrame({"one": [1.0], "chosen": [chosen]}))
    layers = [
        base.mark_area(opacity=0.2, color=STAGE_COLOURS["decode"]).encode(
            x=x, y=alt.Y("low:Q", title=y), y2="high:Q"
        ),
        drawn.mark_line().encode(
            x=x,
            y=alt.Y("speedup:Q", title=y),
            color=alt.Color("kind:N", scale=names, legend=legend),
            tooltip=[
                alt.Tooltip("gamma:Q", title="g"),
                alt.Tooltip("kind:N", title=" "),
                alt.Tooltip("speedup:Q", title="Speed-up", format=".3f"),
            ],
        ),
        marks.mark_rule(strokeDash=[5, 4], color=_GREY).encode(y="one:Q"),
        marks.mark_rule(strokeDash=[2, 3], color=_GREY).encode(x="chosen:Q"),
    ]
    return alt.LayerChart(layer=layers, height=260)


def speedups_words(found: Sequence[Acceptance]) -> str:
    sentences = [
        f"g {one.gamma}: {range_times(one.speedup)}, ceiling {times(one.ceiling)}."
        for one in found
        if one.speedup is not None
    ]
    return "Predicted speed-up over the draft length; under 1x is slower. " + " ".join(sentences)

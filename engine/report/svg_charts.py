"""The charts of a report as SVG, with the colours and orders of the app.

Boundary: figures in, Altair charts or SVG text out.  vl-convert draws them without a browser and
without network.  Text and axes use the colour of the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from engine.analysis.metrics import BY_NAME
from engine.analysis.speedup import Split
from engine.analysis.stage_bars import PARTS, StageTimes, segments
from engine.palette import DASHES, STAGE_COLOURS, family_colour

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

MOST_POINTS = 2000  # of a scatter; more are thinned evenly
TICKS = 5  # wished per axis: Vega makes at most 8 of them
_WIDTH, _ROW, _LINE = 640, 34, 12
_INK = "currentColor"
_UP, _DOWN, _WHOLE = "#C8453B", "#11805A", "#868D97"


def svg(chart: alt.Chart | alt.LayerChart) -> str:
    """The chart as SVG text, every word in it escaped."""
    import altair as alt
    import vl_convert

    spec = chart.to_dict()
    spec["config"] = _config()
    spec["background"] = "transparent"
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = version if version in vl_convert.get_vegalite_versions() else None  # None: its newest
    return str(vl_convert.vegalite_to_svg(json.dumps(spec), known, allowed_base_urls=[]))


def _config() -> dict[str, Any]:
    words = {"labelColor": _INK, "titleColor": _INK, "labelLimit": 320, "titleFontWeight": "normal"}
    lines = {"gridColor": _INK, "gridOpacity": 0.15, "domainColor": _INK, "tickColor": _INK}
    return {
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {**words, **lines, "domainOpacity": 0.4, "tickOpacity": 0.4},
        "axisQuantitative": {"tickCount": TICKS},
        "legend": {**words, "orient": "top", "title": None},
        "text": {"color": _INK},
        "rule": {"color": _INK},
    }


def stage_chart(medians: StageTimes) -> alt.Chart:
    """Medians of the measured stages laid end to end, a bar per label."""
    import altair as alt
    import pandas as pd

    labels = list(medians)
    lines = [
        {"model": one.label, "stage": one.part, "start": one.start_ms, "end": one.end_ms}
        for one in segments(medians)
    ]
    colours = alt.Scale(domain=list(PARTS), range=[STAGE_COLOURS[part] for part in PARTS])
    chart: alt.Chart = alt.Chart(pd.DataFrame(lines)).mark_bar(height=_ROW * 0.6)
    return chart.encode(
        y=alt.Y("model:N", sort=list(labels), title=None, axis=_names(labels)),
        x=alt.X("start:Q", title="median of each stage (ms), end to end"),
        x2="end:Q",
        color=alt.Color("stage:N", scale=colours, sort=list(PARTS)),
    ).properties(width=_WIDTH, height=_height(labels))


def _names(labels: Sequence[str]) -> alt.Axis:
    """One line per part of a label, so that the device at its end is not cut off."""
    import altair as alt

    lines, up = "split(datum.label, ' · ')", -_more(labels) / 2
    return alt.Axis(
        labelExpr=lines, labelLineHeight=_LINE, labelOffset=up, labelOverlap=False, ticks=False
    )


def _more(labels: Sequence[str]) -> int:
    """Pixels of a label's lines beyond the first."""
    return _LINE * max((label.count(" · ") for label in labels), default=0)


def _height(labels: Sequence[str]) -> int:
    return max(_ROW, _more(labels) + 20) * len(labels)


def distributions(
    table: pd.DataFrame, labels: Sequence[str], metric: str, families: Mapping[str, str]
) -> alt.LayerChart:
    """A metric's minimum, quartiles and maximum per label."""
    import altair as alt
    import pandas as pd

    kind = BY_NAME[metric]
    values = table.groupby("label")[kind.column]
    shares = {"low": 0.0, "first": 0.25, "median": 0.5, "third": 0.75, "high": 1.0}
    lines = pd.DataFrame({name: values.quantile(q) for name, q in shares.items()}).reset_index()
    y = alt.Y("label:N", sort=list(labels), title=None, axis=_names(labels))
    base = alt.Chart(lines).encode(y=y)
    title = f"{kind.label} ({kind.unit}): minimum, quartiles, maximum"
    chart = alt.layer(
        base.mark_rule(opacity=0.5).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        base.mark_bar(height=_ROW * 0.5).encode(
            x="first:Q", x2="third:Q", color=_by_label(labels, families)
        ),
        base.mark_tick(thickness=3, color=_INK, height=_ROW * 0.5).encode(x="median:Q"),
    )
    return cast("alt.LayerChart", chart.properties(width=_WIDTH, height=_height(labels)))


def curves(
    lines: Sequence[Mapping[str, Any]], axis: str, families: Mapping[str, str]
) -> alt.LayerChart:
    """Shares from 0 to 1 by strength: a line per model, with its interval as a band.

    lines: model, strength, share, low, high (None without an interval).
    """
    import altair as alt
    import pandas as pd

    tones = [family_colour(families.get(label, "")) for label in families]
    legend = alt.Legend(symbolOpacity=1)  # not that of the bands
    colour = alt.Color(
        "model:N", scale=alt.Scale(domain=list(families), range=tones), legend=legend
    )
    shares = alt.Scale(domain=[0, 1])
    base = alt.Chart(pd.DataFrame(list(lines))).encode(
        x=alt.X("strength:Q", title=axis), color=colour
    )
    bands = base.mark_area(opacity=0.15).encode(
        y=alt.Y("low:Q", title="share, with 95 % interval", scale=shares), y2="high:Q"
    )
    share = alt.Y("share:Q", title="share, with 95 % interval", scale=shares)
    dash = alt.Scale(domain=list(families), range=[*DASHES])
    drawn = base.mark_line(strokeWidth=2).encode(
        y=share, strokeDash=alt.StrokeDash("model:N", scale=dash, legend=None)
    )
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        y=share,
        shape=alt.Shape("model:N", scale=alt.Scale(domain=list(families)), legend=legend),
    )
    chart = alt.layer(bands, drawn, points).properties(width=_WIDTH, height=260)
    return cast("alt.LayerChart", chart)


def _by_label(labels: Sequence[str], families: Mapping[str, str]) -> alt.Color:
    import altair as alt

    colours = [family_colour(families.get(label, "")) for label in labels]
    return alt.Color("label:N", scale=alt.Scale(domain=list(labels), range=colours), legend=None)


def waterfall(split: Split) -> alt.LayerChart:
    """From a's mean total to b's: what each factor adds, in ms."""
    import altair as alt
    import pandas as pd

    first = {"name": split.a, "start": 0.0, "end": split.a_ms, "kind": "total", "ms": split.a_ms}
    lines: list[dict[str, Any]] = [first]
    level = split.a_ms
    for part in split.parts:
        kind = "adds" if part.ms >= 0 else "saves"
        line = {"name": part.name, "start": level, "end": level + part.ms, "kind": kind}
        lines.append(line | {"ms": part.ms})
        level += part.ms
    lines.append({"name": split.b, "start": 0.0, "end": level, "kind": "total", "ms": level})
    for place, line in enumerate(lines):  # two models of one name are two bars
        line |= {"place": place, "words": _milliseconds(line)}
    scale = alt.Scale(domain=["adds", "saves", "total"], range=[_UP, _DOWN, _WHOLE])
    frame = pd.DataFrame(lines)
    room = alt.Scale(domainMax=1.3 * float(frame[["start", "end"]].to_numpy().max()))  # for words
    order = alt.EncodingSortField("place", order="ascending")
    title = ["mean total (ms),", f"from {split.a}", f"to {split.b}"]
    short = "split(datum.label, ' · ')[0]"  # the title has the whole label
    axis = alt.Axis(labelExpr=short, labelOverlap=False)
    base = alt.Chart(frame).encode(y=alt.Y("name:N", sort=order, title=None, axis=axis))
    bars = base.mark_bar(height=_ROW * 0.55).encode(
        x=alt.X("start:Q", title=title, scale=room),
        x2="end:Q",
        color=alt.Color("kind:N", scale=scale),
    )
    words = base.mark_text(align="left", dx=4).encode(x=alt.X("right:Q"), text="words:N")
    words = words.transform_calculate(right="max(datum.start, datum.end)")
    chart = alt.layer(bars, words)
    return cast("alt.LayerChart", chart.properties(width=_WIDTH, height=_ROW * len(lines)))


def in_lines(title: str) -> str | list[str]:
    """A title with one line per part of its label."""
    return title.split(" · ") if " · " in title else title


def _milliseconds(line: Mapping[str, Any]) -> str:
    """A total without sign, a part with its sign."""
    return f"{line['ms']:,.1f}" if line["kind"] == "total" else f"{line['ms']:+,.1f}"


def scatter(both: pd.DataFrame, a: str, b: str, metric: str) -> alt.LayerChart:
    """A point per sample (columns a and b), and the line on which both are equal."""
    import altair as alt
    import pandas as pd

    kind = BY_NAME[metric]
    some = both.iloc[:: -(-len(both) // MOST_POINTS) or 1]
    top = float(max(some["a"].max(), some["b"].max())) * 1.05
    scale = alt.Scale(domain=[0, top], nice=False)
    points = (
        alt.Chart(some)
        .mark_circle(size=28, opacity=0.55, color=STAGE_COLOURS["load"])
        .encode(
            x=alt.X("b:Q", title=in_lines(f"{b}: {kind.label} ({kind.unit})"), scale=scale),
            y=alt.Y("a:Q", title=in_lines(f"{a}: {kind.label} ({kind.unit})"), scale=scale),
        )
    )
    ends = pd.DataFrame({"a": [0.0, top], "b": [0.0, top]})
    equal = alt.Chart(ends).mark_line(strokeDash=[4, 4], color=_INK, opacity=0.5)
    chart = alt.layer(equal.encode(x="b:Q", y="a:Q"), points)
    return cast("alt.LayerChart", chart.properties(width=380, height=380))

"""The charts of pages and reports, each as an Altair chart and as text for screen readers.  A page
draws a chart with st.altair_chart(width="stretch"), a file with svgs().  A height includes the axis
and the legend.  Importing this module imports Altair, which is slow."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.agreement import ChoiceAccuracy
from engine.analysis.compared import FROM_CACHE, REST_OF_RUN, segments
from engine.analysis.model_summary import PARTS, Metric, StageTimes
from engine.analysis.pairs import Split
from engine.analysis.results_table import SEPARATOR
from engine.attribution import wording
from engine.attribution.explained import nats_text
from engine.media_options import Window, time_text
from engine.palette import (
    DASHES,
    DECODE_COLOURS,
    HEAT_COLOURS,
    LIMIT,
    NEUTRAL,
    SERVER_COLOURS,
    STAGE_COLOURS,
    UNACCOUNTED,
    family_colour,
)
from engine.quoting import count, ms, number, percent, tokens_told
from engine.storage.explanations import MomentLoss
from engine.types import SERVER, STAGES
from engine.viewing.seen_times import EventRates

Chart = alt.Chart | alt.LayerChart
Answer = Mapping[str, Any]  # a row of the table, and the known `starts` of its stages
WIDTH = 640  # of a chart in a file, in pixels
DOTS, MOST_POINTS = 500, 1500  # per label of a distribution; of a scatter: more are thinned evenly
POINT = "sample"  # the scatter's selection
EVENTS = "#2F7BB5"  # at least 3:1 on both grounds
NARROW = "width < 420"  # a phone: legends have fewer columns, so that they are not cut off
ALL_WORDS = "All questions"
_ROW, _LINE, _AXIS, _LEGEND = 34, 13, 68, 60  # pixels
_GROUP = "\x1f"  # between a group and a name in the name of a row
_INK = "currentColor"
_CONFIG = {  # of charts in files, beside that of theme(); a figure has the words for readers
    "aria": False,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        **{"labelColor": _INK, "titleColor": _INK, "titleFontWeight": "normal"},
        **{"gridColor": _INK, "gridOpacity": 0.15, "domainColor": _INK, "tickColor": _INK},
    },
    "legend": {"labelColor": _INK, "titleColor": _INK},
}


@alt.theme.register("stagescope", enable=True)
def theme() -> alt.theme.ThemeConfig:
    """An axis has at most 8 ticks: Vega reads `tickCount` as a wish, and 5 never gives more."""
    return {"config": {"axisQuantitative": {"tickCount": 5}, "text": {"fontSize": 12}}}


# Reads a chart a line, writes its SVG as JSON, or "" for one that cannot be drawn.
_DRAW = """import json, sys, vl_convert
version = sys.argv[1] if sys.argv[1] in vl_convert.get_vegalite_versions() else None  # its newest
for chart in sys.stdin:
    try:
        drawn = vl_convert.vegalite_to_svg(chart, version, allowed_base_urls=[])
    except ValueError:
        drawn = ""
    print(json.dumps(drawn), flush=True)
"""


_DOT = (
    r'<path transform="translate\(([\d.]+),([\d.]+)\)" d="M([\d.]+),0A[^"]+" (fill="#\w+") '
    r'stroke-width="2" (opacity="[\d.]+")/>'
)


def svgs(charts: Sequence[Chart]) -> list[str]:
    """Each chart as SVG without scripts or requests, in the text colour of its page, every word in
    it escaped; "" for a chart that cannot be drawn.  They are drawn in another process: some
    characters make the library end its process."""
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    command = [sys.executable, "-P", "-c", _DRAW, version]
    specs, found = list[str](), list[str]()
    for chart in charts:
        spec: dict[str, Any] = chart.to_dict()
        spec |= {"width": WIDTH, "autosize": {"type": "fit", "contains": "padding"}}
        # The font of a browser may be wider than the one that labels are measured with.
        spec |= {"padding": {"left": 24, "right": 12, "top": 5, "bottom": 5}}
        spec |= {"background": "transparent", "config": _CONFIG | spec["config"]}
        specs.append(json.dumps(spec))
    while len(found) < len(specs):
        rest = "\n".join(specs[len(found) :])
        done = subprocess.run(command, input=rest, capture_output=True, text=True)
        if done.returncode == 1:  # an error of Python, which no chart explains
            raise RuntimeError(f"charts cannot be drawn: {done.stderr.strip()[-200:]}")
        drawn = map(json.loads, done.stdout.splitlines())
        found += [re.sub(f"(?:{_DOT})+", _circles, svg) for svg in drawn]
        found += [""] * (len(found) < len(specs))  # the one at which the process ended
    return found


def _circles(dots: re.Match[str]) -> str:
    """Dots in a quarter of the characters: a chart has some thousand."""
    groups = []
    for (fill, opacity), some in groupby(re.finditer(_DOT, dots[0]), lambda dot: dot.group(4, 5)):
        places = ([float(number) for number in dot.group(1, 2, 3)] for dot in some)
        circles = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"/>' for x, y, r in places]
        groups.append(f"<g {fill} fill-{opacity}>{''.join(circles)}</g>")
    return "".join(groups)


def _rows(field: str, names: Iterable[str]) -> alt.Y:
    """Rows in this order, a line for each part of a name: a long line would be cut off.  A row
    whose name begins with _GROUP is the bold head of a group."""
    head = f"indexof(datum.value, '{_GROUP}') == 0"
    weight: Any = {"condition": {"test": head, "value": "bold"}, "value": "normal"}
    axis = alt.Axis(
        labelExpr=f"split(peek(split(datum.value, '{_GROUP}')), '{SEPARATOR}')",
        labelFontWeight=weight,
        labelLimit=320,
        labelLineHeight=_LINE,
        labelOffset=-_more(names) / 2,
        labelOverlap=False,
        ticks=False,
    )
    return alt.Y(f"{field}:N", scale=alt.Scale(domain=list(names)), title=None, axis=axis)


def _more(names: Iterable[str]) -> int:
    """Pixels of the second and later lines of the names."""
    return _LINE * max((name.count(SEPARATOR) for name in names), default=0)


def _height(names: Iterable[str], row: int = _ROW) -> int:
    return (row + _more(names)) * max(1, len(list(names))) + _AXIS


def _colour(field: str, colours: Mapping[str, str], legend: alt.Legend | None = None) -> alt.Color:
    """colours: a family, a column of palette.tones or #RRGGBB per value of the field."""
    scale = alt.Scale(domain=list(colours), range=[*map(family_colour, colours.values())])
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def _below(columns: int) -> alt.Legend:
    return alt.Legend(
        title=None,
        orient="bottom",
        columns=alt.ExprRef(f"{NARROW} ? {(columns + 1) // 3} : {columns}"),
        columnPadding=6,
        labelFontSize=12,
        labelLimit=320,
        symbolOpacity=1,
    )


def _tips(titles: Mapping[str, str]) -> list[alt.Tooltip]:
    """Titles by field; numbers with four digits."""
    return [
        alt.Tooltip(field, title=title, format=",.4~g" if field.endswith(":Q") else alt.Undefined)
        for field, title in titles.items()
    ]


def in_lines(title: str) -> str | list[str]:
    return title.split(SEPARATOR) if SEPARATOR in title else title


def _thinned(lines: pd.DataFrame, most: int) -> pd.DataFrame:
    return lines.iloc[:: max(1, -(-len(lines) // most))]


def stage_bars(times: StageTimes, what: str = "median") -> alt.Chart:
    """A bar per label, its stages end to end; `what` names the statistic."""
    title = f"{what} of each stage (ms)"
    colours = {**STAGE_COLOURS, SERVER: SERVER_COLOURS[SERVER]}
    there = {part for known in times.values() for part in known} | {*STAGE_COLOURS}
    colours = {part: colours[part] for part in PARTS if part in there}
    parts = [
        {"label": label, "part": one.name, "start_ms": one.start_ms, "ms": one.ms}
        for label, known in times.items()
        for one in segments(known, tuple(colours))
    ]
    # A share of its row: on a phone the legend needs more of the chart, and rows are lower.
    thick = alt.RelativeBandSize(band=0.45)
    bars: alt.Chart = alt.Chart(pd.DataFrame(parts)).mark_bar(height=thick)
    return (
        bars.transform_calculate(end_ms="datum.start_ms + datum.ms")
        .encode(
            _rows("label", times),
            alt.X("start_ms:Q", title=title),
            alt.X2("end_ms:Q"),
            _colour("part", colours, _below(5)),
            tooltip=_tips({"label:N": "Model", "part:N": "Stage", "ms:Q": title}),
        )
        .properties(height=max(2 * 44 + _AXIS, _height(times, 44)) + _LEGEND)
    )


def stage_words(times: StageTimes, what: str = "median") -> str:
    sentences = [f"Bars of stage {what}s."]
    for label, known in times.items():
        parts = ", ".join(f"{part} {ms(known[part])}" for part in PARTS if part in known)
        sentences.append(f"{label}: {parts or 'not measured'}.")
    return " ".join(sentences)


def distribution(
    lines: pd.DataFrame,
    colours: Mapping[str, str],
    title: str,
    apart: pd.DataFrame | None = None,
    equal: float | None = None,
) -> alt.LayerChart:
    """A dot per result, and a box from the first to the third quartile with the median.  lines:
    label, sample, value.  apart: the same of results that are not in the box, as hollow diamonds.
    equal: a line at this value."""
    names = [label for label in colours if label in set(lines["label"])]
    dots = pd.concat([_thinned(group, DOTS) for _, group in lines.groupby("label", sort=False)])
    few = len(dots) < 10 * len(names)
    dots = dots.assign(place=[0 if few else index % 17 - 8 for index in range(len(dots))])
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False, padding=8))
    offset = alt.YOffset("place:Q", scale=alt.Scale(domain=[-14, 14]))
    every: dict[str, Any] = {"y": _rows("label", names), "color": _colour("label", colours)}
    tip = _tips({"label:N": "Model", "sample:N": "Result", "value:Q": title})
    box: Any = alt.Chart(quartiles(lines)).encode(**every)
    layers = [
        *_equal(equal),
        alt.Chart(dots)
        .mark_circle(size=50 if few else 16, opacity=0.65 if few else 0.35)
        .encode(x=x, yOffset=offset, tooltip=tip, **every),
        box.mark_bar(height=22, opacity=0.25).encode(x=alt.X("first:Q"), x2="third:Q"),
        box.mark_tick(thickness=3, height=26).encode(x=alt.X("median:Q")),
    ]
    if apart is not None:
        diamonds = alt.Chart(apart).mark_point(shape="diamond", size=90, strokeWidth=2)
        layers.append(diamonds.encode(x=x, tooltip=tip, **every))
    return alt.LayerChart(layer=layers, height=_height(names, 50))


def quartiles(lines: pd.DataFrame) -> pd.DataFrame:
    """label, low, first, median, third, high."""
    shares = {"low": 0.0, "first": 0.25, "median": 0.5, "third": 0.75, "high": 1.0}
    values = lines.groupby("label", sort=False)["value"]
    return pd.DataFrame({name: values.quantile(q) for name, q in shares.items()}).reset_index()


def distribution_words(lines: pd.DataFrame, title: str) -> str:
    sentences = [
        f"{row['label']}: median {number(row['median'])}, half of the results between "
        f"{number(row['first'])} and {number(row['third'])}, all between {number(row['low'])} and "
        f"{number(row['high'])}."
        for row in quartiles(lines).to_dict("records")
    ]
    return " ".join([f"Distribution of {title}.", *sentences])


def scatter(both: pd.DataFrame, a: str, b: str, metric: Metric) -> alt.LayerChart:
    """A point per sample (columns sample, sequence, a, b), and the line of equal values.  The
    selection is named POINT and contains the sample's id."""
    top = float(max(both["a"].max(), both["b"].max())) * 1.05 or 1.0
    scale = alt.Scale(domain=[0, top], nice=False)
    pick = alt.selection_point(name=POINT, fields=["sample"], on="click", empty=False)
    ends: Any = alt.Chart(pd.DataFrame({"a": [0.0, top], "b": [0.0, top]}))
    points: Any = alt.Chart(_thinned(both, MOST_POINTS)).mark_circle(
        size=70, color=STAGE_COLOURS["load"], cursor="pointer"
    )
    layers = [
        ends.mark_line(strokeDash=[5, 4], color=NEUTRAL).encode(x="b:Q", y="a:Q"),
        points.encode(
            x=alt.X("b:Q", title=in_lines(f"{b}: {metric.title}"), scale=scale),
            y=alt.Y("a:Q", title=in_lines(f"{a}: {metric.title}"), scale=scale),
            opacity=alt.condition(pick, alt.value(1.0), alt.value(0.55)),
            tooltip=_tips({"sample:N": "Sample", "sequence:N": "Sequence", "a:Q": a, "b:Q": b}),
        ).add_params(pick),
    ]
    return alt.LayerChart(layer=layers, height=420)


def scatter_words(both: pd.DataFrame, a: str, b: str, metric: Metric) -> str:
    above = int((both["a"] > both["b"]).sum())
    thin = f" ({MOST_POINTS:,} drawn, thinned evenly)" if len(both) > MOST_POINTS else ""
    return (
        f"{metric.title} of {count(len(both), 'sample')}{thin}: {a} vertical, {b} horizontal. "
        f"Above the line, where {a} has the larger value: {above:,}."
    )


Step = tuple[str, float]  # a name and milliseconds: a total, or what a part adds
_STAGE_OF_PART = {  # where the name of a part is not that of its stage
    "loading": "load",
    "load+preprocess": "load",
    "preprocessing": "preprocess",
    "prefill": "decode.prefill",
    **dict.fromkeys(("number of tokens", "fewer tokens", "time per token"), "decode.steps"),
    **dict.fromkeys(("prefill + vision", "vision + decode", "prefill + decode"), "decode"),
    "decode outside its steps": "decode",
    FROM_CACHE: "vision",
    REST_OF_RUN: UNACCOUNTED,
}


def split_steps(split: Split) -> list[Step]:
    """From the total of a to that of b."""
    parts = ((part.name, part.ms) for part in split.parts)
    return [(split.a, split.a_ms), *parts, (split.b, split.b_ms)]


def waterfall(steps: Sequence[Step]) -> alt.LayerChart:
    """From the first total down or up to the last one, each part in the colour of its stage.  The
    values are labels of an axis on the right: there they are not cut off on a phone."""
    table, names = pd.DataFrame(falls(steps)), [name for name, _ in steps]
    x = alt.X("start:Q", title="time (ms)")
    bars: Any = alt.Chart(table).mark_bar(height=18)
    # The expression contains numbers only, no words of users.
    words = f"{json.dumps(table['words'].tolist())}[datum.value]"
    values = alt.Axis(orient="right", ticks=False, domain=False, labelExpr=words)
    points: Any = alt.Chart(table).mark_point(opacity=0)
    layers = [
        bars.encode(
            y=_rows("name", names),
            x=x,
            x2="end:Q",
            color=_colour("stage", {**STAGE_COLOURS, **DECODE_COLOURS, "total": NEUTRAL}),
            tooltip=_tips({"name:N": "Part", "ms:Q": "ms"}),
        ),
        points.encode(y=alt.Y("place:O", title=None, axis=values)),
    ]
    chart = alt.LayerChart(layer=layers, height=_height(names))
    drawn: alt.LayerChart = chart.resolve_scale(y="independent")
    return drawn


def falls(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """A line per bar of a waterfall; each part begins where the last one ended."""
    lines, level = [], 0.0
    for place, (name, length) in enumerate(steps):
        whole = place in (0, len(steps) - 1)
        start = 0.0 if whole else level
        level = start + length
        part = name.split(",")[0].removeprefix("decode: ")
        stage = "total" if whole else _STAGE_OF_PART.get(part, part)
        sign = "−" if length < 0 and ms(-length) != ms(0.0) else "+"
        words = ms(length) if whole else f"{sign}{ms(abs(length))}"
        lines.append({"name": name, "stage": stage, "start": start, "end": level, "ms": length,
                      "place": place, "words": words})  # fmt: skip
    return lines


def waterfall_words(steps: Sequence[Step]) -> str:
    first, *parts, last = [f"{line['name']}, {line['words']}" for line in falls(steps)]
    return f"From {first}, to {last}: {'; '.join(parts)}."


def timeline(answers: Sequence[Answer]) -> alt.LayerChart:
    """Stages as bars and new tokens as ticks, in ms since the start."""
    labels = [answer["label"] for answer in answers]
    stages = pd.DataFrame([line for answer in answers for line in stage_lines(answer)])
    tokens = list[dict[str, Any]]()
    for answer in answers:
        times = [*map(float, answer["token_ms"])]
        gaps = [None, *(later - before for before, later in pairwise(times))]
        for position, (at, between) in enumerate(zip(times, gaps, strict=False), start=1):
            line = {"label": answer["label"], "token": position, "ms": at, "gap": between}
            tokens.append(line)
    bars: Any = alt.Chart(stages).mark_bar(height=24, opacity=0.8)
    ticks: Any = alt.Chart(pd.DataFrame(tokens)).mark_tick(thickness=1.5, height=34, color=NEUTRAL)
    y, gap = _rows("label", labels), "Since the previous token (ms)"
    names = [*STAGES, *[SERVER] * (SERVER in set(stages["stage"]))]
    colours = {name: {**STAGE_COLOURS, **SERVER_COLOURS}[name] for name in names}
    layers = [
        bars.encode(
            y=y,
            x=alt.X("start:Q", title="time since the start of the run (ms)"),
            x2="end:Q",
            color=_colour("stage", colours, _below(len(colours))),
            tooltip=_tips({"stage:N": "Stage", "ms:Q": "ms", "source:N": "Source"}),
        ),
        ticks.encode(
            y=y, x="ms:Q", tooltip=_tips({"token:Q": "New token", "ms:Q": "At (ms)", "gap:Q": gap})
        ),
    ]
    return alt.LayerChart(layer=layers, height=_height(labels, 52) + _LEGEND)


def stage_lines(answer: Answer) -> Iterator[dict[str, Any]]:
    """A line per timed stage; without a known start it begins at the end of the one before."""
    end = 0.0
    for name in (*STAGES, SERVER):
        length = answer[f"{name}_ms"]
        if length == length:
            start = answer["starts"].get(name, end)
            end = start + length
            line = {"label": answer["label"], "stage": name, "start": start, "end": end}
            yield line | {"ms": length, "source": answer[f"{name}_source"]}


def timeline_words(answers: Sequence[Answer]) -> str:
    sentences = ["Timeline of stages and tokens."]
    for answer in answers:
        parts = ", ".join(f"{line['stage']} {ms(line['ms'])}" for line in stage_lines(answer))
        sentences.append(
            f"{answer['label']}: {parts}; {tokens_told(answer['new_tokens'])}, the first after "
            f"{ms(answer['ttft_ms'])}, the last after {ms(answer['total_ms'])}."
        )
    return " ".join(sentences)


def intervals(
    rows: Sequence[Mapping[str, Any]],
    title: str | list[str],
    tips: Mapping[str, str],
    *,
    marks: Sequence[Mapping[str, Any]] = (),
    mark_colour: str = LIMIT,
    equal: float | None = None,
    limits: Mapping[float, str] | None = None,
    scale: alt.Scale | None = None,
    axis: alt.Axis | None = None,
) -> alt.LayerChart:
    """A dot per row on its interval.  rows: name, value, low, high, colour (#RRGGBB), and the
    fields of `tips`.  A head of a group has a name only.  marks: name and `at`, a tick in the row
    of this name.  equal: a line over all rows; limits: dashed lines with a name above each."""
    names = list(dict.fromkeys(row["name"] for row in rows))
    empty = dict.fromkeys(("value", "low", "high", "colour"))
    table = pd.DataFrame([{**empty, **row} for row in rows])
    scale = scale or alt.Scale(zero=False, padding=16)
    x = alt.X("value:Q", title=title, scale=scale, axis=axis or alt.Undefined)
    base: Any = alt.Chart(table).encode(y=_rows("name", names), tooltip=_tips(tips))
    colour, fill = alt.Color("colour:N", scale=None), alt.Fill("colour:N", scale=None)
    layers = [*_equal(equal)]
    if marks:
        ticks: Any = alt.Chart(pd.DataFrame(list(marks)))
        ticks = ticks.mark_tick(color=mark_colour, thickness=3, height=20)
        layers.append(ticks.encode(y=_rows("name", names), x="at:Q"))
    layers += [
        base.mark_rule(strokeWidth=4, opacity=0.5).encode(x="low:Q", x2="high:Q", color=colour),
        base.mark_point(size=90, opacity=1, strokeWidth=2).encode(x=x, stroke=colour, fill=fill),
    ]
    chart = alt.LayerChart(layer=layers, height=_height(names, 28) + (2 * _LINE if limits else 0))
    if not limits:
        return chart
    texts = [f"datum.value == {at!r} ? {json.dumps(name)} : " for at, name in limits.items()]
    rules: Any = alt.Chart(pd.DataFrame({"at": list(limits)}))
    above = alt.Axis(
        values=list(limits),
        labelExpr="".join([*texts, "''"]),
        labelAlign="right",  # over the names of rows, where a phone has room
        orient="top",
        title=None,
        ticks=False,
        domain=False,
        grid=False,
    )
    lines = rules.mark_rule(strokeDash=[6, 4], strokeWidth=2, color=LIMIT)
    both = [chart, lines.encode(x=alt.X("at:Q", axis=above))]
    drawn: alt.LayerChart = alt.LayerChart(layer=both).resolve_axis(x="independent")
    return drawn


def _equal(at: float | None, channel: str = "x") -> Iterator[Any]:
    if at is not None:
        rule: Any = alt.Chart(pd.DataFrame([{"equal": at}])).mark_rule(color=NEUTRAL)
        yield rule.encode(**{channel: "equal:Q"})


def curves(
    lines: Sequence[Mapping[str, Any]],
    x: str,
    y: str,
    colours: Mapping[str, str],
    marked: Mapping[str, float] | None = None,
) -> alt.LayerChart:
    """A line per name over `at`, with its interval as a band.  lines: name, at, value, low, high
    (both None without an interval).  Values are shares, unless there are values that are `marked`
    by a line."""
    table = pd.DataFrame(list(lines))
    scale = alt.Undefined if marked else alt.Scale(domain=[0, 1])
    legend, names = _below(3), alt.Scale(domain=list(colours))
    dashes = alt.Scale(domain=list(colours), range=[*DASHES])
    dash = alt.StrokeDash("name:N", scale=dashes, legend=None)
    across = alt.X("at:Q", title=x, scale=alt.Scale(nice=False, zero=False))
    base: Any = alt.Chart(table).encode(x=across, color=_colour("name", colours, legend))
    value = alt.Y("value:Q", title=y, scale=scale)
    ends = {"low:Q": "95 % interval from", "high:Q": "to"}
    layers = [
        *(line for channel, at in (marked or {}).items() for line in _equal(at, channel)),
        base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", scale=scale), y2="high:Q"),
        base.mark_line(strokeWidth=2).encode(y=value, strokeDash=dash),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            y=value,
            shape=alt.Shape("name:N", scale=names, legend=legend),
            tooltip=_tips({"name:N": " ", "at:Q": x, "value:Q": y, **ends}),
        ),
    ]
    return alt.LayerChart(layer=layers, height=330 + _LEGEND)


def event_rates(rates: EventRates, window: Window | None) -> alt.Chart:
    """A bar per bin of a recording, coloured if it overlaps the window; without one, all are."""
    unit, length = rates.unit
    scale = alt.Scale(domain=[0, (rates.duration_us + 1) / length], nice=False)
    # Numbers such as 500k; the format of an axis alone writes 0.5M beside 1M.
    axis = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=3)
    edges = [index * rates.bin_us / length for index in range(len(rates.counts) + 1)]
    table = pd.DataFrame({"begin": edges[:-1], "end": edges[1:], "rate": rates.per_second})
    begin, end = (window.start_us / length, window.end_us / length) if window else (0, edges[-1])
    table["in_window"] = (table["end"] > begin) & (table["begin"] < end)
    bars: alt.Chart = alt.Chart(table, height=170).mark_rect()
    return bars.encode(
        alt.X("begin:Q", title=f"Time after the first event ({unit})", scale=scale),
        alt.X2("end"),
        alt.Y("rate:Q", title="Events per s", axis=axis),
        alt.Y2(datum=0),
        color=alt.condition("datum.in_window", alt.value(EVENTS), alt.value(NEUTRAL)),
    )


def event_rates_words(rates: EventRates, window: Window | None) -> str:
    most = int(rates.counts.argmax())
    at = time_text(round(most * rates.bin_us / 1000) * 1000)
    part = f"the window {window} is marked" if window else "no window is chosen"
    return (
        f"Events per second over the {rates.lasts} of the recording: at most "
        f"{rates.per_second[most]:,.0f}, from {at} on; {part}. The slider below chooses one."
    )


def moments(found: Sequence[MomentLoss]) -> alt.Chart:
    """A bar per frame or event image in the order of time; two if it was also emptied."""
    known = {"replaced": HEAT_COLOURS["carries"], "emptied": NEUTRAL}
    used = {one.how for one in found}
    colours = {wording.HOW[how]: tone for how, tone in known.items() if how in used}
    rows = [
        {"label": one.label, "how": wording.HOW[one.how], "nats": one.nats,
         "words": nats_text(one.nats)}
        for one in found
    ]  # fmt: skip
    order = list(dict.fromkeys(one.label for one in found))
    # The numbers alone: a whole label of the last bar is cut off in a narrow chart.
    across = alt.Axis(labelExpr="peek(split(datum.label, ' '))", labelAngle=0, labelOverlap=True)
    bars: alt.Chart = alt.Chart(pd.DataFrame(rows), height=210).mark_bar()
    return bars.encode(
        x=alt.X("label:N", sort=order, title=order[0].rpartition(" ")[0], axis=across),
        xOffset=alt.XOffset("how:N", sort=list(colours)),
        y=alt.Y("nats:Q", title="nats"),
        color=_colour("how", colours, _below(2) if len(colours) > 1 else None),
        tooltip=_tips({"label:N": "Part", "how:N": "Removal", "words:N": "Loss"}),
    )


def moments_words(found: Sequence[MomentLoss]) -> str:
    parts = "; ".join(map(wording.moment, found))
    return f"Loss of the words' log-probability by frame or event image: {parts}."


def choices(found: Sequence[ChoiceAccuracy], families: Mapping[str, str]) -> alt.LayerChart:
    """Accuracies of multiple-choice questions with marks of chance, by task."""
    rows = choice_rows(found, families)
    return intervals(
        rows,
        "accuracy (share of questions) with 95 % interval; upright mark: chance",
        {"label:N": "Model", "task:N": "Task", "words:N": "Accuracy", "n:N": "Questions"},
        marks=[{"name": row["name"], "at": row["chance"]} for row in rows if row.get("chance")],
        mark_colour=NEUTRAL,
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(format="%"),
    )  # fmt: skip


def choice_rows(
    found: Sequence[ChoiceAccuracy], families: Mapping[str, str]
) -> list[dict[str, Any]]:
    """From top to bottom: a task's name, its figures."""
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(one.task for one in found):
        task = name or ALL_WORDS
        rows.append({"name": f"{_GROUP}{task}"})
        for own in found:
            if own.task == name and own.accuracy is not None:
                share = own.accuracy
                rows.append({
                    "name": f"{task}{_GROUP}{own.label}", "label": own.label, "task": task,
                    "value": share.share, "low": share.low, "high": share.high,
                    "chance": own.chance, "colour": family_colour(families.get(own.label, "")),
                    "words": percent(share.share, share.ends), "n": f"{share.n:,}",
                })  # fmt: skip
    return rows


def choice_words(found: Sequence[ChoiceAccuracy]) -> str:
    said = [
        f"{one.label}, {one.task or ALL_WORDS.lower()}: "
        f"{percent(one.accuracy.share, one.accuracy.ends)} of {count(one.questions, 'question')}, "
        f"chance {percent(one.chance)}."
        for one in found
        if one.accuracy is not None
    ]
    return " ".join(["Accuracy with 95 % intervals.", *said])

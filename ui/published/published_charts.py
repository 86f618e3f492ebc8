"""Charts of recorded files: the parts of a difference, acceptance against chance, claims."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from engine.analysis.acceptance import Acceptance, Range
from engine.palette import NEUTRAL, STAGE_COLOURS
from engine.published.claims.headlines import Headline
from engine.published.claims.published_report import range_percent, range_times
from engine.published.claims.waterfall import Waterfall
from engine.quoting import times
from engine.report import charts
from engine.report.blocks import ChartBlock

_DECODING = {"fewer tokens": "decode: number of tokens", "time per token": "decode: time per token",
             "prefill": "decode: prefill"}  # fmt: skip
_TICKS = (0.5, 1, 2, 3, 5, 10, 30, 100, 300, 1000)
PREDICTED, CEILING = "predicted", "if all are accepted"


def difference(fall: Waterfall) -> ChartBlock:
    """A waterfall from the slow total to the fast one."""
    parts = [(_DECODING.get(name, name), -ms) for name, ms in fall.parts.items()]
    steps = [(fall.slow, fall.slow_ms), *parts, (fall.fast, fall.fast_ms)]
    return ChartBlock(charts.waterfall_words(steps), lambda: charts.waterfall(steps))


def _ends(found: Range, unit: float = 1) -> dict[str, float]:
    """Without an interval both ends are the value, so only a dot is drawn."""
    low, high = found.interval or (found.value, found.value)
    return {"value": unit * found.value, "low": unit * low, "high": unit * high}


def matching(found: Acceptance) -> list[ChartBlock]:
    """True and shuffled pairs: percent of ids that match by position, with intervals."""
    pairs = (
        ("true pairs", found.rate, STAGE_COLOURS["decode"]),
        ("shuffled pairs", found.shuffled, NEUTRAL),
    )
    rows = [
        {"name": name, "words": range_percent(one), "colour": colour, **_ends(one, 100)}
        for name, one, colour in pairs
        if one is not None
    ]
    top = max([1.0, *(1.1 * float(str(row["high"])) for row in rows)])
    words = " ".join(f"{row['name']}: {row['words']}." for row in rows)
    tips = {"name:N": "Pairs", "words:N": "Matching (95 %)"}
    scale, title = alt.Scale(domain=[0, top], nice=False), "ids that match by position (%)"
    chart = ChartBlock(
        f"Ids that match by position. {words}",
        lambda: charts.intervals(rows, title, tips, scale=scale),
    )
    return [chart] if rows else []


def claim(headline: Headline, corrected: bool) -> list[ChartBlock]:
    """Ratios on a log scale, with lines at the claimed ratio and at 1 (equally fast).  A row per
    file with both times has the interval of the median over clips."""
    rows: list[dict[str, Any]] = []
    for one in headline.evidence:
        ratio, span = one.ratio(corrected), one.paired
        if ratio is not None and ratio > 0 and not one.doubted:
            low, high = (span.low, span.high) if span else (ratio, ratio)
            row = {"name": one.file, "other": one.other, "value": ratio, "low": low, "high": high}
            rows.append(row | {"colour": STAGE_COLOURS["load"]})
    if not rows:
        return []
    low = 0.9 * min(0.5, *(min(row["value"], row["low"]) for row in rows))
    high = 1.3 * max(headline.stated, *(max(row["value"], row["high"]) for row in rows))
    ticks = [tick for tick in _TICKS if low <= tick <= high]
    told = (f"{row['name']}: {times(row['value'])} against {row['other']}." for row in rows)
    return [
        ChartBlock(
            " ".join([f"{headline.claim}.", headline.verdict, *told]),
            lambda: charts.intervals(
                rows,
                ["other model's time / EventGPT's", "(log scale; grey line: equally fast)"],
                {"name:N": "File", "other:N": "Against", "value:Q": "Ratio of means"},
                equal=1.0,
                limits={headline.stated: f"claimed: {headline.stated:g}x"},
                scale=alt.Scale(type="log", domain=[low, high], nice=False),
                axis=alt.Axis(values=ticks[:: 1 + len(ticks) // 9]),  # at most 8
            ),
        )
    ]


def speedups(found: Sequence[Acceptance], chosen: int) -> list[ChartBlock]:
    """Predicted speed-up and ceiling by draft length; lines at the chosen one and at 1x."""
    timed = [(one, one.speedup) for one in found if one.speedup is not None]
    rows: list[dict[str, Any]] = [
        {"name": PREDICTED, "at": one.gamma, **_ends(speedup)} for one, speedup in timed
    ]
    for one, _ in timed:
        ceiling = {"name": CEILING, "at": one.gamma, "value": one.ceiling}
        rows.append(ceiling | {"low": None, "high": None})
    colours = {PREDICTED: STAGE_COLOURS["decode"], CEILING: NEUTRAL}
    y, lines = "speed-up against the target alone (x)", {"x": float(chosen), "y": 1.0}
    told = (f"g {one.gamma}: {range_times(one.speedup)}, ceiling {times(one.ceiling)}."
            for one, _ in timed)  # fmt: skip
    start = "Predicted speed-up over the draft length; under 1x is slower."
    chart = ChartBlock(
        " ".join([start, *told]),
        lambda: charts.curves(rows, "draft length g (tokens)", y, colours, lines),
    )
    return [chart] if timed else []

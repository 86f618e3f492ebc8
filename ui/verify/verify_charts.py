"""Charts of a verification: times of the stages by kind of run, and ratios with their bound."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from engine.palette import NEUTRAL, STAGE_COLOURS, UNACCOUNTED
from engine.quoting import count, ms
from engine.report import charts
from engine.report.blocks import ChartBlock
from engine.types import STAGES

PARTS = (*STAGES, UNACCOUNTED, "total")
Kinds = Mapping[str, Mapping[str, Any]]  # kind of run -> part -> spread; and its first run


def times(kinds: Kinds, kind: str, part: str) -> str:
    spread, first = kinds[kind].get(part), kinds[kind].get("first_run_ms", {}).get(part)
    if not spread:
        return "not measured"
    alone = "" if first is None else f"; first run {ms(first)}"
    return f"{ms(spread['median'])}, MAD {ms(spread['mad'])}, n = {len(spread['values'])}{alone}"


def stage_chart(kinds: Kinds, part: str) -> ChartBlock | None:
    """Dots are warm runs, hollow diamonds the first runs; None if no kind measured the part."""
    measured = [kind for kind in kinds if kinds[kind].get(part)]
    firsts = {kind: kinds[kind].get("first_run_ms", {}).get(part) for kind in measured}
    rows = [
        (kind, f"warm run {number}", value)
        for kind in measured
        for number, value in enumerate(kinds[kind][part]["values"], 1)
    ]
    apart = [(kind, "first run", value) for kind, value in firsts.items() if value is not None]
    names = ["label", "sample", "value"]
    lines, diamonds = (pd.DataFrame(table, columns=names) for table in (rows, apart))
    colours = dict.fromkeys(measured, STAGE_COLOURS.get(part, NEUTRAL))
    words = f"{part}: " + "; ".join(f"{kind} {times(kinds, kind, part)}" for kind in measured) + "."
    draw = lambda: charts.distribution(lines, colours, f"{part} (ms)", diamonds)  # noqa: E731
    return ChartBlock(words, draw) if measured else None


def ratio_charts(
    values: Sequence[float], interval: Mapping[str, Any], edges: Sequence[float], title: str
) -> tuple[ChartBlock, ChartBlock]:
    """A dot per pair, and the interval of the median against the bound, the dashed lines."""
    pairs, colour = count(len(values), "pair"), STAGE_COLOURS["vision"]
    middle, low, high = (float(interval[name]) for name in ("median", "low", "high"))
    words = (
        f"{title}: {pairs} from {min(values):.3f} to {max(values):.3f}, median {middle:.4f}, 95 % "
        f"interval {low:.4f} to {high:.4f}, bound {' and '.join(f'{at:.3g}' for at in edges)}."
    )

    def dots() -> alt.LayerChart:
        names = [f"pair {number}" for number in range(1, len(values) + 1)]
        lines = pd.DataFrame({"label": pairs, "value": values, "sample": names})
        return charts.distribution(lines, {pairs: colour}, title, equal=1.0)

    def bound() -> alt.LayerChart:
        row = {"name": "median, 95 %", "value": middle, "low": low, "high": high, "colour": colour}
        tips = {"value:Q": "Median", "low:Q": "95 %, from", "high:Q": "to"}
        limits = {edge: f"bound {edge:.4g}" for edge in edges}
        return charts.intervals([row], title, tips, equal=1.0, limits=limits)

    return ChartBlock(words, dots), ChartBlock(words, bound)

"""Charts of a verification: distributions of stage times, and ratios with their bound.

Boundary: figures of the evidence in, Altair charts and their text out; no streamlit.  Only the
ratio of a pair is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from engine.types import STAGES
from ui.charts import chart_theme  # noqa: F401 - registers the theme
from ui.widgets.text import count, ms
from ui.widgets.theme import STAGE_COLOURS, UNACCOUNTED

TOTAL = "total"
PARTS = (*STAGES, UNACCOUNTED, TOTAL)
KINDS = {
    "computed": "decoupled, stage 3 computed",
    "cached": "decoupled, stage 3 from the cache",
    "hooked": "hooked",
}
_GREY = "#868D97"
_BOUND = "#C8453B"
_INTERVAL = "median, 95 %"
_ROW = 34  # pixels of a kind of run
_AROUND = 50  # of the axis


@dataclass(frozen=True)
class Times:
    """Times of one stage in one kind of run, in ms: warm runs and the first run."""

    kind: str
    warm: tuple[float, ...]
    median: float
    mad: float
    first: float | None


def times(kinds: Mapping[str, Any], part: str) -> list[Times]:
    """One stage's times in each kind of run that measured it, in the order of KINDS."""
    found = []
    for kind in dict.fromkeys((*KINDS, *kinds)):
        spread = kinds.get(kind, {}).get(part)
        if spread is None:
            continue
        warm = tuple(float(value) for value in spread["values"])
        first = kinds[kind].get("first_run_ms", {}).get(part)
        median, mad = float(spread["median"]), float(spread["mad"])
        found.append(Times(kind, warm, median, mad, None if first is None else float(first)))
    return found


def stage_cells(kinds: Mapping[str, Any]) -> list[list[str]]:
    """One row per stage: its name, then median, MAD, n and first run for each kind."""
    rows = []
    for part in PARTS:
        by_kind = {spread.kind: spread for spread in times(kinds, part)}
        rows.append([part, *(_cell(by_kind.get(kind)) for kind in kinds)])
    return rows


def _cell(spread: Times | None) -> str:
    if spread is None:
        return "not measured"
    first = "" if spread.first is None else f"; first run {ms(spread.first)}"
    return f"{ms(spread.median)}, MAD {ms(spread.mad)}, n = {len(spread.warm)}{first}"


def stage_chart(part: str, found: Sequence[Times]) -> alt.LayerChart:
    """Dots are warm runs, the line their median, the hollow diamond the first run."""
    frame = pd.DataFrame(
        {"kind": spread.kind, "ms": value, "run": name}
        for spread in found
        for name, value in _runs(spread)
    )
    y = alt.Y("kind:N", sort=[spread.kind for spread in found], title=None)
    x = alt.X(
        "ms:Q",
        title=f"{part} (ms)",
        scale=alt.Scale(zero=False, padding=8),
    )
    colour = STAGE_COLOURS.get(part, _GREY)
    tip = [alt.Tooltip("run:N", title="Run"), alt.Tooltip("ms:Q", title="ms", format=",.3f")]
    base: alt.Chart = alt.Chart().encode(y=y, x=x, tooltip=tip)
    layers = [
        base.mark_tick(thickness=3, size=24, color=colour, opacity=0.9).transform_filter(
            "datum.run == 'median'"
        ),
        base.mark_point(filled=True, size=55, color=colour, opacity=0.65).transform_filter(
            "datum.run != 'median' && datum.run != 'first run'"
        ),
        base.mark_point(shape="diamond", size=90, color=colour, strokeWidth=2).transform_filter(
            "datum.run == 'first run'"
        ),
    ]
    height = _ROW * len(found) + _AROUND
    return alt.LayerChart(data=frame, layer=layers, height=height)


def _runs(spread: Times) -> list[tuple[str, float]]:
    warm = [(f"warm run {index}", value) for index, value in enumerate(spread.warm, 1)]
    first = [] if spread.first is None else [("first run", spread.first)]
    return [("median", spread.median), *warm, *first]


def stage_words(part: str, found: Sequence[Times]) -> str:
    """The chart as text."""
    return f"{part}: " + "; ".join(f"{spread.kind} {_cell(spread)}" for spread in found) + "."


@dataclass(frozen=True)
class Ratios:
    """Paired ratios, the interval of their median, and the allowed difference from 1."""

    values: tuple[float, ...]
    median: float
    low: float
    high: float
    bound: float
    both_sides: bool  # whether a ratio may also be too small
    title: str

    @property
    def edges(self) -> tuple[float, ...]:
        return (1 - self.bound, 1 + self.bound) if self.both_sides else (1 + self.bound,)

    @property
    def words(self) -> str:
        edges = " and ".join(f"{edge:.3g}" for edge in self.edges)
        return (
            f"{self.title}: {len(self.values)} pairs from {min(self.values):.3f} to "
            f"{max(self.values):.3f}, median {self.median:.4f}, 95 % interval {self.low:.4f} to "
            f"{self.high:.4f}, bound {edges}."
        )


def pairs_chart(ratios: Ratios, colour: str) -> alt.LayerChart:
    """A tick per pair; the grey line is equal times."""
    row = count(len(ratios.values), "pair")
    frame = pd.DataFrame(
        {"row": row, "ratio": value, "pair": index} for index, value in enumerate(ratios.values, 1)
    )
    tip = [alt.Tooltip("pair:O", title="Pair"), alt.Tooltip("ratio:Q", format=".4f")]
    ticks: Any = alt.Chart(frame).mark_tick(thickness=2, size=22, color=colour, opacity=0.6)
    layers = [
        _equal(ratios),
        ticks.encode(y=alt.Y("row:N", title=None), x=_axis("ratio:Q", ratios), tooltip=tip),
    ]
    return alt.LayerChart(layer=layers, height=_ROW + _AROUND + 10)


def interval_chart(ratios: Ratios, colour: str) -> alt.LayerChart:
    """The median and its interval against the bound, the dashed line."""
    rows = [_INTERVAL, "bound"]
    y = alt.Y("row:N", sort=rows, title=None)
    found = {"row": _INTERVAL, "low": ratios.low, "high": ratios.high, "ratio": ratios.median}
    frame = pd.DataFrame([found])
    tip = [alt.Tooltip(f"{name}:Q", format=".4f") for name in ("ratio", "low", "high")]
    bar: Any = alt.Chart(frame).mark_bar(height=9, color=colour, opacity=0.55)
    middle: Any = alt.Chart(frame).mark_point(filled=True, size=75, color=colour, opacity=1)
    layers = [
        _equal(ratios),
        bar.encode(y=y, x=_axis("low:Q", ratios), x2="high:Q", tooltip=tip),
        middle.encode(y=y, x=_axis("ratio:Q", ratios), tooltip=tip),
        *_bounds(ratios, y),
    ]
    return alt.LayerChart(layer=layers, height=2 * _ROW + _AROUND + 10)


def _axis(field: str, ratios: Ratios) -> alt.X:
    scale = alt.Scale(zero=False, padding=16)
    return alt.X(field, title=ratios.title, scale=scale)


def _equal(ratios: Ratios) -> Any:
    rule: Any = alt.Chart(pd.DataFrame([{"ratio": 1.0}])).mark_rule(color=_GREY)
    return rule.encode(x=_axis("ratio:Q", ratios))


def _bounds(ratios: Ratios, y: alt.Y) -> list[Any]:
    edges = [{"ratio": edge, "row": "bound", "name": f"{edge:.4g}"} for edge in ratios.edges]
    base: Any = alt.Chart(pd.DataFrame(edges)).encode(x=_axis("ratio:Q", ratios))
    return [
        base.mark_rule(color=_BOUND, strokeDash=[6, 4], strokeWidth=2),
        base.mark_text(color=_BOUND, align="left", dx=5, fontSize=12).encode(y=y, text="name:N"),
    ]

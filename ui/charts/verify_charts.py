"""Charts of a verification: times of the stages by kind of run, and ratios with their bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from engine.palette import NEUTRAL, STAGE_COLOURS, UNACCOUNTED
from engine.quoting import count, ms
from engine.report import charts
from engine.types import STAGES

PARTS = (*STAGES, UNACCOUNTED, "total")
KINDS = {
    "computed": "decoupled, stage 3 computed",
    "cached": "decoupled, stage 3 from the cache",
    "hooked": "hooked",
}


@dataclass(frozen=True)
class Times:
    """Times of one stage in one kind of run, in ms: warm runs and the first run."""

    kind: str
    warm: tuple[float, ...]
    median: float
    mad: float
    first: float | None

    def __str__(self) -> str:
        first = "" if self.first is None else f"; first run {ms(self.first)}"
        return f"{ms(self.median)}, MAD {ms(self.mad)}, n = {len(self.warm)}{first}"


def times(kinds: Mapping[str, Any], part: str) -> list[Times]:
    """One stage's times in each kind of run that measured it, in the order of KINDS."""
    found = []
    for kind in dict.fromkeys((*KINDS, *kinds)):
        if spread := kinds.get(kind, {}).get(part):
            first = kinds[kind].get("first_run_ms", {}).get(part)
            warm = tuple(map(float, spread["values"]))
            found.append(Times(kind, warm, spread["median"], spread["mad"], first))
    return found


def stage_cells(kinds: Mapping[str, Any]) -> list[list[str]]:
    """One row per stage: its name, then median, MAD, n and first run for each kind."""
    rows = []
    for part in PARTS:
        by_kind = {spread.kind: str(spread) for spread in times(kinds, part)}
        rows.append([part, *(by_kind.get(kind, "not measured") for kind in kinds)])
    return rows


def stage_chart(part: str, found: Sequence[Times]) -> alt.LayerChart:
    """Dots are warm runs, hollow diamonds the first runs."""
    warm = [(one.kind, f"warm run {n}", at) for one in found for n, at in enumerate(one.warm, 1)]
    first = [(one.kind, "first run", one.first) for one in found if one.first is not None]
    lines, apart = (
        pd.DataFrame(rows, columns=["label", "sample", "value"]) for rows in (warm, first)
    )
    colours = dict.fromkeys((one.kind for one in found), STAGE_COLOURS.get(part, NEUTRAL))
    return charts.distribution(lines, colours, f"{part} (ms)", apart)


def stage_words(part: str, found: Sequence[Times]) -> str:
    return f"{part}: " + "; ".join(f"{spread.kind} {spread}" for spread in found) + "."


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
            f"{self.title}: {count(len(self.values), 'pair')} from {min(self.values):.3f} to "
            f"{max(self.values):.3f}, median {self.median:.4f}, 95 % interval {self.low:.4f} to "
            f"{self.high:.4f}, bound {edges}."
        )


def pairs_chart(ratios: Ratios, colour: str) -> alt.LayerChart:
    """A dot per pair; the grey line is equal times."""
    row = count(len(ratios.values), "pair")
    lines = pd.DataFrame({"label": row, "value": ratios.values})
    lines["sample"] = [f"pair {index}" for index in range(1, len(lines) + 1)]
    return charts.distribution(lines, {row: colour}, ratios.title, equal=1.0)


def interval_chart(ratios: Ratios, colour: str) -> alt.LayerChart:
    """The median and its interval against the bound, the dashed line."""
    row = {"name": "median, 95 %", "value": ratios.median, "low": ratios.low, "high": ratios.high}
    tips = {"value:Q": "Median", "low:Q": "95 %, from", "high:Q": "to"}
    limits = {edge: f"bound {edge:.4g}" for edge in ratios.edges}
    return charts.intervals(
        [row | {"colour": colour}], ratios.title, tips, equal=1.0, limits=limits
    )

"""Distributions: units, the first run apart, the bound drawn."""

from __future__ import annotations

from typing import Any

import pytest

from engine.palette import STAGE_COLOURS
from engine.report.charts import svg
from engine.types import STAGES
from tests.ui.verify.made import evidence
from ui.charts import verify_charts

KINDS: dict[str, Any] = evidence()["accounted"]["kinds"]
RATIOS = verify_charts.Ratios(
    (0.99, 1.0, 1.2), 1.0, 0.98, 1.05, 0.01, False, "with / without (ratio)"
)


def data(chart: Any) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_first_run_stays_apart_from_the_warm_ones() -> None:
    (one,) = verify_charts.times(KINDS, "vision")
    assert one.warm == (1.0, 2.0, 4.0) and one.first == 9.0 and one.median == 2.0
    rows = data(verify_charts.stage_chart("vision", [one]))
    runs = {row["sample"]: row["value"] for row in rows if "sample" in row}
    assert runs == {"warm run 1": 1, "warm run 2": 2, "warm run 3": 4, "first run": 9}
    assert next(row for row in rows if "median" in row)["high"] == 4


@pytest.mark.parametrize("part", verify_charts.PARTS)
def test_each_part_has_a_chart_with_units_its_colour_and_words(part: str) -> None:
    found = verify_charts.times(KINDS, part)
    spec = verify_charts.stage_chart(part, found).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["title"] == f"{part} (ms)"
    if part in STAGES:
        for layer in spec["layer"]:
            assert set(layer["encoding"]["color"]["scale"]["range"]) == {STAGE_COLOURS[part]}
    words = verify_charts.stage_words(part, found)
    assert part in words and "2.00 ms" in words and "n = 3" in words and "9.00 ms" in words


def test_a_stage_that_a_kind_did_not_measure_is_not_zero() -> None:
    kinds = {"computed": KINDS["computed"], "hooked": {"load": KINDS["computed"]["load"]}}
    rows = {row[0]: row[1:] for row in verify_charts.stage_cells(kinds)}
    assert rows["vision"][1] == "not measured" and "2.00 ms" in rows["load"][1]
    assert list(rows) == list(verify_charts.PARTS)


def test_the_bound_is_drawn_on_the_sides_that_count() -> None:
    assert RATIOS.edges == (1.01,)
    both = verify_charts.Ratios((1.0,), 1.0, 0.9, 1.1, 0.15, True, "ratio")
    assert both.edges == (0.85, 1.15)
    drawn = svg(verify_charts.interval_chart(both, "#11805A"))
    assert ">bound 0.85<" in drawn and ">bound 1.15<" in drawn


def test_every_pair_is_a_mark_and_the_axis_says_what_it_is() -> None:
    chart = verify_charts.pairs_chart(RATIOS, "#11805A")
    assert sorted(row["value"] for row in data(chart) if "sample" in row) == [0.99, 1.0, 1.2]
    assert {"equal": 1.0} in data(chart) and ">with / without (ratio)<" in svg(chart)
    assert "3 pairs" in RATIOS.words and "bound 1.01" in RATIOS.words

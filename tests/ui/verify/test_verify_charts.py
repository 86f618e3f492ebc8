"""Charts of a verification: units, the first run apart, the bound drawn."""

from __future__ import annotations

from typing import Any

import pytest

from engine.palette import STAGE_COLOURS
from engine.report.charts import svgs
from engine.types import STAGES
from tests.ui.verify.made import evidence
from ui.verify import verify_charts

pytestmark = pytest.mark.loads

KINDS: dict[str, Any] = evidence()["accounted"]["kinds"]
INTERVAL = {"median": 1.0, "low": 0.98, "high": 1.05}
DOTS, BOUND = verify_charts.ratio_charts(
    (0.99, 1.0, 1.2), INTERVAL, (0.85, 1.15), "with / without (ratio)"
)


def drawn(part: str) -> Any:
    block = verify_charts.stage_chart(KINDS, part)
    assert block is not None
    return block


def data(chart: Any) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def test_the_first_run_stays_apart_from_the_warm_ones() -> None:
    rows = data(drawn("vision").draw())
    runs = {row["sample"]: row["value"] for row in rows if "sample" in row}
    assert runs == {"warm run 1": 1, "warm run 2": 2, "warm run 3": 4, "first run": 9}
    box = next(row for row in rows if "median" in row)
    assert box["high"] == 4 and box["median"] == 2


@pytest.mark.parametrize("part", verify_charts.PARTS)
def test_each_part_has_a_chart_with_units_its_colour_and_words(part: str) -> None:
    spec = drawn(part).draw().to_dict()
    assert spec["layer"][0]["encoding"]["x"]["title"] == f"{part} (ms)"
    if part in STAGES:
        for layer in spec["layer"]:
            assert set(layer["encoding"]["color"]["scale"]["range"]) == {STAGE_COLOURS[part]}
    words = drawn(part).words
    assert part in words and "2.00 ms" in words and "n = 3" in words and "9.00 ms" in words


def test_a_stage_that_a_kind_did_not_measure_is_not_zero() -> None:
    kinds = {"computed": KINDS["computed"], "hooked": {"load": KINDS["computed"]["load"]}}
    assert verify_charts.times(kinds, "hooked", "vision") == "not measured"
    assert "2.00 ms" in verify_charts.times(kinds, "hooked", "load")
    assert verify_charts.stage_chart({"hooked": {}}, "vision") is None


def test_the_bound_is_drawn_on_the_sides_that_count() -> None:
    picture = svgs([BOUND.draw()])[0]  # type: ignore[arg-type]
    assert ">bound 0.85<" in picture and ">bound 1.15<" in picture


def test_every_pair_is_a_mark_and_the_axis_says_what_it_is() -> None:
    chart: Any = DOTS.draw()
    assert sorted(row["value"] for row in data(chart) if "sample" in row) == [0.99, 1.0, 1.2]
    assert {"equal": 1.0} in data(chart) and ">with / without (ratio)<" in svgs([chart])[0]
    assert "3 pairs" in DOTS.words and "bound 0.85 and 1.15" in DOTS.words

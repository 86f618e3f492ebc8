"""The chart of a gate: rows, marks of the margin, colours and words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import gate, gate_values
from engine.analysis.gate import GateReport
from engine.palette import family_colour
from tests import fabricate
from ui.charts import gate_chart

TONES = {"ev": "eventgpt", "vl": "video_llava"}


def rows(slow: float = 1.0, n: int = 8) -> list[dict[str, Any]]:
    """n sequences of two models; the second is `slow` times as long."""
    found = []
    for index in range(n):
        for model, factor in (("ev", 1.0), ("vl", slow)):
            length = 8.0 * (1 + 0.01 * index) * factor
            stages = {name: ms * factor for name, ms in fabricate.STAGES.items()}
            found.append(
                fabricate.row(model, f"s{index}", prefill=length, stages=stages,
                              gaps=[2.0 * factor] * 3)
            )  # fmt: skip
    return found


@pytest.fixture
def report(tmp_path: Path) -> GateReport:
    sides = [
        gate_values.values_of(fabricate.run(tmp_path / name, rows(slow), together="one"))
        for name, slow in (("base", 1.0), ("new", 1.3))
    ]
    return gate.gate(*sides, ("total", "new_tokens"), 0.05)


def test_a_row_per_model_and_metric_in_percent(report: GateReport) -> None:
    found = {row["name"]: row for row in gate_chart.rows(report, TONES)}
    assert list(found) == ["ev: total", "ev: new tokens", "vl: total", "vl: new tokens"]
    assert found["vl: total"]["value"] == pytest.approx(30.0)
    assert found["vl: total"]["low"] <= 30.001 and found["vl: total"]["verdict"] == "worse"
    assert found["ev: total"]["value"] == 0 and found["ev: total"]["verdict"] == "no worse"
    assert found["ev: total"]["limits"] == pytest.approx([5.0])
    assert found["ev: new tokens"]["limits"] == pytest.approx([-4.7619, 5.0], rel=1e-4)


def test_a_result_without_an_interval_has_a_dot_only(report: GateReport) -> None:
    none = replace(report.results[0], low=None, high=None)
    (row, *_) = gate_chart.rows(replace(report, results=(none,)), TONES)
    assert row["low"] is None and row["high"] is None and row["value"] == 0


def test_colours_axis_and_words(report: GateReport) -> None:
    text = str(gate_chart.chart(report, TONES).to_dict())
    assert family_colour("eventgpt") in text and family_colour("video_llava") in text
    assert gate_chart.PERCENT in text and "points)" not in text
    words = gate_chart.words(report)
    assert "Changes against a margin of 5 %." in words
    assert "vl: total +30.0 % (+30.0 to +30.0), worse." in words

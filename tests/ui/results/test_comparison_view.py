"""The command of the view, which run is BASE, and the chart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import gate
from engine.analysis.gate import AnswersCompared, GateReport
from engine.palette import family_colour
from engine.report import gate_text
from engine.storage.run_store import RunInfo
from tests import fabricate
from ui.results import comparison_view
from ui.results.result_sources import Source

pytestmark = pytest.mark.loads


def source(name: str, **more: Any) -> Source:
    given = {"state": "finished", "created": "2026-01-01T10:00:00+00:00", "models": ("ev",)} | more
    return Source(RunInfo(name, Path("/runs") / name, **given))


def test_the_command_has_only_what_differs_from_the_defaults() -> None:
    sides = source("a"), source("b")
    assert comparison_view.gate_command(sides, gate.DEFAULT, 0.05) == "python -m engine gate a b"
    told = comparison_view.gate_command(sides, ("total", "answers"), 0.025)
    assert told == "python -m engine gate a b --metric total,answers --margin 2.5%"


def test_base_is_the_pinned_run_or_the_older_one() -> None:
    old, new = source("b"), source("a", created="2026-01-02T10:00:00+00:00")
    assert comparison_view.base_and_new([new, old]) == (old, new)
    pinned = replace(new, baseline=True)
    assert comparison_view.base_and_new([pinned, old]) == (pinned, old)


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
        gate.values_of(fabricate.run(tmp_path / name, rows(slow), together="one"))
        for name, slow in (("base", 1.0), ("new", 1.3))
    ]
    return gate.gate(*sides, ("total", "new_tokens"), 0.05)


def test_a_row_per_model_and_metric_in_percent(report: GateReport) -> None:
    found = {row["name"]: row for row in gate_text.chart_rows(report)}
    assert list(found) == ["ev: total", "ev: new tokens", "vl: total", "vl: new tokens"]
    assert found["vl: total"]["value"] == pytest.approx(30.0)
    assert found["vl: total"]["low"] <= 30.001 and found["vl: total"]["verdict"] == "worse"
    assert found["ev: total"]["value"] == 0 and found["ev: total"]["verdict"] == "no worse"
    assert found["ev: total"]["limits"] == pytest.approx([5.0])
    assert found["ev: new tokens"]["limits"] == pytest.approx([-4.7619, 5.0], rel=1e-4)


def test_a_result_without_an_interval_has_a_dot_only(report: GateReport) -> None:
    none = replace(report.results[0], low=None, high=None)
    bare = replace(report, results=(none,))
    (row, *_) = gate_text.chart_rows(bare)
    assert row["low"] is None and row["high"] is None and row["value"] == 0
    said = [" ".join(map(str, gate_text.blocks(one, chart=True))) for one in (report, bare)]
    assert [text.count("95 % interval") for text in said] == [2, 0]  # the legend and a head


def test_colours_axis_and_words(report: GateReport) -> None:
    text = str(gate_text.draw(report).to_dict())
    assert family_colour("eventgpt") in text and family_colour("video_llava") in text
    assert gate_text.PERCENT in text and "points)" not in text
    words = gate_text.chart_words(report)
    assert "Changes against a margin of 5 %." in words
    assert "vl: total +30.0 % (+30.0 to +30.0), worse." in words


def test_nothing_compared_is_not_called_equal() -> None:
    (words,) = gate_text.answers_of(AnswersCompared("ev", 0, (), 0, (), ()))
    assert words == "ev: no answer was compared: no sample has token ids in both."

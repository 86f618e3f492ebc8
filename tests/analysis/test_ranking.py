"""Samples in the order in which they are worth a look."""

from __future__ import annotations

from pathlib import Path

from engine.analysis import ranking
from engine.analysis.results_table import frame
from tests import fabricate


def test_the_least_alike_first(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", "same", text="a car"),
        fabricate.row("vl", "same", text="A car!"),
        fabricate.row("ev", "other", text="a car"),
        fabricate.row("vl", "other", text="trees"),
        fabricate.row("ev", "alone"),
        fabricate.failed("vl", "alone"),
    ]
    found = ranking.by_disagreement(frame([fabricate.run(tmp_path / "r", rows)]))
    assert found[["sample", "overlap", "answers"]].values.tolist() == [
        ["other", 0.0, 2],
        ["same", 1.0, 2],
    ]


def test_the_greatest_ratio_first(tmp_path: Path) -> None:
    rows = [
        fabricate.row("ev", "s0", prefill=10),
        fabricate.row("vl", "s0", prefill=40),
        fabricate.row("ev", "s1", prefill=30),
        fabricate.row("vl", "s1", prefill=10),
    ]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    found = ranking.by_ratio(table, "ev", "vl", "prefill")
    assert found[["sample", "ratio"]].values.tolist() == [["s1", 3.0], ["s0", 0.25]]
    assert ranking.by_disagreement(table.iloc[:0]).empty

"""Answers of own runs in the form of published records."""

from __future__ import annotations

from engine.published.read import answer_pairs
from engine.published.read.file_summary import frame
from tests import fabricate


def test_any_two_models_of_a_run_can_be_compared() -> None:
    rows = fabricate.parsed([*fabricate.pair(3), fabricate.failed(sample="s9")])
    file = answer_pairs.from_rows(rows, "r", "ev", "vl")
    assert (file.draft, file.target) == ("ev", "vl") and len(file.records) == 6
    found = answer_pairs.acceptance(file)
    assert found and found.pairs == 3 and found.rate and found.cost_ratio
    other = answer_pairs.from_rows(rows, "r", "vl", "ev")
    turned = answer_pairs.acceptance(other)
    assert turned and turned.cost_ratio == 1 / found.cost_ratio


def test_times_of_rows_are_kept() -> None:
    (row,) = fabricate.parsed([fabricate.row()])
    found = frame(answer_pairs.from_rows([row], "r", "ev", "")).loc[0]
    assert found["total (ms)"] == row.total_ms
    assert found["decode (ms)"] == row.stages["decode"].ms

"""The figures of a report that no module of the analysis has by itself."""

from __future__ import annotations

from pathlib import Path

from engine.report.report_figures import Findings
from tests import fabricate


def test_cached_results_are_in_no_median_of_equal_lengths(tmp_path: Path) -> None:
    rows = [fabricate.row("ev", f"s{n}", gaps=[2.0] * 3) for n in range(2)]
    rows += [fabricate.row("ev", f"c{n}", gaps=[9.0] * 3, cached_ms=40.0) for n in range(3)]
    found, _ = Findings([fabricate.run(tmp_path / "r", rows)]).through_lenses
    assert [(row["n"], row["total_ms"]) for row in found] == [(2, 30.0)] * 2  # of natural and first

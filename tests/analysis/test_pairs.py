"""Paired comparisons: who is compared with whom, and when there is a conclusion."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.analysis import pairs, statistics
from engine.analysis.results_table import frame
from tests import fabricate


def table(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    return frame([fabricate.run(tmp_path / "r", rows)])


def test_a_clear_difference_is_decided(tmp_path: Path) -> None:
    lines = table(tmp_path, fabricate.pair(12))
    found = pairs.compare(lines, "ev", "vl", "total")
    assert found.verdict == "less" and (found.n, found.sequences) == (12, 12)
    assert found.ratio is not None and 0.4 < found.ratio.low <= found.ratio.high < 0.6
    assert found.difference is not None and found.difference.high < 0
    assert found.more_samples is None
    assert pairs.compare(lines, "vl", "ev", "total").verdict == "more"


def prefills(ev: Sequence[float], vl: Sequence[float]) -> list[dict[str, Any]]:
    """A sample per pair of prefill times, each of a sequence of its own."""
    return [
        fabricate.row(model, f"s{index}", prefill=float(ms))
        for index, both in enumerate(zip(ev, vl, strict=True))
        for model, ms in zip(("ev", "vl"), both, strict=True)
    ]


def test_no_difference_is_undecided_or_equal_and_never_a_conclusion(tmp_path: Path) -> None:
    times = np.random.default_rng(0).normal(20, 3, (30, 2)).T
    lines = table(tmp_path, prefills(*times))
    assert pairs.compare(lines, "ev", "vl", "prefill").verdict == "undecided"
    assert pairs.compare(lines, "ev", "vl", "new_tokens").verdict == "equal"


@pytest.mark.parametrize(
    ("higher", "lower", "verdict", "more"),
    [(10, 2, "more", None), (9, 3, "undecided", 8), (15, 5, "more", None),
     (6, 6, "undecided", None)],
)  # fmt: skip
def test_how_many_more_samples_decide(
    tmp_path: Path, higher: int, lower: int, verdict: str, more: int | None
) -> None:
    """ev takes twice vl's prefill in some sequences, half of it in the others.  Of twelve, at most
    two may lie on the other side; nine of twelve need so many more that a quarter may lie there."""
    rows = prefills([40] * higher + [10] * lower, [20] * (higher + lower))
    found = pairs.compare(table(tmp_path, rows), "ev", "vl", "prefill")
    assert (found.verdict, found.more_samples) == (verdict, more)


@pytest.mark.parametrize(("prefill", "verdict"), [(20.08, "undecided"), (20.2, "more")])
def test_an_end_printed_as_one_does_not_exclude_equality(
    tmp_path: Path, prefill: float, verdict: str
) -> None:
    """20.08 / 20 is 1.004, which a report prints as 1; 1.01 is printed as 1.01."""
    lines = table(tmp_path, prefills([prefill] * 8, [20] * 8))
    found = pairs.compare(lines, "ev", "vl", "prefill")
    assert found.ratio is not None and found.ratio.low > 1
    assert found.verdict == verdict and found.more_samples is None


def width(interval: statistics.Interval) -> float:
    return interval.high - interval.low


def test_dependent_clips_widen_the_interval(tmp_path: Path) -> None:
    centres = np.random.default_rng(1).normal(20, 4, 8)
    rows = prefills([centre + 0.01 * clip for centre in centres for clip in range(5)], [20.0] * 40)
    alone = table(tmp_path / "a", [row | {"sequence": ""} for row in rows])
    for index, row in enumerate(rows):
        row["sequence"] = f"q{index // 10}"  # five clips of two models
    together = pairs.compare(table(tmp_path / "b", rows), "ev", "vl", "prefill")
    apart = pairs.compare(alone, "ev", "vl", "prefill")
    assert together.ratio and apart.ratio and together.difference and apart.difference
    assert width(together.ratio) > 1.5 * width(apart.ratio)
    assert width(together.difference) > 1.5 * width(apart.difference)


def test_cached_totals_are_compared_with_nothing(tmp_path: Path) -> None:
    rows = [
        fabricate.row(model, f"s{i}", cached_ms=10.0) for model in ("ev", "vl") for i in range(8)
    ]
    lines = table(tmp_path, rows)
    assert pairs.compare(lines, "ev", "vl", "total").n == 0
    assert "no sample" in pairs.compare(lines, "ev", "vl", "vision").reason
    assert pairs.compare(lines, "ev", "vl", "tpot").n == 8


def test_a_model_without_results_has_no_conclusion(tmp_path: Path) -> None:
    lines = table(tmp_path, [fabricate.row("ev")])
    for model in ("ev", "nobody"):
        found = pairs.compare(lines, model, "gone", "total")
        assert found.verdict == "unknown" and found.n == 0

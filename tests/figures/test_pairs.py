"""Paired comparisons: who is compared with whom, and when there is a conclusion."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.figures import pairs
from engine.figures.frame import frame
from engine.figures.stats import Interval
from tests import fabricate


def table(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    return frame([fabricate.run(tmp_path / "r", rows)])


def test_a_clear_difference_is_decided(tmp_path: Path) -> None:
    found = pairs.compare(table(tmp_path, fabricate.pair(12)), "ev", "vl", "total")
    assert found.verdict == "less" and (found.n, found.sequences) == (12, 12)
    assert found.ratio is not None and 0.4 < found.ratio.low <= found.ratio.high < 0.6
    assert found.difference is not None and found.difference.high < 0
    assert found.more_samples is None
    turned = pairs.compare(table(tmp_path / "2", fabricate.pair(12)), "vl", "ev", "total")
    assert turned.verdict == "more"


def test_no_difference_is_undecided_or_equal_and_never_a_conclusion(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = []
    for index in range(30):
        for model in ("ev", "vl"):
            rows.append(fabricate.row(model, f"s{index}", prefill=float(generator.normal(20, 3))))
    lines = table(tmp_path, rows)
    found = pairs.compare(lines, "ev", "vl", "prefill")
    assert found.verdict == "undecided"
    assert pairs.compare(lines, "ev", "vl", "new_tokens").verdict == "equal"


def test_how_many_more_samples_follows_from_the_root_of_n() -> None:
    """0.9 to 1.6 around 1.2: the half on the side of 1 is log(1.2/0.9), the effect log 1.2."""
    more = pairs._more(Interval(1.2, 0.9, 1.6, 20))
    wanted = math.ceil(20 * (math.log(1.2 / 0.9) / math.log(1.2)) ** 2) - 20
    assert more == wanted == 30
    assert pairs._more(Interval(0.8, 0.6, 1.05, 20)) == 10
    assert pairs._more(Interval(1.0, 0.9, 1.1, 20)) is None
    assert pairs._more(Interval(1.0000001, 0.5, 2.0, 20)) is None


def test_the_number_of_samples_asked_for_does_decide() -> None:
    """Simulated: with so many samples the interval leaves 1 out, where it did not before."""
    from engine.figures import stats

    generator = np.random.default_rng(8)
    draw = generator.lognormal(0.05, 0.2, 100_000)
    few = next(
        found
        for start in range(0, 2000, 20)
        if (found := stats.bootstrap(list(draw[start : start + 20]))).low < 1 < found.high
        and 1.03 < found.median < 1.07
    )
    more = pairs._more(few)
    assert more is not None
    wide = stats.bootstrap(list(draw[: 20 + 2 * more]))
    assert wide.low > 1


def test_samples_of_few_sequences_carry_no_interval(tmp_path: Path) -> None:
    rows = [row | {"sequence": f"q{i % 5}"} for i, row in enumerate(fabricate.pair(20))]
    for index, row in enumerate(rows):
        row["sequence"] = f"q{(index // 2) % 5}"
    found = pairs.compare(table(tmp_path, rows), "ev", "vl", "total")
    assert found.verdict == "unknown" and found.ratio is None and "5 sequences" in found.reason
    assert found.median_a is not None and found.n == 20


def test_dependent_clips_widen_the_interval(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    rows = []
    for sequence in range(8):
        centre = float(generator.normal(20, 4))
        for clip in range(10):
            name = f"s{sequence}-{clip}"
            same = {"sequence": f"q{sequence}"}
            rows.append(fabricate.row("ev", name, prefill=centre + 0.01 * clip) | same)
            rows.append(fabricate.row("vl", name, prefill=20.0) | same)
    together = pairs.compare(table(tmp_path / "a", rows), "ev", "vl", "prefill")
    alone = [row | {"sequence": row["sample"]} for row in rows]
    apart = pairs.compare(table(tmp_path / "b", alone), "ev", "vl", "prefill")
    assert together.ratio and apart.ratio and together.ratio.width > 1.5 * apart.ratio.width
    assert together.difference and apart.difference
    assert together.difference.width > 1.5 * apart.difference.width


def test_only_samples_of_both_and_the_median_of_repeats(tmp_path: Path) -> None:
    rows = [
        *(fabricate.row("ev", "s0", repeat=i, prefill=p) for i, p in enumerate((1.0, 50.0, 3.0))),
        fabricate.row("vl", "s0", prefill=6.0),
        fabricate.row("ev", "s1"),
        fabricate.failed("vl", "s1"),
        fabricate.row("vl", "s2"),
        fabricate.row("vl", "s0", repeat=9, phase="warmup", prefill=99.0),
    ]
    from engine.figures.metrics import BY_NAME

    both = pairs.paired(table(tmp_path, rows), "ev", "vl", BY_NAME["prefill"])
    assert both[["sample", "sequence", "a", "b"]].values.tolist() == [["s0", "q-s0", 3.0, 6.0]]


def test_cached_totals_are_compared_with_nothing(tmp_path: Path) -> None:
    rows = [
        fabricate.row(model, f"s{i}", cached_ms=10.0) for model in ("ev", "vl") for i in range(8)
    ]
    lines = table(tmp_path, rows)
    assert pairs.compare(lines, "ev", "vl", "total").n == 0
    assert "no sample" in pairs.compare(lines, "ev", "vl", "vision").reason
    assert pairs.compare(lines, "ev", "vl", "tpot").n == 8


@pytest.mark.parametrize("a", ["ev", "nobody"])
def test_a_model_without_results(tmp_path: Path, a: str) -> None:
    found = pairs.compare(table(tmp_path, [fabricate.row("ev")]), a, "gone", "total")
    assert found.verdict == "unknown" and found.median_a is None and found.n == 0

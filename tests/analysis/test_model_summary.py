"""Figures against values worked out by hand; sources and groups never mixed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.analysis import model_summary
from engine.analysis.model_summary import Figure, find
from engine.analysis.results_table import frame
from tests import fabricate


def figures(tmp_path: Path, rows: list[dict[str, Any]]) -> tuple[Figure, ...]:
    return model_summary.figures(frame([fabricate.run(tmp_path / "r", rows)]))


def loads(values: list[float], **more: Any) -> list[dict[str, Any]]:
    return [
        fabricate.row(sample=f"s{i}", stages={"load": v, "preprocess": 2, "vision": 10}, **more)
        for i, v in enumerate(values)
    ]


def test_a_figure_by_hand(tmp_path: Path) -> None:
    found = find(figures(tmp_path, loads([1, 2, 3, 4, 100])), "ev", "load")
    assert found is not None
    assert (found.n, found.median, found.mean, found.mad) == (5, 3, 22, 1)
    assert found.sd == pytest.approx(((21**2 + 20**2 + 19**2 + 18**2 + 78**2) / 4) ** 0.5)
    assert (found.low, found.high, found.p90, found.p99) == (1, 100, None, None)


@pytest.mark.parametrize(
    ("n", "p90", "p99"), [(9, False, False), (10, True, False), (100, True, True)]
)
def test_percentiles_need_runs_enough(tmp_path: Path, n: int, p90: bool, p99: bool) -> None:
    found = find(figures(tmp_path, loads([float(i + 1) for i in range(n)])), "ev", "load")
    assert found is not None
    assert (found.p90 is not None, found.p99 is not None) == (p90, p99)


def test_one_value_has_no_deviation(tmp_path: Path) -> None:
    found = find(figures(tmp_path, loads([5])), "ev", "load")
    assert found is not None and found.sd is None and found.mad == 0


def test_warm_up_cold_and_pauses_stay_out_of_the_figures(tmp_path: Path) -> None:
    rows = [
        *loads([1, 1, 1]),
        fabricate.row(sample="s0", phase="warmup", stages={"load": 900, "vision": 900}),
        fabricate.row(sample="s8", cold=True, stages={"load": 900, "vision": 900}),
        fabricate.row(sample="s9", paused_ms=5, stages={"load": 900, "vision": 900}),
    ]
    found = figures(tmp_path, rows)
    load = find(found, "ev", "load")
    assert load is not None and (load.n, load.mean) == (3, 1)
    for group in ("warm-up", "cold", "after a pause"):
        apart = find(found, "ev", "load", group)
        assert apart is not None and (apart.n, apart.mean) == (1, 900)


def test_cached_and_measured_never_meet(tmp_path: Path) -> None:
    rows = [
        fabricate.row(sample="s0"),
        fabricate.row(sample="s1", stages={"load": 4, "preprocess": 2, "vision": 1}, cached_ms=10),
    ]
    found = figures(tmp_path, rows)
    by_source = {(f.metric, f.source): f for f in found}
    assert by_source["vision", "measured"].mean == 10 and by_source["vision", "cached"].mean == 1
    assert by_source["total", "measured"].mean == 30 and by_source["total", "cached"].mean == 21
    assert by_source["ttft", "measured"].n == by_source["ttft", "cached"].n == 1
    assert by_source["uncached_total", "cached"].mean == 30
    assert by_source["tpot", "measured"].n == 2 and ("tpot", "cached") not in by_source
    vision = find(found, "ev", "vision")
    assert vision is not None and vision.source == "measured"


def test_gaps_are_pooled(tmp_path: Path) -> None:
    rows = [fabricate.row(sample="s0", gaps=[1, 3]), fabricate.row(sample="s1", gaps=[5])]
    found = find(figures(tmp_path, rows), "ev", "itl")
    assert found is not None and (found.n, found.median, found.high) == (3, 3, 5)


def test_a_failure_is_no_zero(tmp_path: Path) -> None:
    rows = [fabricate.row(sample="s0"), fabricate.failed(sample="s1"), fabricate.failed("vl")]
    table = frame([fabricate.run(tmp_path / "r", rows)])
    found = model_summary.figures(table)
    assert {f.label for f in found} == {"ev"}
    load = find(found, "ev", "load")
    assert load is not None and (load.n, load.low) == (1, 4)
    counts = {count.label: count for count in model_summary.counts(table)}
    assert (counts["ev"].results, counts["ev"].answered, counts["ev"].failed) == (2, 1, 1)
    assert (counts["vl"].answered, counts["vl"].failed) == (0, 1)


def test_counts(tmp_path: Path) -> None:
    rows = [
        fabricate.row(phase="warmup"),
        fabricate.row(cold=True),
        fabricate.row(sample="s1", stop="length"),
        fabricate.row(sample="s2", forced=True),
        fabricate.row(sample="s3", cached_ms=10.0, text="Trees."),
    ]
    (count,) = model_summary.counts(frame([fabricate.run(tmp_path / "r", rows)]))
    assert (count.results, count.cold, count.warm_up, count.cached) == (4, 1, 1, 1)
    assert (count.capped, count.texts, count.samples) == (1, 2, 4)


def test_an_answer_of_one_token_has_no_rate(tmp_path: Path) -> None:
    found = figures(tmp_path, [fabricate.row(gaps=[])])
    assert find(found, "ev", "tpot") is None and find(found, "ev", "itl") is None
    assert find(found, "ev", "ttft") is not None

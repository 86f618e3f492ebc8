"""The forecast of a plan: sums by hand, and power beside simulated runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.analysis import run_planning, statistics
from engine.analysis.clustered_shares import clustered_difference
from engine.analysis.earlier_run import EarlierRun, ModelCost, RatioSpread, ShareSpread
from engine.storage.plan import Plan
from engine.types import DecodeConfig
from tests import fabricate

PLAN = Plan(("ev", "vl"), tuple(f"s{n}" for n in range(10)), repeat=3, warmup=2,
            decode=DecodeConfig(max_new_tokens=64))  # fmt: skip
SEQUENCES = {sample: f"q{number % 7}" for number, sample in enumerate(PLAN.samples)}
COSTS = (
    ModelCost("ev", 9, 100.0, 400.0, 1000.0, 2000.0, 5000.0),
    ModelCost("vl", 9, 200.0, None, None, 3000.0, 6000.0),
)


@pytest.fixture
def earlier(tmp_path: Path) -> EarlierRun:
    return EarlierRun(fabricate.run(tmp_path / "r", [fabricate.row()]), 18, "cpu", COSTS)


def test_time_and_size_are_sums(earlier: EarlierRun) -> None:
    found = run_planning.forecast(PLAN, SEQUENCES, earlier)
    assert (found.results, found.warmups, found.sequences) == (60, 4, 7)
    # 30 results each; warm-up runs of vl count as its results; the time to load vl is not known
    assert found.seconds == pytest.approx(1 + 3.0 + 0.8 + 6.0 + 0.4)
    assert (found.load_s, found.warmup_s, found.without_load) == (1.0, pytest.approx(1.2), ("vl",))
    assert found.row_bytes == 32 * 5000 and found.feature_bytes is None
    assert found.other_settings == () and found.detections == ()


def test_the_cache_and_a_sweep_cost_more(earlier: EarlierRun) -> None:
    cached = run_planning.forecast(replace(PLAN, cache="use"), SEQUENCES, earlier, runs=3)
    once = run_planning.forecast(PLAN, SEQUENCES, earlier)
    assert cached.feature_bytes == 3 * 10 * 11_000
    assert cached.row_bytes == 3 * (once.row_bytes or 0) and cached.results == 180
    assert cached.seconds == pytest.approx(3 * ((once.seconds or 0) - 1) + 1)  # loaded once
    assert cached.other_settings == (("cache on", "cache off"),)


def test_what_the_earlier_run_does_not_have_is_not_known(earlier: EarlierRun) -> None:
    none = run_planning.forecast(PLAN, SEQUENCES, None)
    assert (none.seconds, none.row_bytes, none.detections) == (None, None, ())
    part = run_planning.forecast(PLAN, SEQUENCES, replace(earlier, costs=COSTS[:1]))
    assert part.without_time == part.without_size == ("vl",)
    assert part.seconds == pytest.approx(4.8)  # of ev only


def test_batches_detect_nothing_of_single_samples(earlier: EarlierRun) -> None:
    spreads = (RatioSpread("ev", "vl", tuple(np.linspace(0.9, 1.1, 20))),)
    known = replace(earlier, spreads=spreads)
    assert not run_planning.forecast(PLAN, SEQUENCES, known).detections[0].reason
    batch = run_planning.forecast(replace(PLAN, batch=2), SEQUENCES, known).detections[0]
    assert batch.reason == "samples of a batch are not timed separately" and batch.power is None


def test_the_power_is_that_of_the_tests_in_use() -> None:
    """20 new sequences with a planted difference, many times; the spread is from 60 others."""
    generator = np.random.default_rng(3)
    sigma, difference, planned = 0.10, 0.10, 20
    logs = np.sort(generator.normal(0, sigma, 60))
    spread = RatioSpread("ev", "vl", tuple(np.exp(logs - np.median(logs))))
    found = run_planning.of_ratios(spread, planned, difference)
    drawn = generator.normal(np.log1p(difference), sigma, (800, planned))

    def decides(values: run_planning.Floats) -> bool:
        interval = statistics.median_interval(list(np.exp(values)), ratios=True)
        return float(statistics.printed(interval.low)) > 1

    share = np.mean([decides(values) for values in drawn])
    assert found.power is not None and abs(found.power - share) < 0.12
    halved = run_planning.of_ratios(spread, planned, difference / 2).power
    assert halved is not None and abs(halved - share) > 0.3  # control


def test_needed_power_and_smallest_agree() -> None:
    spread = RatioSpread("ev", "vl", tuple(np.exp(np.linspace(-0.2, 0.2, 25))))
    found = run_planning.of_ratios(spread, 30, 0.05)
    assert found.needed is not None and found.low is not None and found.high is not None
    assert found.low <= found.needed <= found.high and found.power is not None
    assert found.needed > 30 and found.power < 0.8 and found.smallest is not None
    there = run_planning.of_ratios(spread, 30, found.smallest)
    assert there.power is not None and 0.79 < there.power < 0.85
    few = run_planning.of_ratios(spread, 5, 0.05)
    assert (few.power, few.smallest) == (0.0, None)


def test_no_spread_needs_the_fewest() -> None:
    found = run_planning.of_ratios(RatioSpread("ev", "vl", (1.0,) * 8), 8, 0.05)
    assert found.needed == 6 and found.power == 1.0
    assert found.smallest == pytest.approx(0.005, abs=1e-3)  # smaller ones are printed as 1
    unknown = run_planning.of_ratios(RatioSpread("ev", "vl", reason="why"), 8, 0.05)
    assert unknown.reason == "why" and unknown.needed is None


def test_accuracy_by_the_root_of_the_sequences() -> None:
    spread = ShareSpread("ev", "vl", 24, 0.5)
    found = run_planning.of_shares(spread, 100, 0.1)
    assert found.needed == 197 and found.power is not None and 0.5 < found.power < 0.53
    assert found.smallest == pytest.approx(0.14, abs=0.001)
    assert run_planning.of_shares(spread, 5, 0.1).power == 0.0
    at_once = run_planning.of_shares(spread, 197, 0.1)
    assert at_once.power == pytest.approx(0.8, abs=0.01)


def test_the_power_of_accuracies_is_that_of_their_interval() -> None:
    """Questions of which 15 % are right for one model only, and a planted difference."""
    generator = np.random.default_rng(4)

    def drawn(sequences: int, difference: float) -> tuple[list[float], list[int]]:
        chances = [0.15 + difference / 2, 0.15 - difference / 2, 0.7]
        values = generator.choice([1.0, -1.0, 0.0], size=4 * sequences, p=chances)
        return values.tolist(), [number // 4 for number in range(4 * sequences)]

    known = clustered_difference(*drawn(60, 0.0))
    assert known.low is not None and known.high is not None
    spread = ShareSpread("ev", "vl", 60, (known.high - known.low) / 3.92 * 60**0.5)
    found = [clustered_difference(*drawn(100, 0.1)) for _ in range(300)]
    share = np.mean([one.low is not None and one.low > 0 for one in found])
    told = run_planning.of_shares(spread, 100, 0.1).power
    assert told is not None and abs(told - share) < 0.12
    half = run_planning.of_shares(spread, 100, 0.05).power
    assert half is not None and abs(half - share) > 0.3  # control


def test_the_worst_comparison_is_the_one_that_detects_least() -> None:
    some = [
        run_planning.Detection("a", "b", smallest=0.2),
        run_planning.Detection("a", "c", reason="why"),
        run_planning.Detection("a", "d", smallest=0.3),
    ]
    assert run_planning.worst(some) == some[2]
    assert run_planning.worst(some[1:2]) is None

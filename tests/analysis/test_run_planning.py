"""The forecast of a plan: sums by hand, and power beside simulated runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.analysis import run_planning, statistics
from engine.analysis.run_planning import EarlierRun, PairSpread
from engine.analysis.statistics import clustered_difference
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.storage.run_store import Run
from engine.types import DecodeConfig
from tests import fabricate

PLAN = Plan(("ev", "vl"), tuple(f"s{n}" for n in range(10)), repeat=3, warmup=2,
            decode=DecodeConfig(max_new_tokens=64))  # fmt: skip
SEQUENCES = {sample: f"q{number % 7}" for number, sample in enumerate(PLAN.samples)}
COSTS = pd.DataFrame(
    [(100.0, 400.0, 1000.0, 2000.0, 5000.0), (200.0, np.nan, np.nan, 3000.0, 6000.0)],
    index=["ev", "vl"],
    columns=list(run_planning.COSTS),
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


def test_a_batch_larger_than_the_run_warms_up_with_what_there_is(earlier: EarlierRun) -> None:
    found = run_planning.forecast(replace(PLAN, batch=64), SEQUENCES, earlier)
    assert found.warmups == 2 * 2 * 10 and found.warmup_s == pytest.approx(12.0)


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
    spreads = (PairSpread("ev", "vl", ratios=tuple(np.linspace(0.9, 1.1, 20))),)
    known = replace(earlier, spreads=spreads)
    assert not run_planning.forecast(PLAN, SEQUENCES, known).detections[0].reason
    batch = run_planning.forecast(replace(PLAN, batch=2), SEQUENCES, known).detections[0]
    assert batch.reason == "samples of a batch are not timed separately" and batch.power is None


def test_the_power_is_that_of_the_tests_in_use() -> None:
    """20 new sequences with a planted difference, many times; the spread is from 60 others."""
    generator = np.random.default_rng(3)
    sigma, difference, planned = 0.10, 0.10, 20
    logs = np.sort(generator.normal(0, sigma, 60))
    spread = PairSpread("ev", "vl", ratios=tuple(np.exp(logs - np.median(logs))))
    found = run_planning.detection(spread, planned, difference)
    drawn = generator.normal(np.log1p(difference), sigma, (800, planned))

    def decides(values: run_planning.Floats) -> bool:
        interval = statistics.median_interval(list(np.exp(values)), ratios=True)
        return float(statistics.printed(interval.low)) > 1

    share = np.mean([decides(values) for values in drawn])
    assert found.power is not None and abs(found.power - share) < 0.12
    halved = run_planning.detection(spread, planned, difference / 2).power
    assert halved is not None and abs(halved - share) > 0.3  # control


def test_needed_power_and_smallest_agree() -> None:
    spread = PairSpread("ev", "vl", ratios=tuple(np.exp(np.linspace(-0.2, 0.2, 25))))
    found = run_planning.detection(spread, 30, 0.05)
    assert found.needed is not None and found.low is not None and found.high is not None
    assert found.low <= found.needed <= found.high and found.power is not None
    assert found.needed > 30 and found.power < 0.8 and found.smallest is not None
    there = run_planning.detection(spread, 30, found.smallest)
    assert there.power is not None and 0.79 < there.power < 0.85
    few = run_planning.detection(spread, 5, 0.05)
    assert (few.power, few.smallest) == (0.0, None)


def test_no_spread_needs_the_fewest() -> None:
    found = run_planning.detection(PairSpread("ev", "vl", ratios=(1.0,) * 8), 8, 0.05)
    assert found.needed == 6 and found.power == 1.0
    assert found.smallest == pytest.approx(0.005, abs=1e-3)  # smaller ones are printed as 1
    unknown = run_planning.detection(PairSpread("ev", "vl", reason="why"), 8, 0.05)
    assert unknown.reason == "why" and unknown.needed is None


def test_accuracy_by_the_root_of_the_sequences() -> None:
    spread = PairSpread("ev", "vl", 24, error=0.5)
    found = run_planning.detection(spread, 100, 0.1)
    assert found.needed == 197 and found.power is not None and 0.5 < found.power < 0.53
    assert found.smallest == pytest.approx(0.14, abs=0.001)
    assert run_planning.detection(spread, 5, 0.1).power == 0.0
    at_once = run_planning.detection(spread, 197, 0.1)
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
    spread = PairSpread("ev", "vl", 60, error=(known.high - known.low) / 3.92 * 60**0.5)
    found = [clustered_difference(*drawn(100, 0.1)) for _ in range(300)]
    share = np.mean([one.low is not None and one.low > 0 for one in found])
    told = run_planning.detection(spread, 100, 0.1).power
    assert told is not None and abs(told - share) < 0.12
    half = run_planning.detection(spread, 100, 0.05).power
    assert half is not None and abs(half - share) > 0.3  # control


def test_the_worst_comparison_is_the_one_that_detects_least() -> None:
    some = [
        run_planning.Detection("a", "b", smallest=0.2),
        run_planning.Detection("a", "c", reason="why"),
        run_planning.Detection("a", "d", smallest=0.3),
    ]
    assert run_planning.worst(some) == some[2]
    assert run_planning.worst(some[1:2]) is None


# What is read of an earlier run: costs, spreads, and which run is chosen.
DECODE = DecodeConfig(max_new_tokens=64)


def repeated(n: int = 8, model: str = "ev") -> list[dict[str, Any]]:
    """n sequences with two repeats each; the second takes 1 to n percent longer in all parts."""
    rows = [fabricate.row(model, "warm", phase="warmup", prefill=100.0)]
    for index in range(n):
        for repeat, slow in enumerate((1.0, 1 + (index + 1) / 100)):
            stages = {name: ms * slow for name, ms in fabricate.STAGES.items()}
            rows.append(
                fabricate.row(model, f"s{index}", repeat=repeat, stages=stages,
                              prefill=8.0 * slow, gaps=[2.0 * slow] * 3)
            )  # fmt: skip
    return rows


def noted(run: Run, **more: Any) -> Run:
    return replace(run, journal=(*run.journal, {"event": "loaded", "model": "ev", **more}))


def test_costs_are_means_of_what_was_measured(tmp_path: Path) -> None:
    rows = [*repeated(), fabricate.failed("ev", "s9")]
    run = noted(fabricate.run(tmp_path / "r", rows), ms=250.0)
    costs = run_planning.measure(run, ("ev", "vl")).costs
    cost, other = costs.loc["ev"], costs.loc["vl"]
    assert cost.load_ms == 250.0
    assert cost.result_ms == pytest.approx(30 * (1 + 0.0225))
    assert cost.warmup_ms == pytest.approx(122.0)
    size = (run.folder / run_store.RESULTS).stat().st_size
    assert cost.row_bytes == pytest.approx(size / len(rows), rel=0.1)
    assert np.isnan(cost.feature_bytes)  # its rows tell of no features
    assert other.isna().all()  # not a 0


def test_features_are_those_of_the_rows(tmp_path: Path) -> None:
    sizes = {"pixels": 9, "features.a": 40, "features.b": 2}
    form = {"shape": [1], "dtype": "float32"}
    tensors = [{"name": name, "bytes": size, **form} for name, size in sizes.items()]
    run = fabricate.run(tmp_path / "r", [fabricate.row("ev", "s0", tensors=tensors)])
    assert run_planning.measure(run, ("ev",)).costs.loc["ev"].feature_bytes == 42


def test_a_sample_of_a_batch_costs_its_share(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.batch(("s0", "s1"), ms=100.0))
    assert run_planning.measure(run, ("ev",)).costs.loc["ev"].result_ms == pytest.approx(50)


def test_two_models_are_spread_by_their_ratios(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(9))
    pair = run_planning.measure(run, ("ev", "vl")).spreads[0]
    assert (pair.a, pair.b, len(pair.ratios)) == ("ev", "vl", 9) and not pair.reason
    assert sorted(pair.ratios)[4] == pytest.approx(1.0)  # centred
    few = fabricate.run(tmp_path / "f", fabricate.pair(5))
    assert "it has 5 sequences of both, and 6 are needed" in [
        one.reason for one in run_planning.measure(few, ("ev", "vl")).spreads
    ]


def test_a_ratio_of_a_zero_is_refused(tmp_path: Path) -> None:
    rows = fabricate.pair(8)
    rows[0]["unaccounted_ms"] = 1.0
    run = fabricate.run(tmp_path / "r", rows)
    found = run_planning.measure(run, ("ev", "vl"), "unaccounted").spreads[0]
    assert found.reason == "some values are 0, so that there is no ratio"


def test_accuracies_have_an_error_only_with_questions(tmp_path: Path) -> None:
    exam = fabricate.run(tmp_path / "e", fabricate.exam())
    (found,) = run_planning.measure(exam, ("ev", "vl"), "accuracy").spreads
    assert found.sequences == 24 and 0 < found.error < 5
    run = fabricate.run(tmp_path / "r", fabricate.pair(8))
    (none,) = run_planning.measure(run, ("ev", "vl"), "accuracy").spreads
    assert none.reason == "no sample of both has a known right answer"


def test_the_newest_run_of_the_same_kind_is_chosen(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        fabricate.run(tmp_path / name, repeated())
    runs = run_store.listing(tmp_path)
    plan = Plan(("ev",), ("s0",), repeat=3, decode=DECODE)
    root = Path("/data/one")
    assert run_planning.newest(plan, root, runs) == runs[0]
    other = replace(runs[0], settings={**runs[0].settings, "length": "forced 9 tokens"})
    assert run_planning.newest(plan, root, (other, *runs[1:])) == runs[1]  # the same settings
    assert run_planning.newest(plan, root, (other,)) == other
    kept = replace(runs[0], settings={**runs[0].settings, "kind": "comparison"})
    for wrong in (kept, replace(runs[0], state="running"), replace(runs[0], results=0)):
        assert run_planning.newest(plan, root, (wrong,)) is None
    assert run_planning.newest(plan, Path("/data/two"), runs) is None
    assert run_planning.newest(replace(plan, models=("ev", "vl")), root, runs) is None

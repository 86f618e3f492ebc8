"""The forecast of a plan: sums by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from engine.analysis import run_planning
from engine.analysis.run_planning import EarlierRun
from engine.storage import run_store
from engine.storage.plan import Plan
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
    alone = run_planning.forecast(PLAN, dict.fromkeys(PLAN.samples, ""), earlier)
    assert alone.sequences == len(PLAN.samples)  # samples without a sequence are their own
    found = run_planning.forecast(PLAN, SEQUENCES, earlier)
    assert (found.results, found.warmups, found.sequences) == (60, 4, 7)
    # 30 results each; warm-up runs of vl count as its results; the time to load vl is not known
    assert found.seconds == pytest.approx(1 + 3.0 + 0.8 + 6.0 + 0.4)
    assert (found.load_s, found.warmup_s, found.without_load) == (1.0, pytest.approx(1.2), ("vl",))
    assert found.row_bytes == 32 * 5000 and found.feature_bytes is None
    assert found.other_settings == ()


def test_the_cache_and_a_sweep_cost_more(earlier: EarlierRun) -> None:
    cached = run_planning.forecast(replace(PLAN, cache="use"), SEQUENCES, earlier, runs=3)
    once = run_planning.forecast(PLAN, SEQUENCES, earlier)
    assert cached.feature_bytes == 3 * 10 * 11_000
    assert cached.row_bytes == 3 * (once.row_bytes or 0) and cached.results == 180
    assert cached.seconds == pytest.approx(3 * ((once.seconds or 0) - 1) + 1)  # loaded once
    assert cached.other_settings == (("cache on", "cache off"),)
    large = run_planning.forecast(replace(PLAN, batch=64), SEQUENCES, earlier)
    assert large.warmups == 2 * 2 * 10  # a batch larger than the run warms up with what there is
    assert large.warmup_s == pytest.approx(12.0)


def test_what_the_earlier_run_does_not_have_is_not_known(earlier: EarlierRun) -> None:
    none = run_planning.forecast(PLAN, SEQUENCES, None)
    assert (none.seconds, none.row_bytes) == (None, None)
    part = run_planning.forecast(PLAN, SEQUENCES, replace(earlier, costs=COSTS[:1]))
    assert part.without_time == part.without_size == ("vl",)
    assert part.seconds == pytest.approx(4.8)  # of ev only


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


def test_costs_are_means_of_what_was_measured(tmp_path: Path) -> None:
    rows = [*repeated(), fabricate.failed("ev", "s9")]
    run = fabricate.run(tmp_path / "r", rows)
    loaded = {"event": "loaded", "model": "ev", "ms": 250.0}
    run = replace(run, journal=(*run.journal, loaded))
    costs = run_planning.measure(run, ("ev", "vl")).costs
    cost = costs.loc["ev"]
    assert cost.load_ms == 250.0
    assert cost.result_ms == pytest.approx(30 * (1 + 0.0225))
    assert cost.warmup_ms == pytest.approx(122.0)
    size = (run.folder / run_store.RESULTS).stat().st_size
    assert cost.row_bytes == pytest.approx(size / len(rows), rel=0.1)
    assert np.isnan(cost.feature_bytes)  # its rows tell of no features
    assert costs.loc["vl"].isna().all()  # not a 0


def test_features_are_those_of_the_rows_and_a_batch_is_shared(tmp_path: Path) -> None:
    sizes = {"pixels": 9, "features.a": 40, "features.b": 2}
    form = {"shape": [1], "dtype": "float32"}
    tensors = [{"name": name, "bytes": size, **form} for name, size in sizes.items()]
    rows = fabricate.batch(("s0", "s1"), ms=100.0, tensors=tensors)
    cost = run_planning.measure(fabricate.run(tmp_path / "r", rows), ("ev",)).costs.loc["ev"]
    assert cost.feature_bytes == 42 and cost.result_ms == pytest.approx(50)


def test_the_newest_run_of_the_same_kind_is_chosen(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        fabricate.run(tmp_path / name, repeated())
    runs = run_store.listing(tmp_path)
    plan = Plan(("ev",), ("s0",), repeat=3, decode=PLAN.decode)
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

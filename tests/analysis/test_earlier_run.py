"""What is read of an earlier run: costs, spreads, and which run is chosen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.analysis import earlier_run
from engine.storage import run_store
from engine.storage.plan import Plan
from engine.storage.run_store import Run
from engine.types import DecodeConfig
from tests import fabricate

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
    (cost, other) = earlier_run.measure(run, ("ev", "vl")).costs
    assert cost.results == 16 and cost.load_ms == 250.0
    assert cost.result_ms == pytest.approx(30 * (1 + 0.0225))
    assert cost.warmup_ms == pytest.approx(122.0)
    size = (run.folder / run_store.RESULTS).stat().st_size
    assert cost.row_bytes == pytest.approx(size / len(rows), rel=0.1)
    assert cost.feature_bytes is None  # its rows tell of no features
    assert other == earlier_run.ModelCost("vl")  # not a 0


def test_features_are_those_of_the_rows(tmp_path: Path) -> None:
    sizes = {"pixels": 9, "features.a": 40, "features.b": 2}
    form = {"shape": [1], "dtype": "float32"}
    tensors = [{"name": name, "bytes": size, **form} for name, size in sizes.items()]
    run = fabricate.run(tmp_path / "r", [fabricate.row("ev", "s0", tensors=tensors)])
    assert earlier_run.measure(run, ("ev",)).costs[0].feature_bytes == 42


def test_a_sample_of_a_batch_costs_its_share(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.batch(("s0", "s1"), ms=100.0))
    assert earlier_run.measure(run, ("ev",)).costs[0].result_ms == pytest.approx(50)


def test_two_models_are_spread_by_their_ratios(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(9))
    pair = earlier_run.measure(run, ("ev", "vl")).spreads[0]
    assert (pair.a, pair.b, len(pair.ratios)) == ("ev", "vl", 9) and not pair.reason
    assert sorted(pair.ratios)[4] == pytest.approx(1.0)  # centred
    few = fabricate.run(tmp_path / "f", fabricate.pair(5))
    assert "it has 5 sequences of both, and 6 are needed" in [
        one.reason for one in earlier_run.measure(few, ("ev", "vl")).spreads
    ]


def test_a_ratio_of_a_zero_is_refused(tmp_path: Path) -> None:
    rows = fabricate.pair(8)
    rows[0]["unaccounted_ms"] = 1.0
    run = fabricate.run(tmp_path / "r", rows)
    found = earlier_run.measure(run, ("ev", "vl"), "unaccounted").spreads[0]
    assert found.reason == "some values are 0, so that there is no ratio"


def test_accuracies_have_an_error_only_with_questions(tmp_path: Path) -> None:
    exam = fabricate.run(tmp_path / "e", fabricate.exam())
    (found,) = earlier_run.measure(exam, ("ev", "vl"), "accuracy").shares
    assert found.sequences == 24 and 0 < found.error < 5
    run = fabricate.run(tmp_path / "r", fabricate.pair(8))
    (none,) = earlier_run.measure(run, ("ev", "vl"), "accuracy").shares
    assert none.reason == "no sample of both has a known right answer"


def test_the_newest_run_of_the_same_kind_is_chosen(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        fabricate.run(tmp_path / name, repeated())
    runs = run_store.listing(tmp_path)
    plan = Plan(("ev",), ("s0",), repeat=3, decode=DECODE)
    root = Path("/data/one")
    assert earlier_run.newest(plan, root, runs) == runs[0]
    other = replace(runs[0], settings={**runs[0].settings, "length": "forced 9 tokens"})
    assert earlier_run.newest(plan, root, (other, *runs[1:])) == runs[1]  # the same settings
    assert earlier_run.newest(plan, root, (other,)) == other
    kept = replace(runs[0], settings={**runs[0].settings, "kind": "comparison"})
    for wrong in (kept, replace(runs[0], state="running"), replace(runs[0], results=0)):
        assert earlier_run.newest(plan, root, (wrong,)) is None
    assert earlier_run.newest(plan, Path("/data/two"), runs) is None
    assert earlier_run.newest(replace(plan, models=("ev", "vl")), root, runs) is None

"""The forecast in sentences."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from engine.analysis import run_planning
from engine.analysis.run_planning import EarlierRun, RunForecast
from tests import fabricate

KNOWN = RunForecast(
    results=140, warmups=4, runs=1, sequences=14, seconds=722.0,
    load_s=20.0, warmup_s=12.0, row_bytes=3 * 2.0**20, feature_bytes=None, without_time=(),
    without_load=(), without_size=(), other_settings=(),
)  # fmt: skip


@pytest.fixture
def earlier(tmp_path: Path) -> EarlierRun:
    return EarlierRun(fabricate.run(tmp_path / "r", [fabricate.row()]), 84, "cpu", pd.DataFrame())


def test_the_whole_forecast(earlier: EarlierRun) -> None:
    told = "\n".join(run_planning.facts(KNOWN, earlier, found=True))
    assert told.startswith(
        "Planned: 140 results and 4 warm-up runs, 14 independent sequences.\n"
        f"From run {earlier.run.id} (84 results on cpu), the newest own run"
    )
    assert "Duration: about 12 min 2 s, with 20 s of loading, 12 s of warm-up." in told
    assert "Disk: about 3.0 MiB of results." in told
    assert "other settings" not in told and "busy" not in told and "Not included" not in told


def test_weak_sources_are_named(earlier: EarlierRun) -> None:
    weak = replace(KNOWN, other_settings=(("forced 9 tokens", "at most 64 new tokens"),),
                   without_load=("ev",), without_time=("vl",), feature_bytes=2048.0)  # fmt: skip
    told = "\n".join(run_planning.facts(weak, replace(earlier, busy=("ev",)), found=False))
    assert "other settings (at most 64 new tokens, not forced 9 tokens)" in told
    assert "The machine was busy during that run" in told and "newest" not in told
    assert "Not included: the time to load ev, which that run did not record." in told
    assert "Not included: the time of vl, which has no result in that run." in told
    assert "and at most 2.0 KiB in the feature cache." in told


def test_what_is_not_known_has_no_figure(earlier: EarlierRun) -> None:
    none = replace(KNOWN, seconds=None, load_s=None, row_bytes=None)
    told = "\n".join(run_planning.facts(none, earlier, found=True))
    assert "Duration: not known" in told and "Disk: not known" in told
    assert run_planning.short(none, earlier).startswith("Duration not known (from run ")
    assert "run 10 samples first" in run_planning.nothing_known(("ev", "vl"))

"""The forecast in sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from engine.analysis.run_planning import Detection, EarlierRun, RunForecast
from engine.report import drawers, planning_words
from tests import fabricate

PAIR = Detection("ev", "vl", 14, 23, 12, None, 0.614, 0.0891)
UNKNOWN = Detection("ev", "im", reason="no sample has a measured value of both")
KNOWN = RunForecast(
    results=140, warmups=4, runs=1, sequences=14, metric="total", difference=0.05, seconds=722.0,
    load_s=20.0, warmup_s=12.0, row_bytes=3 * 2.0**20, feature_bytes=None, without_time=(),
    without_load=(), without_size=(), detections=(PAIR, UNKNOWN), other_settings=(),
)  # fmt: skip


@pytest.fixture
def earlier(tmp_path: Path) -> EarlierRun:
    return EarlierRun(fabricate.run(tmp_path / "r", [fabricate.row()]), 84, "cpu", pd.DataFrame())


def test_the_whole_forecast(earlier: EarlierRun) -> None:
    told = drawers.terminal(planning_words.blocks(KNOWN, earlier, found=True))
    assert told.startswith(
        "Planned: 140 results and 4 warm-up runs, 14 independent sequences.\n"
        f"From run {earlier.run.id} (84 results on cpu), the newest own run"
    )
    assert "Duration: about 12 min 2 s, with 20 s of loading, 12 s of warm-up." in told
    assert "Disk: about 3.0 MiB of results." in told
    assert "To detect a difference of 5 % in total with 80 % power at the 5 % level:" in told
    assert "ev and vl   23 (12 to no practical number, from 14)" in told
    assert "61 %" in told and "9.0 % or more" in told  # rounded up
    assert "ev and im: not known from that run, because no sample has a measured" in told
    assert planning_words.SIGN_TEST in told
    assert "other settings" not in told and "busy" not in told and "Not included" not in told


def test_weak_sources_are_named(earlier: EarlierRun) -> None:
    weak = replace(KNOWN, other_settings=(("forced 9 tokens", "at most 64 new tokens"),),
                   without_load=("ev",), without_time=("vl",), feature_bytes=2048.0)  # fmt: skip
    told = drawers.terminal(
        planning_words.blocks(weak, replace(earlier, busy=("ev",)), found=False)
    )
    assert "other settings (at most 64 new tokens, not forced 9 tokens)" in told
    assert "The machine was busy during that run" in told and "newest" not in told
    assert "Not included: the time to load ev, which that run did not record." in told
    assert "Not included: the time of vl, which has no result in that run." in told
    assert "and at most 2.0 KiB in the feature cache." in told


def test_what_is_not_known_has_no_figure(earlier: EarlierRun) -> None:
    none = replace(KNOWN, seconds=None, load_s=None, row_bytes=None, detections=(UNKNOWN,))
    told = drawers.terminal(planning_words.blocks(none, earlier, found=True))
    assert "Duration: not known" in told and "Disk: not known" in told
    assert "power of the" not in told and "Assumption" not in told
    short = planning_words.short(none, earlier)
    assert short.startswith("Duration not known; which differences it detects is not known")
    assert "10 samples of at least 6 sequences" in planning_words.nothing_known(("ev", "vl"))


def test_one_line(earlier: EarlierRun) -> None:
    assert planning_words.short(KNOWN, earlier) == (
        "About 12 min 2 s and 3.0 MiB for 140 results; 14 sequences detect a difference of 9.0 % "
        "or more in total between any two of its models with 80 % power "
        f"(from run {earlier.run.id})."
    )
    few = replace(KNOWN, sequences=5, detections=(replace(PAIR, power=0.0, smallest=None),))
    assert "5 sequences give no interval, which needs 6" in planning_words.short(few, earlier)
    assert "nothing: an interval needs 6" in planning_words.table(few).rows[0][-1]
    busy = planning_words.short(KNOWN, replace(earlier, busy=("ev",)))
    assert busy.endswith(", on a busy machine).")


def test_accuracy_is_in_points(earlier: EarlierRun) -> None:
    points = replace(KNOWN, metric="accuracy", detections=(PAIR,))
    told = drawers.terminal(planning_words.blocks(points, earlier, found=True))
    assert "To detect a difference of 5 points of accuracy" in told
    assert "9.0 points or more" in told and planning_words.ASSUMED_ACCURACY in told
    assert planning_words.SIGN_TEST not in told

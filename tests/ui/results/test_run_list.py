from dataclasses import replace
from pathlib import Path

from engine.storage.run_store import RunInfo
from ui.results.opened_runs import Source
from ui.results.run_list import newest_finished


def source(**more: object) -> Source:
    given = {
        "id": "20260101-101500-abcdef", "folder": Path("/runs/one"), "state": "finished",
        "created": "2026-01-01T10:15:00+00:00", "models": ("ev", "vl"), "dataset": "/data/Kitchen",
        "samples": 2, "planned": 4, "results": 6,
    }  # fmt: skip
    return Source(RunInfo(**given | more))  # type: ignore[arg-type]


def test_the_newest_finished_run_is_not_the_baseline_if_there_is_another() -> None:
    old, new = source(), source(created="2026-02-01T10:15:00+00:00")
    unfinished = source(created="2026-03-01T10:15:00+00:00", state="stopped")
    assert newest_finished([unfinished, old, new]) is new
    pinned = replace(new, baseline=True)
    assert newest_finished([pinned, old]) is old and newest_finished([pinned]) is pinned
    assert newest_finished([unfinished]) is None

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from engine.storage.run_details import RunDetails
from engine.storage.run_store import RunInfo
from ui.results.result_sources import Source
from ui.results.run_list import comparable, newest_finished, words

DETAILS = RunDetails("Rainy drive", ("v2",))


def source(**more: object) -> Source:
    given = {
        "id": "20260101-101500-abcdef", "folder": Path("/runs/one"), "state": "finished",
        "created": "2026-01-01T10:15:00+00:00", "models": ("ev", "vl"), "dataset": "/data/Kitchen",
        "samples": 2, "planned": 4, "results": 6,
    }  # fmt: skip
    return Source(RunInfo(**given | more))  # type: ignore[arg-type]


def test_a_named_run_and_the_baseline() -> None:
    found = replace(source(labels=("EventGPT",)), details=DETAILS)
    assert found.title == found.name == "Rainy drive"
    assert words(found).split(" · ") == [
        "Rainy drive",
        "2026-01-01 10:15:00 UTC",
        "Kitchen",
        "EventGPT",
        "6 rows, including warm-up",
        "v2",
    ]
    pinned = replace(found, baseline=True)
    assert pinned.title == "Baseline: Rainy drive" and pinned.name == "Rainy drive (baseline)"
    assert "for this visit only" in words(replace(found, private=True))


def test_the_newest_finished_run_is_not_the_baseline_if_there_is_another() -> None:
    old, new = source(), source(created="2026-02-01T10:15:00+00:00")
    unfinished = source(created="2026-03-01T10:15:00+00:00", state="stopped")
    assert newest_finished([unfinished, old, new]) is new
    pinned = replace(new, baseline=True)
    assert newest_finished([pinned, old]) is old and newest_finished([pinned]) is pinned
    assert newest_finished([unfinished]) is None


def test_only_runs_that_can_share_samples_of_a_model_are_comparable() -> None:
    base = source()
    assert comparable(base, source(models=("vl", "im"))) and not comparable(base, base)
    assert not comparable(base, source(models=("im",)))
    assert not comparable(base, source(dataset="/data/Garden"))
    assert not comparable(base, source(settings={"kind": "comparison"}))


def test_a_run_in_words() -> None:
    when = "2026-01-01 10:15:00 UTC"
    assert words(source()) == f"{when} · Kitchen · ev, vl · 6 rows, including warm-up"
    assert words(source(results=4)).endswith(" · 4 results")
    stopped = words(source(state="stopped", settings={"kind": "comparison"}))
    assert " · comparison · Kitchen · not finished · " in stopped
    assert stopped.endswith("6 rows, including warm-up, 4 results planned")

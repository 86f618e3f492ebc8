from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engine.storage.run_details import RunDetails
from engine.storage.run_store import RunInfo
from ui.results.result_sources import Source
from ui.results.run_list import fits, newest_finished, words

DETAILS = RunDetails("Rainy drive", ("v2",))


def source(**more: object) -> Source:
    given = {
        "id": "20260101-101500-abcdef", "folder": Path("/runs/one"), "state": "finished",
        "created": "2026-01-01T10:15:00+00:00", "models": ("ev", "vl"), "dataset": "/data/Kitchen",
        "samples": 2, "planned": 4, "results": 6,
    }  # fmt: skip
    return Source(RunInfo(**given | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "model", "state", "fit"),
    [
        ("", None, "all", True),
        ("kitchen VL", None, "all", True),
        ("2026-01-01 10:15", None, "all", True),
        ("kitchen sink", None, "all", False),
        ("", "ev", None, True),
        ("", "im", None, False),
        ("", None, "finished", True),
        ("", None, "running", False),
    ],
)
def test_filters(text: str, model: str | None, state: str | None, fit: bool) -> None:
    assert fits(source(), text, model, state) is fit


def test_a_run_is_found_by_its_name_tags_and_settings() -> None:
    found = replace(source(labels=("EventGPT",), settings={"cache": "cache on"}), details=DETAILS)
    for text in ("rainy", "v2", "eventgpt", "cache on"):
        assert fits(found, text, None, None) and not fits(source(), text, None, None)
    assert fits(found, "", None, None, "v2") and not fits(found, "", None, None, "v")


def test_a_named_run_and_the_baseline() -> None:
    found = replace(source(labels=("EventGPT",)), details=DETAILS)
    assert found.title == found.name == "Rainy drive"
    assert words(found).split("\n") == [
        "2026-01-01 10:15 UTC",
        "finished · 6 rows, including warm-up",
        "EventGPT",
        "tags: v2",
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


def test_a_run_in_words() -> None:
    assert words(source()) == "finished · 6 rows, including warm-up\nev, vl"
    assert words(source(results=4)) == "finished · 4 results\nev, vl"
    assert "6 rows, including warm-up, 4 results planned" in words(source(state="stopped"))

from __future__ import annotations

from pathlib import Path

import pytest

from engine.storage.run_store import RunInfo
from ui.results.run_list import fits, words
from ui.results.run_sources import RunSource, stamp_of


def source(**more: object) -> RunSource:
    given = {
        "id": "20260101-101500-abcdef", "folder": Path("/runs/one"), "state": "finished",
        "created": "2026-01-01T10:15:00+00:00", "models": ("ev", "vl"), "dataset": "/data/Kitchen",
        "samples": 2, "planned": 4, "results": 6,
    }  # fmt: skip
    return RunSource(RunInfo(**given | more))  # type: ignore[arg-type]


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


def test_a_run_in_words() -> None:
    assert words(source()) == "finished · 6 rows, including warm-up\nev, vl"
    assert "6 rows, including warm-up, 4 results planned" in words(source(state="stopped"))


def test_a_stamp_changes_with_the_file_and_lacks_what_is_absent(tmp_path: Path) -> None:
    assert stamp_of(tmp_path) == ()
    (tmp_path / "results.jsonl").write_text("1")
    before = stamp_of(tmp_path)
    (tmp_path / "results.jsonl").write_text("12")
    assert len(before) == 1 and stamp_of(tmp_path) != before

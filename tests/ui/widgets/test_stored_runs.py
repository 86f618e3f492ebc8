from __future__ import annotations

from pathlib import Path

from ui.widgets.stored_runs import stamp_of


def test_a_stamp_changes_with_the_file_and_lacks_what_is_absent(tmp_path: Path) -> None:
    assert stamp_of(tmp_path) == ()
    (tmp_path / "results.jsonl").write_text("1")
    before = stamp_of(tmp_path)
    (tmp_path / "results.jsonl").write_text("12")
    assert len(before) == 1 and stamp_of(tmp_path) != before

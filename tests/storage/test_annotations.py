"""Notes and thumbs: the last word counts, and a run at work can be marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import BadInput, StoreError
from engine.storage import annotations as marks
from engine.storage import run_store
from engine.storage.annotations import Feedback
from engine.storage.plan import Task
from tests import fabricate

TASK = Task("ev", "s0", 0, "measured")


def test_the_last_word_counts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with run_store.create(fabricate.header(), folder):  # at work
        marks.put(folder, TASK, Feedback("up", "Sees the car.\nBoth."))
        marks.put(folder, TASK._replace(sample="s1"), Feedback("down"))
        assert marks.read(folder)[TASK] == Feedback("up", "Sees the car.\nBoth.")
    marks.put(folder, TASK, Feedback("down", "No."))
    marks.put(folder, TASK._replace(sample="s1"), Feedback())
    assert marks.read(folder) == {TASK: Feedback("down", "No.")}


def test_no_marks_and_odd_ones(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    fabricate.run(folder, [])
    assert marks.read(folder) == {}
    (folder / marks.MARKS).write_text('{"thumb": "up"}\nodd\n{"model": "ev", "sam')
    marks.put(folder, TASK, Feedback("up"))
    assert marks.read(folder) == {TASK: Feedback("up")}


def test_notes_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    assert marks.problem(folder) == ""
    marks.put(folder, TASK, Feedback("up"))
    with (folder / marks.MARKS).open("ab") as stream:
        stream.write(b'odd\n{"thumb": 5}\n')
    assert marks.problem(folder).startswith("2 of 3 lines of marks.jsonl cannot be read (line 2: ")
    (folder / marks.MARKS).unlink()
    (tmp_path / "outside").write_text("")
    (folder / marks.MARKS).symlink_to(tmp_path / "outside")
    assert "symbolic link" in marks.problem(folder)
    for use in (lambda: marks.read(folder), lambda: marks.put(folder, TASK, Feedback("down"))):
        with pytest.raises(StoreError, match="symbolic link"):
            use()
    assert (tmp_path / "outside").read_text() == ""


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="5,000 characters"):
        marks.put(tmp_path, TASK, Feedback("", "x" * 5000))
    with pytest.raises(StoreError, match="cannot be saved"):
        marks.put(tmp_path / "none", TASK, Feedback("up"))

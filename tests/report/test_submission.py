"""The file of answers: one object per question and model, nothing about what is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import BadInput
from engine.report import submission
from tests import fabricate


def test_an_object_per_question_and_model(tmp_path: Path) -> None:
    rows = fabricate.exam(8)
    rows[0]["text"] = 'Perhaps "all"\nü'
    run = fabricate.run(tmp_path / "r", rows)
    found = json.loads("".join(submission.pieces([run])))
    assert len(found) == 16
    assert found[0] == {"id": "s000", "task": "objects", "model": "ev", "answer": "",
                        "raw": 'Perhaps "all"\nü'}  # fmt: skip
    assert found[3] == {"id": "s001", "task": "objects", "model": "vl", "answer": "A", "raw": "A"}


def test_the_first_repeat_with_an_answer_counts(tmp_path: Path) -> None:
    ask = fabricate.question(0, "A")
    known = {key: ask[key] for key in ("choices", "choice_form", "right_letter", "question_task")}
    rows = [fabricate.failed("ev", "s000", **known), ask | {"repeat": 1, "text": "C"},
            ask | {"repeat": 2}, fabricate.failed("ev", "s001", **known)]  # fmt: skip
    found = json.loads("".join(submission.pieces([fabricate.run(tmp_path / "r", rows)])))
    assert [(one["id"], one["answer"], one["raw"]) for one in found] == [
        ("s000", "C", "C"), ("s001", "", None),
    ]  # fmt: skip


def test_runs_without_such_questions_have_none(tmp_path: Path) -> None:
    run = fabricate.run(tmp_path / "r", fabricate.pair(2))
    with pytest.raises(BadInput, match="no multiple-choice questions"):
        "".join(submission.pieces([run]))

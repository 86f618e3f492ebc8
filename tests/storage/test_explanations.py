"""Explanations kept with a run: the last one counts, and damage is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from engine.errors import StoreError
from engine.storage import explanations
from tests import fabricate


def line(**more: Any) -> dict[str, Any]:
    cell = {"box": [0, 0, 0.5, 1], "removed": [0, 0, 0.75, 1], "nats": 1.5, "fine": True}
    moment = {"index": 0, "label": "frame 0", "how": "replaced", "nats": -0.1}
    chance = {"p": 0.5, "permutations": 3, "sentence": "a", "probability": 0.5}
    return {
        **{"model": "ev", "sample": "s0", "repeat": 0, "prompt": "What?", "answer": "A road."},
        **{"words": "A road.", "said": True, "token_ids": [5, 6, 2], "scored": [0, 2]},
        **{"logprob": -0.5, "removal": "blur", "options": {"grid": 8, "fill": "blur"}},
        **{"cells": [cell], "moments": [moment], "chance": chance, "notes": ["A note."]},
        **{"cost": {"encodings": 3, "prefills": 2, "seconds": 0.5}, "ms": 500.0},
        **more,
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fabricate.run(tmp_path / "run", []).folder


@pytest.mark.parametrize(
    "change",
    [
        {"scored": [2, 2]},
        {"scored": [0, 4]},
        {"token_ids": []},
        {"token_ids": [-1, 2, 3]},
        {"words": ""},
        {"logprob": 1e12},
        {"removal": "magic"},
        {"cells": [{"box": [0.5, 0, 0.5, 1], "removed": [0, 0, 1, 1], "nats": 1, "fine": True}]},
        {"cells": [{"box": [0, 0, 1e-300, 1], "removed": [0, 0, 1, 1], "nats": 1, "fine": True}]},
        {"cells": [{"box": [0, 0, 2, 1], "removed": [0, 0, 1, 1], "nats": 1, "fine": True}]},
        {"cells": [{"box": [0, 0, 1, 1], "removed": [0, 0, 1, 1], "nats": "x", "fine": True}]},
        {"cells": [{"box": [0, 0, 1], "removed": [0, 0, 1, 1], "nats": 1, "fine": True}]},
        {"cells": "none"},
        {"moments": [{"index": -1, "label": "a", "how": "replaced", "nats": 0}]},
        {"chance": {"p": 1.5, "permutations": 3, "sentence": "a", "probability": 0.5}},
        {"chance": {"p": 0.5, "permutations": 3, "sentence": "a"}},
        {"chance": None},
        {"ms": -1},
    ],
)
def test_damaged_lines_are_left_out_and_told(folder: Path, change: dict[str, Any]) -> None:
    path = folder / explanations.EXPLANATIONS
    path.write_text(f"{json.dumps(line())}\n{json.dumps(line(repeat=1) | change)}\n")
    assert len(explanations.read(folder)) == 1
    told = explanations.problem(folder)
    assert told.startswith("1 of 2 lines of explanations.jsonl cannot be used (line 2: ")


def test_torn_and_foreign_lines_do_not_stop_the_reader(folder: Path) -> None:
    path = folder / explanations.EXPLANATIONS
    path.write_text(f'odd\n[]\n{json.dumps(line())}\n{{"model": "e')
    explanations.put(folder, line(repeat=1))
    assert [one.repeat for one in explanations.read(folder)] == [0, 1]


def test_a_full_file_takes_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explanations.put(folder, line())
    monkeypatch.setattr(explanations, "MAX_BYTES", 10)
    with pytest.raises(StoreError, match="at most 10 are used: move it away"):
        explanations.put(folder, line())


def test_what_is_no_file_is_told(folder: Path) -> None:
    (folder / explanations.EXPLANATIONS).mkdir()
    with pytest.raises(StoreError, match="cannot be read"):
        explanations.read(folder)
    assert "cannot be read" in explanations.problem(folder)
    for target in ("gone", "run.json"):
        (folder / explanations.EXPLANATIONS).rename(folder / f"no {target}")
        (folder / explanations.EXPLANATIONS).symlink_to(target)
        with pytest.raises(StoreError, match=r"it is a symbolic link\): make it a regular file"):
            explanations.put(folder, line())

"""Boxes of a record are accepted only if every one encloses a part of the picture."""

from __future__ import annotations

from typing import Any

import pytest

from engine.media.dataset_record import fields_of

GOOD = [0, 0.25, 0.5, 1]


def test_boxes_of_a_record() -> None:
    problems: list[str] = []
    found = fields_of({"boxes": {"car": [GOOD], "rail": []}}, problems)
    assert found.boxes == {"car": [(0, 0.25, 0.5, 1)], "rail": []} and not problems


@pytest.mark.parametrize(
    "value",
    [
        [GOOD],
        {"car": GOOD},
        {"car": {"0": GOOD}},
        {"car": [GOOD[:3]]},
        {"car": [[0, 0, 0, 1]]},
        {"car": [[0.5, 0, 0.25, 1]]},
        {"car": [[0, 0, 1.5, 1]]},
        {"car": [[-0.1, 0, 1, 1]]},
        {"car": [[0, 0, float("nan"), 1]]},
        {"car": [[0, 0, True, 1]]},
        {"car": [[0, 0, "1", 1]]},
        {"car": [[0, 0, 10**400, 1]]},
        {"car": [GOOD] * 101},
        {str(number): [] for number in range(101)},
    ],
)
def test_other_values_are_a_problem(value: Any) -> None:
    problems: list[str] = []
    fields = fields_of({"boxes": value, "split": "night", "task": 5}, problems)
    assert (fields.boxes, fields.split, fields.task) == ({}, "night", "")
    assert [problem.split()[0] for problem in problems] == ["boxes", "task"]
    assert (
        "instead of boxes by name, each as left, top, right and bottom from 0 to 1" in problems[0]
    )

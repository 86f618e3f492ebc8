"""Boxes of a record are accepted only if every one encloses a part of the picture."""

from __future__ import annotations

from typing import Any

import pytest

from engine.media.thing_boxes import MAX_BOXES, MAX_THINGS, thing_boxes

GOOD = [0, 0.25, 0.5, 1]


def test_boxes_of_a_record() -> None:
    assert thing_boxes({"car": [GOOD], "rail": []}) == {"car": ((0, 0.25, 0.5, 1),), "rail": ()}


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
        {"car": [GOOD] * (MAX_BOXES + 1)},
        {str(number): [] for number in range(MAX_THINGS + 1)},
    ],
)
def test_other_values_are_refused(value: Any) -> None:
    assert thing_boxes(value) is None

"""Checks the boxes of a scene's things, as they stand in a dataset's record.

Boundary: a value from a JSON file in, boxes or None out; never raises.
"""

from __future__ import annotations

from engine.types import Box

MAX_THINGS, MAX_BOXES = 100, 100  # of one record, and of one thing
WANTED = "boxes by name, each as left, top, right and bottom from 0 to 1"


def thing_boxes(value: object) -> dict[str, tuple[Box, ...]] | None:
    """name -> boxes; None if any of it has another form."""
    if not isinstance(value, dict) or len(value) > MAX_THINGS:
        return None
    found: dict[str, tuple[Box, ...]] = {}
    for name, boxes in value.items():
        if not isinstance(boxes, list) or len(boxes) > MAX_BOXES:
            return None
        checked = [box for box in map(_box, boxes) if box is not None]
        if len(checked) < len(boxes):
            return None
        found[name] = tuple(checked)
    return found


def _box(value: object) -> Box | None:
    """The box, or None if it is not four numbers that enclose a part of the picture."""
    if not isinstance(value, list) or len(value) != 4 or not all(map(_is_share, value)):
        return None
    left, top, right, bottom = map(float, value)
    return (left, top, right, bottom) if left < right and top < bottom else None


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= 1  # NaN is not

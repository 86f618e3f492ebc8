"""Where the things of a demo scene are: boxes of its middle frame, from the rendered labels.

Boundary: labels in, shares of the picture out.  A frame and the canvas of the whole event stream
have the same size, so one box holds for both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.demo.camera import KIND
from engine.types import Box

Pixels = npt.NDArray[np.bool_]
# The kinds of pixels that belong to each thing.
THINGS: dict[str, tuple[str, ...]] = {
    "lead vehicle": ("car", "truck"),
    "pedestrian": ("person",),
    "guardrail": ("rail",),
    "roadside": ("tree", "building", "rail"),
}
BOTH_SIDES = ("roadside",)  # a box for each half of the picture


def boxes(labels: npt.NDArray[np.uint8]) -> dict[str, tuple[Box, ...]]:
    """thing -> its boxes, from labels [F, H, W]; only things that the middle frame shows.

    The middle frame is what a model of single pictures sees.  A thing moves during the second, so
    the box is smaller than all places where it was.
    """
    middle = labels[len(labels) // 2]
    found: dict[str, tuple[Box, ...]] = {}
    for name, kinds in THINGS.items():
        shown = np.isin(middle, [KIND[kind] for kind in kinds])
        parts = _halves(shown) if name in BOTH_SIDES else [shown]
        if made := tuple(_box(part) for part in parts if part.any()):
            found[name] = made
    return found


def _halves(shown: Pixels) -> list[Pixels]:
    """The left and the right half of the picture, each in a picture of the full size."""
    left = np.arange(shown.shape[1]) < shown.shape[1] / 2
    return [shown & left, shown & ~left]


def _box(shown: Pixels) -> Box:
    """The smallest box around the pixels [H, W]."""
    height, width = shown.shape
    rows, columns = np.nonzero(shown)
    left, right = int(columns.min()) / width, (int(columns.max()) + 1) / width
    top, bottom = int(rows.min()) / height, (int(rows.max()) + 1) / height
    return round(left, 6), round(top, 6), round(right, 6), round(bottom, 6)

"""The strongest place of a map: each cell with its neighbours.

A box of several cells is removed for each cell, so a thing lowers the words in all boxes that cover
it, and the largest of these losses may belong to a box beside it.  The weighted mean with the eight
neighbours finds their middle (measured: docs/attribution.md).  Beyond the picture nothing is lost.

Boundary: boxes and losses in, values by box out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from engine.types import Box

NEAR = (-1, 0, 1)
WEIGHT = {(y, x): math.exp(-(y * y + x * x) / 2) for y in NEAR for x in NEAR}
TOTAL = sum(WEIGHT.values())


def smoothed(losses: Mapping[Box, float], grid: int) -> dict[Box, float]:
    """Each cell's value; cells cover the picture once, in a raster of `grid` x `grid` places.

    A cell that covers several places counts in each of them, and has the largest of their values.
    """
    place = {at: box for box in losses for at in places(box, grid)}
    values = {
        (row, column): sum(
            weight * losses[place[row + y, column + x]]
            for (y, x), weight in WEIGHT.items()
            if (row + y, column + x) in place
        )
        / TOTAL
        for row, column in place
    }
    return {box: max(values[at] for at in places(box, grid)) for box in losses}


def places(box: Box, grid: int) -> list[tuple[int, int]]:
    """Row and column of the raster's places whose centres lie in the box."""
    left, top, right, bottom = box
    columns = [column for column in range(grid) if left <= (column + 0.5) / grid < right]
    rows = [row for row in range(grid) if top <= (row + 0.5) / grid < bottom]
    return [(row, column) for row in rows for column in columns]

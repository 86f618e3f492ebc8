"""The cells of the maps, and the box that is removed with each.

Boundary: options in, boxes out; no pictures.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.attribution.explained import ExplainOptions, contains
from engine.storage.explanations import CellLoss
from engine.types import Box


@dataclass(frozen=True)
class Cell:
    """A cell of a map: its own box, and the box that is removed for it."""

    box: Box
    removed: Box
    fine: bool

    def loss(self, nats: float) -> CellLoss:
        return CellLoss(self.box, self.removed, nats, self.fine)


def coarse(options: ExplainOptions) -> tuple[Cell, ...]:
    """The cells of the first map, row by row; () without one, or if the fine map is no finer."""
    if options.coarse in (0, options.grid):
        return ()
    per_side = options.coarse
    return tuple(
        _cell(options, per_side, row, column, False)
        for row in range(per_side)
        for column in range(per_side)
    )


def fine(options: ExplainOptions, within: Box = (0.0, 0.0, 1.0, 1.0)) -> tuple[Cell, ...]:
    """The cells of the fine map whose centres lie in a box, row by row."""
    found = (
        _cell(options, options.grid, row, column, True)
        for row in range(options.grid)
        for column in range(options.grid)
    )
    return tuple(cell for cell in found if contains(within, cell.box))


def count(options: ExplainOptions) -> int:
    """The number of cells that are removed, of both maps."""
    first = coarse(options)
    if not first:
        return options.grid**2
    each = (options.grid // options.coarse) ** 2
    return len(first) + min(options.refined, len(first)) * each


def _cell(options: ExplainOptions, per_side: int, row: int, column: int, fine: bool) -> Cell:
    """A cell, and the larger of it and `side` fine cells around its centre, within the picture."""
    half = max(options.side / options.grid, 1 / per_side) / 2
    x, y = (column + 0.5) / per_side, (row + 0.5) / per_side
    box = (column / per_side, row / per_side, (column + 1) / per_side, (row + 1) / per_side)
    removed = (max(x - half, 0.0), max(y - half, 0.0), min(x + half, 1.0), min(y + half, 1.0))
    return Cell(box, removed, fine)

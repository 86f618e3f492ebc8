"""The strongest place is the middle of the cells that lose, not the largest single loss."""

from __future__ import annotations

from engine.attribution.smoothing import WEIGHT, smoothed
from engine.types import Box

GRID = 4


def cell(column: int, row: int, size: int = 1) -> Box:
    return column / GRID, row / GRID, (column + size) / GRID, (row + size) / GRID


def losses(**strong: float) -> dict[Box, float]:
    """A map of zeros with a loss at "cCrR"."""
    found = {cell(c, r): 0.0 for r in range(GRID) for c in range(GRID)}
    return found | {cell(int(name[1]), int(name[3])): loss for name, loss in strong.items()}


def strongest(values: dict[Box, float]) -> Box:
    return max(values, key=lambda box: values[box])


def test_the_middle_of_three_beats_a_larger_loss_beside_them() -> None:
    found = losses(c0r1=3.0, c1r1=3.0, c2r1=3.4)
    assert strongest(found) == cell(2, 1)  # control: the raw map
    assert strongest(smoothed(found, GRID)) == cell(1, 1)


def test_a_single_loss_stays_where_it_is_with_its_weight() -> None:
    values = smoothed(losses(c2r2=1.0), GRID)
    assert strongest(values) == cell(2, 2)
    assert values[cell(2, 2)] == WEIGHT[0, 0] / sum(WEIGHT.values())
    assert values[cell(0, 0)] == 0.0


def test_beyond_the_picture_nothing_is_lost() -> None:
    even = smoothed(dict.fromkeys(losses(), 1.0), GRID)
    assert even[cell(1, 1)] == 1.0 and even[cell(0, 0)] < 1.0


def test_a_coarse_cell_fills_its_places() -> None:
    fine = {box: loss for box, loss in losses(c2r2=2.0).items() if box[0] >= 0.5 and box[1] >= 0.5}
    coarse = {cell(0, 0, 2): 0.0, cell(2, 0, 2): 0.0, cell(0, 2, 2): 0.2}
    values = smoothed({**fine, **coarse}, GRID)
    assert set(values) == {*fine, *coarse} and strongest(values) == cell(2, 2)
    assert values[cell(0, 2, 2)] > values[cell(0, 0, 2)] > 0

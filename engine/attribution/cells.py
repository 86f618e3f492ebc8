"""The cells of the maps, the box that is removed with each, and what this costs before it runs."""

from __future__ import annotations

from math import ceil
from threading import Lock

from engine.attribution.explained import ExplainOptions, contains
from engine.storage.explanations import CellLoss, Cost
from engine.types import Box

_measured: dict[str, float] = {}  # model -> milliseconds per changed input, newest
_lock = Lock()


def coarse(options: ExplainOptions) -> tuple[CellLoss, ...]:
    """The cells of the first map, row by row, without their losses; () without such a map, or if
    the fine map is no finer."""
    return () if options.coarse in (0, options.grid) else _cells(options, options.coarse, False)


def fine(options: ExplainOptions, within: Box = (0.0, 0.0, 1.0, 1.0)) -> tuple[CellLoss, ...]:
    """The cells of the fine map whose centres lie in a box, row by row."""
    every = _cells(options, options.grid, True)
    return tuple(cell for cell in every if contains(within, cell.box))


def count(options: ExplainOptions) -> int:
    """The number of cells that are removed, of both maps."""
    first = coarse(options)
    if not first:
        return options.grid**2
    each = (options.grid // options.coarse) ** 2
    return len(first) + min(options.refined, len(first)) * each


def _cells(options: ExplainOptions, per_side: int, is_fine: bool) -> tuple[CellLoss, ...]:
    """Each cell; removed with it is the larger of it and `side` fine cells around its centre,
    within the picture."""
    half = max(options.side / options.grid, 1 / per_side) / 2
    found = []
    for row in range(per_side):
        for column in range(per_side):
            x, y = (column + 0.5) / per_side, (row + 0.5) / per_side
            left, top = column / per_side, row / per_side
            box = (left, top, (column + 1) / per_side, (row + 1) / per_side)
            removed = (
                max(x - half, 0.0),
                max(y - half, 0.0),
                min(x + half, 1.0),
                min(y + half, 1.0),
            )
            found.append(CellLoss(box, removed, 0.0, is_fine))
    return tuple(found)


def counted(
    options: ExplainOptions, pictures: int, raw: bool, batched: bool, model: str = ""
) -> Cost:
    """The cost for a sample with so many pictures; `raw`: they are drawn from raw events.

    `batched`: whether the model takes several inputs at once.  The seconds are known once the
    model was measured in this process.
    """
    first = len(coarse(options))
    moments = pictures * (2 if raw else 1) if options.time and pictures > 1 else 0
    groups = (1, first, count(options) - first, moments)  # computed one after another
    encodings = sum(groups)
    passes = sum(ceil(size / options.batch) for size in groups) if batched else encodings
    each = measured(model)
    return Cost(encodings, passes, None if each is None else encodings * each / 1000)


def measured(model: str) -> float | None:
    """Milliseconds per changed input; None if this process has not measured the model."""
    with _lock:
        return _measured.get(model)


def remember(model: str, ms: float) -> None:
    with _lock:
        _measured[model] = ms

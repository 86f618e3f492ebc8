"""Options and requests are checked; places and cells are found in words; an explanation that is
kept with a run comes back as it was, without its pictures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace as changed

from engine.attribution import explained as kept
from engine.attribution.explained import (
    ExplainOptions,
    ExplainRequest,
    Explanation,
    as_json,
)
from engine.errors import BadInput, StoreError
from engine.storage import explanations
from engine.storage.explanations import CellLoss, Chance, MomentLoss
from engine.types import Box, RunRequest, Sample
from tests import fabricate
from tests.attribution.made import explanation


def run() -> RunRequest:
    return RunRequest(Sample("s", "seq"), "some-model", "What is it?")


def cell(box: tuple[float, float, float, float], nats: float, fine: bool = True) -> CellLoss:
    return CellLoss(box, box, nats, fine)


def explained(*cells: CellLoss) -> Explanation:
    """With the default options."""
    return explanation(request=ExplainRequest(run(), "a car"), cells=cells)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"grid": 1}, "grid is 1: choose a value from 2 to 32."),
        ({"grid": 0}, "grid is 0"),
        ({"grid": 33}, "grid is 33"),
        ({"side": 0}, "side is 0: choose a value from 1 to 8."),
        ({"side": 9}, "side is 9"),
        ({"coarse": 9}, "coarse is 9"),
        ({"coarse": 3}, "coarse is 3, which does not divide a grid of 8: choose one of 1, 2, 4, 8"),
        ({"refined": -1}, "refined is -1"),
        ({"batch": 0}, "batch is 0"),
        ({"batch": 65}, "batch is 65"),
        ({"fill": "noise"}, "fill is 'noise': choose one of blur, neutral."),
    ],
)
def test_options_out_of_range_are_refused(values: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput) as error:
        ExplainOptions(**values)
    assert told in str(error.value)


GRID = 4


def square(column: int, row: int, size: int = 1) -> Box:
    return column / GRID, row / GRID, (column + size) / GRID, (row + size) / GRID


def losses(**strong: float) -> dict[Box, float]:
    """A map of zeros with a loss at "cCrR"."""
    found = {square(c, r): 0.0 for r in range(GRID) for c in range(GRID)}
    return found | {square(int(name[1]), int(name[3])): loss for name, loss in strong.items()}


def strongest(values: dict[Box, float]) -> Box:
    return max(values, key=lambda box: values[box])


def whole() -> Explanation:
    options = ExplainOptions(grid=6, side=2, coarse=3, fill="neutral")
    first = kept.coarse_cells(options)
    fine = kept.fine_cells(options, first[4].box)
    found = explained(*(changed(cell, nats=nats) for nats, cell in enumerate((*first, *fine))))
    return changed(
        found,
        request=replace(found.request, options=options),
        moments=(MomentLoss(1, "frame 3", "replaced", 0.25),),
        chance=Chance(0.02, 999, "A part matters.", 0.25),
        pictures=(np.zeros((4, 4, 3), np.uint8),),
        notes=("A note.",),
    )


def test_what_is_kept_comes_back(tmp_path: Path) -> None:
    folder, found = fabricate.run(tmp_path / "run", []).folder, whole()
    kept.keep(folder, found, 3)
    (stored,) = explanations.read(folder)
    assert stored.repeat == 3
    back = kept.restored(stored, run())
    assert as_json(back) == as_json(found) and back.pictures == ()
    assert back.strongest == found.strongest


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    folder = fabricate.run(tmp_path / "run", []).folder
    kept.keep(folder, whole(), 0)
    (stored,) = explanations.read(folder)
    for options in ({"grid": 1}, {"grid": "x"}, {"grid": 8, "coarse": 3}):
        with pytest.raises(StoreError, match="An explanation of the run cannot be used"):
            kept.restored(msgspec.structs.replace(stored, options=options), run())


def test_cells_that_hold_no_place_of_the_map_are_refused(tmp_path: Path) -> None:
    folder, found = fabricate.run(tmp_path / "run", []).folder, whole()
    kept.keep(folder, changed(found, cells=(*found.cells, cell((0, 0, 0.02, 1), 1.0))), 0)
    (stored,) = explanations.read(folder)
    with pytest.raises(StoreError, match="its cells are not those of its options"):
        kept.restored(stored, run())


def test_another_answer_than_the_runs_is_refused() -> None:
    kept.refuse_other((1, 2), (1, 2), run())
    for before in ((1, 3), (1,), None):
        with pytest.raises(BadInput, match="some-model answers sample 's' otherwise now"):
            kept.refuse_other((1, 2), before, run())

"""An explanation that is kept with a run comes back as it was, without its pictures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace as changed

from engine.attribution import explained as cells
from engine.attribution import kept
from engine.attribution.explained import ExplainOptions, Explanation, as_json
from engine.errors import BadInput, StoreError
from engine.storage import explanations
from engine.storage.explanations import Chance, MomentLoss
from tests import fabricate
from tests.attribution.test_explained import cell, explained, run


def whole() -> Explanation:
    options = ExplainOptions(grid=6, side=2, coarse=3, fill="neutral")
    first = cells.coarse_cells(options)
    fine = cells.fine_cells(options, first[4].box)
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


def test_all_maps_can_be_kept(tmp_path: Path) -> None:
    folder, found = fabricate.run(tmp_path / "run", []).folder, whole()
    for side in (2, 3, 7, 8, 12, 30, 31, 32):
        options = ExplainOptions(grid=side, side=1, coarse=0)
        cells_of = tuple(changed(cell, nats=0.5) for cell in cells.fine_cells(options))
        request = replace(found.request, options=options)
        kept.keep(folder, changed(found, request=request, cells=cells_of), side)
    for stored in explanations.read(folder):
        assert len(kept.restored(stored, run()).cells) == stored.repeat**2


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

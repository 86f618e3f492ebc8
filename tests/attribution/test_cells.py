"""The cells cover the picture once, and each is removed with its neighbourhood."""

from __future__ import annotations

import pytest

from engine.attribution import explained as cells
from engine.attribution.explained import ExplainOptions, contains

OPTIONS = ExplainOptions(grid=8, side=3, coarse=4, refined=3)


def test_the_coarse_cells_and_the_fine_ones_within_them_cover_the_picture() -> None:
    coarse = cells.coarse_cells(OPTIONS)
    assert len(coarse) == 16 and not any(cell.fine for cell in coarse)
    inside = [cells.fine_cells(OPTIONS, cell.box) for cell in coarse]
    assert [len(some) for some in inside] == [4] * 16
    assert {cell.box for some in inside for cell in some} == {
        c.box for c in cells.fine_cells(OPTIONS)
    }
    area = sum((c.box[2] - c.box[0]) * (c.box[3] - c.box[1]) for c in cells.fine_cells(OPTIONS))
    assert area == pytest.approx(1)


def test_a_cell_is_removed_with_the_cells_around_it() -> None:
    middle = next(
        cell for cell in cells.fine_cells(OPTIONS) if contains(cell.box, (0.4, 0.4, 0.4, 0.4))
    )
    assert middle.box == (0.375, 0.375, 0.5, 0.5)
    assert middle.removed == (0.25, 0.25, 0.625, 0.625)
    corner = cells.fine_cells(OPTIONS)[0]
    assert corner.removed == (0, 0, 0.25, 0.25)  # nothing beyond the picture


def test_an_even_side_takes_half_a_cell_more_on_each_side() -> None:
    options = ExplainOptions(grid=8, side=2, coarse=4)
    assert cells.fine_cells(options)[9].removed == (0.0625, 0.0625, 0.3125, 0.3125)


def test_a_coarse_cell_is_removed_whole() -> None:
    cell = cells.coarse_cells(ExplainOptions(grid=8, side=1, coarse=2))[3]
    assert cell.removed == cell.box == (0.5, 0.5, 1, 1)


@pytest.mark.parametrize("coarse", [0, 8])
def test_without_a_coarser_map_all_fine_cells_are_computed(coarse: int) -> None:
    options = ExplainOptions(grid=8, coarse=coarse)
    assert (
        cells.coarse_cells(options) == () and cells.cost_of(options, 1, False, True).encodings == 65
    )


def test_the_default_cost_is_under_100_encodings() -> None:
    default = ExplainOptions()
    for pictures, raw in ((8, False), (5, True), (5, False), (1, False)):
        assert cells.cost_of(default, pictures, raw, True).encodings < 100


def test_the_cost_counts_inputs_and_passes() -> None:
    options = ExplainOptions(grid=8, coarse=4, refined=3, batch=8)
    batched = cells.cost_of(options, 5, True, True)
    assert (batched.encodings, batched.prefills) == (1 + 16 + 10 + 12, 1 + 2 + 2 + 2)
    alone = cells.cost_of(options, 5, True, False)
    assert alone.prefills == alone.encodings == 39
    assert cells.cost_of(options, 1, False, True).encodings == 1 + 16 + 12
    no_time = ExplainOptions(grid=8, coarse=4, refined=3, time=False)
    assert cells.cost_of(no_time, 5, True, True).encodings == 1 + 16 + 12
    assert batched.seconds is None


def test_the_seconds_follow_from_the_models_own_time() -> None:
    cells.measured_ms["measured-model"] = 200.0
    found = cells.cost_of(OPTIONS, 1, False, True, "measured-model")
    assert found.seconds == pytest.approx(found.encodings * 0.2)
    assert cells.cost_of(OPTIONS, 1, False, True, "another-model").seconds is None

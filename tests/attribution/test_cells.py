"""The cells cover the picture once, and each is removed with its neighbourhood."""

import pytest

from engine.attribution import explained as cells
from engine.attribution.explained import ExplainOptions

OPTIONS = ExplainOptions(grid=8, side=3, coarse=4, refined=3)


def test_a_coarse_cell_is_removed_whole() -> None:
    cell = cells.coarse_cells(ExplainOptions(grid=8, side=1, coarse=2))[3]
    assert cell.removed == cell.box == (0.5, 0.5, 1, 1)


def test_the_default_cost_is_under_100_encodings() -> None:
    default = ExplainOptions()
    for pictures, raw in ((8, False), (5, True), (5, False), (1, False)):
        assert cells.cost_of(default, pictures, raw, True).encodings < 100


def test_the_seconds_follow_from_the_models_own_time() -> None:
    cells.measured_ms["measured-model"] = 200.0
    found = cells.cost_of(OPTIONS, 1, False, True, "measured-model")
    assert found.seconds == pytest.approx(found.encodings * 0.2)
    assert cells.cost_of(OPTIONS, 1, False, True, "another-model").seconds is None

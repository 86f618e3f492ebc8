"""Options and requests are checked; places and cells are found in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.attribution.explained import (
    WEIGHT,
    ExplainOptions,
    ExplainRequest,
    Explanation,
    as_json,
    place,
    smoothed,
)
from engine.errors import BadInput
from engine.storage.explanations import CellLoss, Cost
from engine.types import Box, RunRequest, Sample
from tests.attribution.made import explanation


def run() -> RunRequest:
    return RunRequest(Sample("s", "seq"), "some-model", "What is it?")


def cell(box: tuple[float, float, float, float], nats: float, fine: bool = True) -> CellLoss:
    return CellLoss(box, box, nats, fine)


def explained(*cells: CellLoss) -> Explanation:
    """With the default options, and without a test."""
    return explanation(request=ExplainRequest(run(), "a car"), cells=cells, chance=None)


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


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", "The text to explain is empty"),
        ("  \n", "The text to explain is empty"),
        ("a" * 2001, "2,001 characters: shorten it to 2,000"),
        ("a \udcff car", "which is not a character: use UTF-8"),
    ],
)
def test_words_of_no_use_are_refused(words: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        ExplainRequest(run(), words)


def test_places_are_named() -> None:
    assert place((0, 0.4, 0.1, 0.5)) == "left, middle height"
    assert place((0.9, 0.9, 1, 1)) == "right, bottom"
    assert place((0.4, 0, 0.6, 0.1)) == "middle, top"


def test_fine_cells_replace_the_coarse_cell_that_holds_them() -> None:
    left, right = cell((0, 0, 0.5, 1), 1.0, False), cell((0.5, 0, 1, 1), 3.0, False)
    fine = cell((0.5, 0, 0.75, 0.5), 2.0), cell((0.75, 0, 1, 0.5), 0.5)
    found = explained(left, right, *fine)
    assert found.shown_cells == (left, *fine)
    assert [one.nats for one in found.strongest] == [2.0, 1.0, 0.5]


def test_a_result_is_plain_json() -> None:
    found = as_json(explained(cell((0, 0, 1, 1), 1.5)))
    assert json.loads(json.dumps(found, allow_nan=False))["cells"][0]["nats"] == 1.5


def test_the_cost_says_what_is_not_known() -> None:
    assert Cost(43, 7).sentence == "43 encodings, 7 prefills; time: not measured yet."
    assert Cost(2, 2, 0.01).sentence == "2 encodings, 2 prefills; time: under 0.1 s."
    assert Cost(43, 1, 12.3).sentence == "43 encodings, 1 prefill; time: about 12 s."


GRID = 4


def square(column: int, row: int, size: int = 1) -> Box:
    return column / GRID, row / GRID, (column + size) / GRID, (row + size) / GRID


def losses(**strong: float) -> dict[Box, float]:
    """A map of zeros with a loss at "cCrR"."""
    found = {square(c, r): 0.0 for r in range(GRID) for c in range(GRID)}
    return found | {square(int(name[1]), int(name[3])): loss for name, loss in strong.items()}


def strongest(values: dict[Box, float]) -> Box:
    return max(values, key=lambda box: values[box])


def test_the_middle_of_three_beats_a_larger_loss_beside_them() -> None:
    found = losses(c0r1=3.0, c1r1=3.0, c2r1=3.4)
    assert strongest(found) == square(2, 1)  # control: the raw map
    assert strongest(smoothed(found, GRID)) == square(1, 1)


def test_a_single_loss_stays_where_it_is_with_its_weight() -> None:
    values = smoothed(losses(c2r2=1.0), GRID)
    assert strongest(values) == square(2, 2)
    assert values[square(2, 2)] == WEIGHT[0, 0] / sum(WEIGHT.values())
    assert values[square(0, 0)] == 0.0


def test_beyond_the_picture_nothing_is_lost() -> None:
    even = smoothed(dict.fromkeys(losses(), 1.0), GRID)
    assert even[square(1, 1)] == 1.0 and even[square(0, 0)] < 1.0


def test_a_coarse_cell_fills_its_places() -> None:
    fine = {box: loss for box, loss in losses(c2r2=2.0).items() if box[0] >= 0.5 and box[1] >= 0.5}
    coarse = {square(0, 0, 2): 0.0, square(2, 0, 2): 0.0, square(0, 2, 2): 0.2}
    values = smoothed({**fine, **coarse}, GRID)
    assert set(values) == {*fine, *coarse} and strongest(values) == square(2, 2)
    assert values[square(0, 2, 2)] > values[square(0, 0, 2)] > 0

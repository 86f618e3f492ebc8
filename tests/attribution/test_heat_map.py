"""The map of an explanation: which pixels have which colour."""

from __future__ import annotations

import io

import numpy as np
import numpy.typing as npt
from PIL import Image as Pictures

from engine.attribution import heat_map
from engine.attribution.explained import Explanation
from engine.types import Image
from tests.attribution.made import NO_CHANCE, cell, explanation

GREY: Image = np.full((60, 80, 3), 128, np.uint8)
CENTRES = {(0, 0): (0.25, 0.25), (1, 0): (0.75, 0.25), (0, 1): (0.25, 0.75), (1, 1): (0.75, 0.75)}


def drawn(found: Explanation, pictures: int = 1) -> npt.NDArray[np.int64]:
    data = heat_map.png(found, (GREY,) * pictures, legend=False)
    return np.asarray(Pictures.open(io.BytesIO(data)).convert("RGB"), dtype=np.int64)


def colours(found: Explanation) -> dict[tuple[int, int], list[int]]:
    """The colour in the middle of each of four cells."""
    page = drawn(found)
    height, width = page.shape[:2]
    return {name: list(page[int(y * height), int(x * width)]) for name, (x, y) in CENTRES.items()}


def test_zero_has_no_colour_and_the_signs_have_their_own() -> None:
    found = colours(explanation())
    assert found[0, 0] == [128] * 3
    weak, strong, gained = found[0, 1], found[1, 1], found[1, 0]
    assert strong[0] > weak[0] > 128 > weak[2] > strong[2]  # orange
    assert gained[2] > gained[0] and gained[2] > 128  # purple


def test_a_map_that_may_be_chance_is_muted_and_has_no_frame() -> None:
    clear, muted = explanation(), explanation(chance=NO_CHANCE)
    assert abs(colours(muted)[1, 1][2] - 128) < abs(colours(clear)[1, 1][2] - 128) / 2
    assert drawn(clear).max() == 255 and drawn(muted).max() < 200


def test_equal_pictures_get_equal_maps_beside_each_other() -> None:
    page = drawn(explanation(), pictures=2)
    half = page.shape[1] // 2
    assert abs(int(page[:, :half].mean()) - int(page[:, half:].mean())) <= 3
    assert page.shape[1] > 1.5 * page.shape[0]


def test_nothing_lost_anywhere_is_a_grey_picture() -> None:
    page = drawn(explanation(cells=(cell(0, 0, 0.0), cell(1, 1, 0.0))))
    assert set(np.unique(page)) == {128}


def test_a_legend_is_below_the_pictures() -> None:
    found = explanation()
    plain, whole = (heat_map.png(found, (GREY,), legend=one) for one in (False, True))
    sizes = [Pictures.open(io.BytesIO(data)).size for data in (plain, whole)]
    assert sizes[0][0] == sizes[1][0] and sizes[0][1] < sizes[1][1]

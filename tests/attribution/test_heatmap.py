"""The heat map colours the cells by their losses."""

import io

import numpy as np
from PIL import Image as Pictures

from engine.attribution import occlusion
from engine.attribution.explained import Explanation
from tests.attribution import made
from tests.attribution.test_explained import cell

GREY = np.full((20, 40, 3), 128, np.uint8)
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def test_a_loss_colours_its_cell_and_no_other() -> None:
    found = occlusion.overlaid(GREY, (cell(LEFT, 2.0), cell(RIGHT, 0.0)))
    assert (found[:, 20:] == 128).all() and not (found[:, :20] == 128).all()
    other = occlusion.overlaid(GREY, (cell(LEFT, 0.0), cell(RIGHT, 2.0)))  # the control
    assert not np.array_equal(found, other)


def test_gains_have_another_colour_and_smaller_losses_a_weaker_one() -> None:
    assert occlusion.colour(1.0, 2.0)[:3] != occlusion.colour(-1.0, 2.0)[:3]
    assert occlusion.colour(1.0, 2.0)[3] == occlusion.colour(2.0, 2.0)[3] / 2
    assert occlusion.colour(0.0, 0.0)[3] == 0


def colours(found: Explanation, pictures: int = 1) -> np.ndarray:
    """The sheet's pixels."""
    data = occlusion.heat_map(found, (GREY,) * pictures)
    return np.asarray(Pictures.open(io.BytesIO(data)).convert("RGB"), dtype=int)


def test_a_sheet_shows_every_picture_under_the_map_and_frames_the_strongest_cell() -> None:
    found = made.explanation()
    page = colours(found)
    height, width = page.shape[:2]
    kept = [[*page[y, x]] for y in (height // 4, 3 * height // 4) for x in (width // 4,)]
    assert kept[0] == [128, 128, 128] and kept[1][0] > 128 > kept[1][2]
    assert page.max() == 255 and page.min() == 0  # the frame
    assert colours(found, 2).shape != page.shape

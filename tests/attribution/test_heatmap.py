"""The heat map colours the cells by their losses, and says the scale."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
from PIL import Image as Pictures

from engine.attribution import heatmap
from engine.attribution.explained import MomentLoss, nats_text
from tests.attribution.test_explained import cell, explained

GREY = np.full((20, 40, 3), 128, np.uint8)
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def test_a_loss_colours_its_cell_and_no_other() -> None:
    found = heatmap.overlaid(GREY, (cell(LEFT, 2.0), cell(RIGHT, 0.0)))
    assert (found[:, 20:] == 128).all() and not (found[:, :20] == 128).all()
    other = heatmap.overlaid(GREY, (cell(LEFT, 0.0), cell(RIGHT, 2.0)))  # the control
    assert not np.array_equal(found, other)


def test_gains_have_another_colour_and_smaller_losses_a_weaker_one() -> None:
    assert heatmap.colour(1.0, 2.0)[:3] != heatmap.colour(-1.0, 2.0)[:3]
    assert heatmap.colour(1.0, 2.0)[3] == heatmap.colour(2.0, 2.0)[3] / 2
    assert heatmap.colour(0.0, 0.0)[3] == 0


def test_the_png_shows_every_picture() -> None:
    one = explained(cell(LEFT, 2.0), cell(RIGHT, -1.0))
    moments = (MomentLoss(0, "frame 0", "replaced", 0.5), MomentLoss(1, "frame 3", "replaced", 0.0))
    sizes = []
    for count in (1, 2, 8):
        found = replace(one, pictures=(GREY,) * count, moments=moments)
        with Pictures.open(io.BytesIO(heatmap.png(found))) as picture:
            assert picture.format == "PNG"
            sizes.append(picture.size)
    assert sizes[0][0] <= sizes[1][0] < sizes[2][0] and sizes[1][1] < sizes[2][1]
    assert heatmap.png(replace(one, pictures=(GREY,))) != heatmap.png(
        replace(explained(cell(LEFT, -1.0), cell(RIGHT, 2.0)), pictures=(GREY,))
    )


def test_any_words_and_no_pictures_can_be_drawn() -> None:
    words = "\N{CJK UNIFIED IDEOGRAPH-4E2D}" * 500 + " word" * 400
    assert heatmap.png(replace(explained(cell(LEFT, 0.0)), words=words))


def test_losses_in_words() -> None:
    assert [nats_text(one) for one in (4.812, -0.021, -0.001, 0.0)] == [
        "+4.81 nats", "-0.02 nats", "0.00 nats", "0.00 nats",
    ]  # fmt: skip

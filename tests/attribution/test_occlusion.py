"""Only the named place changes, and event pictures are as if the events had been dropped."""

import io
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image as Pictures

from engine.attribution import occlusion
from engine.attribution.explained import Explanation, Fill
from engine.attribution.occlusion import Occlusion, area
from engine.media import events
from engine.media_options import Split
from engine.types import Box, ChosenFrames, Events, Extent, Image, Media
from tests.attribution import made
from tests.attribution.test_explained import cell
from tests.media.test_events import stream

BOX: Box = (0.25, 0.5, 0.625, 0.75)
SPLITS = (Split("count", 4), Split("time", 3), Split("densest", 3))
GREY = np.full((20, 40, 3), 128, np.uint8)
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)


def video(count: int = 3, height: int = 24, width: int = 32) -> Media:
    rng = np.random.default_rng(1)
    pictures = tuple(rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for _ in range(count))
    frames = ChosenFrames(tuple(range(0, 3 * count, 3)), 3 * count)
    return Media("video", pictures, "digest", "frames", frames=frames)


def drawn(found: Events, split: Split, extent: Extent) -> Media:
    pictures = tuple(events.render(found, split, extent))
    return Media("events", pictures, "digest", "raw events", extent)


def outside(picture: Image, box: Box, canvas: tuple[int, int]) -> npt.NDArray[Any]:
    """The pixels outside the box, as one list."""
    mask = np.ones(picture.shape[:2], np.bool_)
    mask[area(box, canvas)] = False
    return picture[mask]


@pytest.mark.parametrize("fill", ["blur", "neutral"])
def test_frames_change_within_the_box_only(fill: Fill) -> None:
    plain = video()
    changed = Occlusion(plain, fill).without(BOX)
    assert changed.digest != plain.digest and len(changed.images) == 3
    for before, after in zip(plain.images, changed.images, strict=True):
        canvas = before.shape[0], before.shape[1]
        assert np.array_equal(outside(before, BOX, canvas), outside(after, BOX, canvas))
        rows, columns = area(BOX, canvas)
        assert (before[rows, columns] != after[rows, columns]).mean() > 0.9
        moved = (0.0, 0.0, 0.5, 0.5)  # the control: another box is seen
        assert not np.array_equal(outside(before, moved, canvas), outside(after, moved, canvas))


def test_neutral_is_the_mean_colour() -> None:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0] = (200, 100, 0)
    assert (occlusion.neutral(picture) == (100, 50, 0)).all()


@pytest.mark.parametrize("extent", ["slice", "stream"])
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_event_pictures_are_as_if_the_events_had_been_dropped(split: Split, extent: Extent) -> None:
    found = stream(900, width=20, height=16)
    found = replace(found, x=(found.x * np.linspace(0.5, 1, 900)).astype(np.uint16))
    hidden = Occlusion(drawn(found, split, extent), raw=True)
    assert hidden.removal == "events" and hidden.canvas is not None
    changed = hidden.without(BOX)
    dropped = without_events(found, split, hidden, BOX)
    assert all(map(np.array_equal, changed.images, dropped))
    # Controls: the box was not empty, and another box gives other pictures.
    assert not all(map(np.array_equal, changed.images, hidden.plain.images))
    other = without_events(found, split, hidden, (0.0, 0.0, 0.5, 0.5))
    assert not all(map(np.array_equal, changed.images, other))


def without_events(found: Events, split: Split, hidden: Occlusion, box: Box) -> list[Image]:
    """Drawn from the events outside the box, in the parts and sizes of the whole stream."""
    assert hidden.canvas is not None
    rows, columns = area(box, hidden.canvas)
    pictures = []
    for part, plain in zip(events.parts(found, split), hidden.plain.images, strict=True):
        some = found.take(part)
        inside = (some.y >= rows.start) & (some.y < rows.stop)
        inside &= (some.x >= columns.start) & (some.x < columns.stop)
        left = replace(some.take(~inside), height=plain.shape[0], width=plain.shape[1])
        pictures.append(events.draw(left, slice(None), "stream"))
    return pictures


def test_a_cell_smaller_than_a_pixel_still_removes_one() -> None:
    assert area((0.99, 0.0, 1.0, 0.01), (4, 4)) == (slice(0, 1), slice(3, 4))


def test_the_edges_of_a_box_are_rounded_to_the_nearest_pixel() -> None:
    assert area((0.4, 0.1, 0.9, 0.6), (4, 4)) == (slice(0, 2), slice(2, 4))


def test_a_bin_of_raw_events_is_emptied_on_the_same_canvas() -> None:
    hidden = Occlusion(drawn(stream(400), Split("count", 4), "slice"), raw=True)
    moments = list(hidden.moments())
    assert [one.how for one in moments] == ["replaced"] * 4 + ["emptied"] * 4
    changed = hidden.at(moments[5])
    plain = hidden.plain.images
    assert (changed.images[1] == 255).all() and changed.images[1].shape == plain[1].shape
    assert all(changed.images[n] is plain[n] for n in (0, 2, 3))


def test_a_single_picture_has_no_moments() -> None:
    assert list(Occlusion(video(1)).moments()) == []


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

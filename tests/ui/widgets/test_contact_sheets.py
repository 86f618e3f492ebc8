"""Contact sheets and previews."""

from __future__ import annotations

import base64
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from streamlit.elements.lib import image_utils
from streamlit.elements.lib.layout_utils import LayoutConfig
from streamlit.testing.v1 import AppTest

from engine.errors import MediaError
from engine.types import MediaOptions, Sample
from engine.viewing import picture_sheet
from tests.conftest import picture
from ui.widgets import contact_sheets


def flat(colour: tuple[int, int, int], size: tuple[int, int] = (480, 640)) -> np.ndarray:
    return np.full((*size, 3), colour, dtype=np.uint8)


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGBA")


def behind(address: str) -> Image.Image:
    """The picture that a data URL holds."""
    kind, data = address.split(",", 1)
    assert kind == "data:image/webp;base64"
    return opened(base64.b64decode(data, validate=True))


@pytest.mark.parametrize(
    ("number", "columns", "cell"), [(1, 1, (800, 600)), (5, 3, (400, 300)), (8, 4, (300, 225))]
)
def test_the_grid_fills_the_sheet(number: int, columns: int, cell: tuple[int, int]) -> None:
    assert picture_sheet.grid(number, 4 / 3) == (columns, cell)


@pytest.mark.parametrize("aspect", [0.2, 1.0, 4 / 3, 5.0])
@pytest.mark.parametrize("number", [1, 2, 3, 7, 64])
def test_no_picture_leaves_the_sheet(number: int, aspect: float) -> None:
    columns, (width, height) = picture_sheet.grid(number, aspect)
    assert columns * width <= picture_sheet.SHEET[0]
    assert -(-number // columns) * height <= picture_sheet.SHEET[1]


def test_a_sheet_is_in_reading_order_and_empty_where_nothing_is() -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255)]
    sheet = picture_sheet.sheet([flat(colour) for colour in colours])
    assert sheet.size == picture_sheet.SHEET
    centres = [(200 + 400 * (i % 3), 150 + 300 * (i // 3)) for i in range(5)]
    for centre, colour in zip(centres, colours, strict=True):
        seen = sheet.getpixel(centre)
        assert isinstance(seen, tuple)
        assert np.abs(np.subtract(seen[:3], colour)).max() < 12
    empty = sheet.getpixel((1000, 450))
    assert isinstance(empty, tuple) and empty[3] == 0


def test_a_sheet_holds_pictures_of_different_sizes() -> None:
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (0, 255, 255)]
    sizes = [(30, 40), (480, 20), (240, 640), (1, 1), (480, 640)]
    sheet = picture_sheet.sheet([flat(*pair) for pair in zip(colours, sizes, strict=True)])
    assert sheet.size == picture_sheet.SHEET
    for index, (colour, (height, width)) in enumerate(zip(colours, sizes, strict=True)):
        left, top = 400 * (index % 3), 300 * (index // 3)
        cell = np.asarray(sheet.crop((left, top, left + 400, top + 300)))
        painted = cell[..., 3] > 200
        rows, columns = painted.any(1).sum(), painted.any(0).sum()
        assert np.abs(cell[painted][:, :3].mean(0) - colour).max() < 12
        assert columns / rows == pytest.approx(width / height, rel=0.1)
        assert rows in range(290, 301) or columns in range(390, 401)


def test_what_a_model_sees_says_how_many_and_whence(sample: Sample) -> None:
    events, video = (
        contact_sheets.seen(sample, kind, MediaOptions()) for kind in ("events", "video")
    )
    assert "5 event images" in events.caption and "5 event images" in events.alt
    assert "8 frames" in video.caption and "evenly spaced" in video.caption
    assert sample.id in video.alt
    assert behind(events.picture).size == picture_sheet.SHEET


def test_pictures_that_cannot_be_read_are_an_error() -> None:
    with pytest.raises(MediaError):
        contact_sheets.seen(Sample("s", ""), "video", MediaOptions())


def test_each_sample_has_its_own_preview(tmp_path: Path) -> None:
    one, two = (Sample(f"s{n}", "", images=(picture(tmp_path / f"{n}.png", n),)) for n in (1, 2))
    assert contact_sheets.preview(one) != contact_sheets.preview(two)
    assert contact_sheets.preview(Sample("none", "")) is None


@pytest.mark.parametrize("size", [(3, 20_000), (20_000, 3)])
def test_extreme_shapes_have_a_preview_and_a_sheet(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "long.png"
    Image.new("RGB", size, "red").save(path)
    preview = contact_sheets.preview(Sample(id=f"long{size[0]}", sequence="", images=(path,)))
    assert preview is not None and max(behind(preview).size) <= 320
    sheet = picture_sheet.sheet([np.zeros((size[1], size[0], 3), dtype=np.uint8)])
    assert sheet.size == picture_sheet.SHEET


def test_a_changed_file_has_a_new_preview(tmp_path: Path) -> None:
    sample = Sample("s", "", images=(picture(tmp_path / "a.png", 1),))
    before = contact_sheets.preview(sample)
    picture(tmp_path / "a.png", 2)
    os.utime(tmp_path / "a.png", ns=(1, 1))
    assert contact_sheets.preview(sample) != before


def test_a_file_that_is_gone_has_a_stamp_too(tmp_path: Path) -> None:
    gone = tmp_path / "gone.png"
    before = contact_sheets.stamp_of(Sample("s", "", images=(gone,)))
    assert before == f"{gone} is gone"
    picture(gone, 1)
    assert contact_sheets.stamp_of(Sample("s", "", images=(gone,))) != before


def test_streamlit_encodes_no_picture_again(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rerun of a page with its pictures in the caches opens and writes none of them."""

    def page(sample: object) -> None:
        import streamlit as st

        from engine.types import MediaOptions
        from ui.widgets import contact_sheets

        st.image(contact_sheets.seen(sample, "events", MediaOptions()).picture, width="stretch")
        st.image(contact_sheets.preview(sample) or "", width=200)

    at = AppTest.from_function(page, args=(sample,), default_timeout=60).run()
    monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("opened"))
    monkeypatch.setattr(Image.Image, "save", lambda *_, **__: pytest.fail("encoded"))
    at.run()
    assert not at.exception and len(at.get("image")) == 2
    with pytest.raises(pytest.fail.Exception, match="opened"):  # the control
        image_utils.image_to_url(b"RIFF", LayoutConfig("stretch"), False, "RGB", "auto", "0")

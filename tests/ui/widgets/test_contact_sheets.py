"""Contact sheets and previews."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engine.media import thumbnails
from engine.types import Sample
from tests.conftest import picture
from ui.widgets import contact_sheets


def behind(address: str) -> Image.Image:
    """The picture that a data URL holds."""
    kind, data = address.split(",", 1)
    assert kind == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(data, validate=True)))


@pytest.mark.parametrize("size", [(3, 20_000), (20_000, 3)])
def test_extreme_shapes_have_a_preview_and_a_sheet(tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "long.png"
    Image.new("RGB", size, "red").save(path)
    preview = contact_sheets.preview(Sample(id=f"long{size[0]}", sequence="", images=(path,)))
    assert preview is not None and max(behind(preview).size) <= 320
    sheet = thumbnails.sheet([np.zeros((size[1], size[0], 3), dtype=np.uint8)])
    assert sheet.size == thumbnails.SHEET


def test_a_file_that_is_gone_has_a_stamp_too(tmp_path: Path) -> None:
    gone = tmp_path / "gone.png"
    before = contact_sheets.stamp_of(Sample("s", "", images=(gone,)))
    assert before == f"{gone} is gone"
    picture(gone, 1)
    assert contact_sheets.stamp_of(Sample("s", "", images=(gone,))) != before

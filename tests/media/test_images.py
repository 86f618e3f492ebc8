"""PNG and JPEG files: what is read, exactly, and what is refused."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from engine.errors import MediaError
from engine.media import images


def noise(height: int = 24, width: int = 32) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def encoded(picture: Pillow.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def test_a_png_keeps_every_pixel(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(Pillow.fromarray(noise())))
    found = images.read(tmp_path / "a.png")
    np.testing.assert_array_equal(found, noise())
    assert found.dtype == np.uint8
    assert found.flags.writeable


def test_sixteen_bits_of_grey_are_scaled_not_clipped() -> None:
    grey = np.linspace(0, 65535, 24 * 32).reshape(24, 32).astype(np.uint16)
    found = images.decode(encoded(Pillow.fromarray(grey)), "a")
    assert found.shape == (24, 32, 3) and (found[..., 0] == found[..., 2]).all()
    np.testing.assert_allclose(found[..., 1], grey / 257, atol=0.51)


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "LA", "CMYK"])
def test_other_modes_become_rgb(mode: str) -> None:
    picture = Pillow.fromarray(noise()).convert(mode)
    found = images.decode(encoded(picture, "JPEG" if mode == "CMYK" else "PNG"), "a")
    assert found.shape == (24, 32, 3)
    if mode != "CMYK":
        np.testing.assert_array_equal(found, np.array(picture.convert("RGB")))


def test_a_sideways_photo_is_turned() -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    picture = Pillow.fromarray(np.repeat(noise(2, 4), 8, 0).repeat(8, 1))
    assert images.decode(encoded(picture, "JPEG", exif=exif), "a").shape == (32, 16, 3)


def test_cut_and_damaged_files() -> None:
    png = encoded(Pillow.fromarray(noise()))
    flipped = bytearray(png)
    flipped[len(png) // 2] ^= 1
    checksum = bytearray(png)
    checksum[-13] ^= 1  # The last byte of the pixels' checksum: the pixels still decode.
    jpeg = encoded(Pillow.fromarray(noise()), "JPEG")
    cut = [png[:20], png[: len(png) // 2], jpeg[: len(jpeg) // 2], b"nothing"]
    for data in (*cut, bytes(flipped), bytes(checksum)):
        with pytest.raises(MediaError, match=r"^a\.png is not a complete PNG or JPEG \(.+\)"):
            images.decode(data, "a.png")


def test_other_kinds_of_pictures_are_not_opened() -> None:
    """Each decoder that is not needed is one less that a hostile file can reach."""
    for kind, name in (("GIF", "GIF"), ("BMP", "BMP"), ("TIFF", "TIFF"), ("WEBP", "WebP")):
        with pytest.raises(MediaError, match=rf"^a\.png is a {name}.*: save it as PNG\.$"):
            images.decode(encoded(Pillow.fromarray(noise()), kind), "a.png")


@pytest.mark.parametrize("side", [8_000, 10_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_pictures_that_would_fill_the_memory(side: int) -> None:
    data = encoded(Pillow.new("1", (side, side)))
    assert len(data) < 100_000
    with pytest.raises(MediaError, match=r"a is .*make it smaller"):
        images.decode(data, "a")


def test_a_picture_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Pillow.fromarray(noise()))
    monkeypatch.setattr(images, "MAX_BYTES", len(data))
    images.decode(data, "a")
    with pytest.raises(MediaError, match=r"a has .* bytes: give a picture of at most"):
        images.decode(data + b"x", "a")


@pytest.mark.parametrize("content", [None, b""])
def test_missing_and_empty_files(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.png"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MediaError, match=r"a\.png (is empty|does not exist)"):
        images.read(path)
    with pytest.raises(MediaError, match="not a file"):
        images.read(tmp_path)


def test_previews_are_no_wider_than_asked() -> None:
    assert images.shrink(noise(24, 32), 16).shape == (12, 16, 3)
    assert images.shrink(noise(24, 32), 320).shape == (24, 32, 3)
    assert images.shrink(noise(1, 4000), 320).shape == (1, 320, 3)

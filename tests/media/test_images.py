"""PNG and JPEG files: what is read, exactly, and what is refused."""

import io
import struct
import warnings
import zlib

import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageOps

from engine.errors import MediaError
from engine.media import images


def noise(height: int = 24, width: int = 32) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


def encoded(picture: Pillow.Image, kind: str = "PNG", **options: object) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def test_a_png_keeps_every_pixel() -> None:
    found = images.decode(encoded(Pillow.fromarray(noise())), "a")
    np.testing.assert_array_equal(found, noise())
    assert found.dtype == np.uint8
    assert found.flags.writeable


def test_sixteen_bits_of_grey_are_scaled_not_clipped() -> None:
    grey = np.linspace(0, 65535, 24 * 32).reshape(24, 32).astype(np.uint16)
    found = images.decode(encoded(Pillow.fromarray(grey)), "a")
    assert found.shape == (24, 32, 3) and (found[..., 0] == found[..., 2]).all()
    np.testing.assert_allclose(found[..., 1], grey / 257, atol=0.51)


def test_pictures_that_would_fill_the_memory() -> None:
    data = encoded(Pillow.new("1", (8_000, 8_000)))
    assert len(data) < 100_000
    with pytest.raises(MediaError, match=r"a is .*make it smaller"):
        images.decode(data, "a")


def test_a_picture_file_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoded(Pillow.fromarray(noise()))
    monkeypatch.setattr(images, "MAX_BYTES", len(data))
    images.decode(data, "a")
    with pytest.raises(MediaError, match=r"a has .* bytes: give a picture of at most"):
        images.decode(data + b"x", "a")


def test_previews_are_no_wider_than_asked() -> None:
    assert images.shrink(noise(24, 32), 16).shape == (12, 16, 3)
    assert images.shrink(noise(24, 32), 320).shape == (24, 32, 3)
    assert images.shrink(noise(1, 4000), 320).shape == (1, 320, 3)


SIGNATURE = b"\x89PNG\r\n\x1a\n"


# Metadata, and damage.
def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks: bytes, width: int = 8, height: int = 8) -> bytes:
    """A PNG of zeros; `chunks` come before its pixels."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((1 + 3 * width) * height)))
    return SIGNATURE + head + b"".join(chunks) + pixels + chunk(b"IEND")


def photo(exif: bytes) -> bytes:
    return encoded(Pillow.fromarray(noise(16, 8)), "JPEG", exif=exif)


def plain(data: bytes) -> np.ndarray:
    """What Pillow itself makes of the whole file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.array(ImageOps.exif_transpose(Pillow.open(io.BytesIO(data))).convert("RGB"))


@pytest.mark.parametrize("orientation", range(10))
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [3, 4])
def test_every_orientation(orientation: int, order: str, kind: int) -> None:
    value = struct.pack(order + ("HH" if kind == 3 else "I"), orientation, *([0] * (kind == 3)))
    entry = struct.pack(order + "HHI", 0x0112, kind, 1) + value
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, 1)
    data = photo(b"Exif\0\0" + head + entry + bytes(4))
    np.testing.assert_array_equal(images.decode(data, "a"), plain(data))


def test_damage_in_exif_means_not_turned_and_prints_nothing() -> None:
    entries = [(0x010E, 2, 4, b"abc\0"), (0x0112, 3, 1, b"\0\6\0\0"), (0x011A, 5, 1, b"\0\0\0\x32")]
    directory = b"".join(struct.pack(">HHI", *entry[:3]) + entry[3] for entry in entries)
    raw = b"Exif\0\0MM\0*\0\0\0\x08\0\3" + directory + bytes(4) + b"\0\0\0\1\0\0\0\2"
    whole = images.decode(photo(raw), "a")
    assert whole.shape == (8, 16, 3)
    for at in range(6, len(raw)):
        for byte in (0, 1, 255):
            found = images.decode(photo(raw[:at] + bytes([byte]) + raw[at + 1 :]), "a")
            assert found.size == whole.size
    for size in range(len(raw)):
        assert images.decode(photo(raw[:size]), "a").size == whole.size


PNG, JPEG = encoded(Pillow.fromarray(noise())), encoded(Pillow.fromarray(noise()), "JPEG")


def test_many_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    progressive = encoded(Pillow.fromarray(noise()), "JPEG", progressive=True)
    scans = progressive.count(b"\xff\xda")
    monkeypatch.setattr(images, "MAX_SCANNED", scans * 24 * 32)
    images.decode(progressive, "a")
    monkeypatch.setattr(images, "MAX_SCANNED", scans * 24 * 32 - 1)
    with pytest.raises(MediaError, match=rf"32 x 24 pixels come in {scans} scans"):
        images.decode(progressive, "a")


@pytest.mark.parametrize(("width", "height"), [(8, 70_000), (70_000, 8)])
def test_a_side_is_limited(width: int, height: int) -> None:
    with pytest.raises(MediaError, match="each side at most 65,535"):
        images.decode(png(width=width, height=height), "a")

"""Decodes PNG and JPEG files into pixels with Pillow.  Pillow reads a header without allocating its
pixels, so the declared size is checked first.  Of all metadata only a JPEG's Exif orientation is
used; any damage in Exif means "not rotated"."""

from __future__ import annotations

import io
import struct
import warnings
from contextlib import suppress

import numpy as np
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from engine.errors import MediaError
from engine.media import media_files
from engine.plain_files import reason
from engine.types import Image

MAX_PIXELS = 50_000_000
MAX_BYTES = 320 << 20  # per file; 50 million pixels with three 16-bit channels take 300 MB
MAX_SIDE = 65_535  # a very thin picture becomes huge when its short side is resized
MAX_SCANNED = 1_000_000_000  # pixels times scans: each scan of a JPEG goes over all pixels
_EIGHT_BITS = (np.arange(65_536) / 257).round().astype(np.uint8)
_TURNS = {
    2: Pillow.Transpose.FLIP_LEFT_RIGHT,
    3: Pillow.Transpose.ROTATE_180,
    4: Pillow.Transpose.FLIP_TOP_BOTTOM,
    5: Pillow.Transpose.TRANSPOSE,
    6: Pillow.Transpose.ROTATE_270,
    7: Pillow.Transpose.TRANSVERSE,
    8: Pillow.Transpose.ROTATE_90,
}
_DAMAGE = (OSError, SyntaxError, ValueError, EOFError, IndexError, struct.error)
Pillow.MAX_IMAGE_PIXELS = None  # the limit is MAX_PIXELS


def decode(data: bytes, name: str) -> Image:
    """The picture [H, W, 3] RGB of a PNG or JPEG file's bytes; MediaError, which begins with the
    name, if any part of it is broken."""
    kind = media_files.kind_by_content(data[: media_files.HEAD])
    if kind is not None and kind not in (media_files.PNG, media_files.JPEG):
        raise MediaError(kind.refusal(name, "a PNG or JPEG picture"))
    if len(data) > MAX_BYTES:
        raise MediaError(
            f"{name} has {len(data):,} bytes: give a picture of at most {MAX_BYTES:,}."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are of metadata that is not used
            return _checked(data, name, "PNG" if kind is media_files.PNG else "JPEG")
    except _DAMAGE as error:
        # Some of Pillow's messages contain an object address.
        odd = isinstance(error, UnidentifiedImageError)
        why = "its content is damaged" if odd else reason(error)
        raise MediaError(
            f"{name} is not a complete PNG or JPEG ({why}): copy it again or pick another."
        ) from error


def _checked(data: bytes, name: str, form: str) -> Image:
    with Pillow.open(io.BytesIO(data), formats=(form,)) as picture:
        width, height = picture.size
        if width * height > MAX_PIXELS or max(width, height) > MAX_SIDE:
            raise MediaError(
                f"{name} is {width:,} x {height:,} pixels: make it smaller than "
                f"{MAX_PIXELS:,} pixels and each side at most {MAX_SIDE:,}."
            )
        if form == "PNG":
            picture.verify()  # the checksums; the picture must be opened again after it
    scans = 0 if form == "PNG" else data.count(b"\xff\xda")
    if scans * width * height > MAX_SCANNED:
        raise ValueError(f"its {width:,} x {height:,} pixels come in {scans:,} scans")
    with Pillow.open(io.BytesIO(data), formats=(form,)) as picture:
        return _pixels(picture)


def shrink(image: Image, width: int) -> Image:
    """The picture at most `width` pixels wide, for previews only."""
    if image.shape[1] <= width:
        return image
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    return np.array(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BOX))


def encoded(picture: Image | Pillow.Image, form: str, **options: int) -> bytes:
    made = picture if isinstance(picture, Pillow.Image) else Pillow.fromarray(picture)
    file = io.BytesIO()
    made.save(file, form, **options)
    return file.getvalue()


def _pixels(picture: Pillow.Image) -> Image:
    """A writable copy; torch warns about arrays that share Pillow's read-only memory."""
    if picture.format != "PNG":  # phones store photos sideways, with the rotation in Exif
        exif, turn = Pillow.Exif(), None
        with suppress(*_DAMAGE):
            exif.load(picture.info.get("exif", b""))
            turn = exif.get(0x0112)
        if isinstance(turn, int) and turn in _TURNS:
            picture = picture.transpose(_TURNS[turn])
    if picture.mode.startswith("I"):  # 16-bit grey: Pillow would clip instead of scaling
        grey = _EIGHT_BITS[np.clip(np.array(picture), 0, 65_535)]
        return np.repeat(grey[..., None], 3, axis=2)
    # convert() would cost a third of the decoding even if it changes nothing.
    return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))

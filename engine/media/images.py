"""Decodes PNG and JPEG files into pixels.

Every picture is opened here.  Its declared size is checked before memory is allocated, and Pillow
gets only the parts that decide the pixels (picture_parts.py).

Boundary: one picture at a time; media_sources.py chooses the pictures.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from engine.errors import MediaError
from engine.media import kinds, picture_parts
from engine.media.media_files import content, label
from engine.media.picture_parts import PictureParts
from engine.plain_files import reason
from engine.types import Image

MAX_PIXELS = 50_000_000
MAX_BYTES = 320 << 20  # per file; 50 million pixels with three 16-bit channels take 300 MB
MAX_SIDE = 65_535  # a very thin picture becomes huge when its short side is resized
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


def read(path: Path) -> Image:
    """The picture [H, W, 3] RGB of a PNG or JPEG file; MediaError if any part of it is broken."""
    return decode(content(path), label(path))


def decode(data: bytes, name: str) -> Image:
    """The picture in the bytes of a PNG or JPEG file; `name` is used in error messages."""
    kind = kinds.by_content(data[: kinds.HEAD])
    if kind is not None and kind not in (kinds.PNG, kinds.JPEG):
        raise MediaError(kind.refusal(name, "a PNG or JPEG picture"))
    if len(data) > MAX_BYTES:
        raise MediaError(
            f"{name} has {len(data):,} bytes: give a picture of at most {MAX_BYTES:,}."
        )
    try:
        if kind is None:
            raise ValueError("its content is of another kind")
        parts = (picture_parts.png if kind is kinds.PNG else picture_parts.jpeg)(data)
        _check_size(parts, name)
        form = "PNG" if kind is kinds.PNG else "JPEG"
        with Pillow.open(io.BytesIO(parts.data), formats=(form,)) as picture:
            return _pixels(picture, parts.orientation)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error) as error:
        raise MediaError(
            f"{name} is not a complete PNG or JPEG ({_reason(error)}): copy it again or pick "
            "another."
        ) from error


def shrink(image: Image, width: int) -> Image:
    """The picture at most `width` pixels wide, for previews only."""
    if image.shape[1] <= width:
        return image
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    return np.array(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BOX))


def _check_size(parts: PictureParts, name: str) -> None:
    size = f"{parts.width:,} x {parts.height:,} pixels"
    if parts.width * parts.height > MAX_PIXELS:
        raise MediaError(f"{name} is {size}: make it smaller than {MAX_PIXELS:,} pixels.")
    if max(parts.width, parts.height) > MAX_SIDE:
        raise MediaError(f"{name} is {size}: make each side at most {MAX_SIDE:,} pixels.")


def _pixels(picture: Pillow.Image, orientation: int) -> Image:
    """A writable copy; torch warns about arrays that share Pillow's read-only memory."""
    if orientation in _TURNS:  # phones store photos sideways, with the rotation in Exif
        picture = picture.transpose(_TURNS[orientation])
    if picture.mode.startswith("I"):  # 16-bit grey: Pillow would clip instead of scaling
        grey = _EIGHT_BITS[np.clip(np.array(picture), 0, 65_535)]
        return np.repeat(grey[..., None], 3, axis=2)
    # convert() would cost a third of the decoding even if it changes nothing.
    return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))


def _reason(error: Exception) -> str:
    """Pillow's message; some contain an object address and are replaced."""
    return "its content is damaged" if isinstance(error, UnidentifiedImageError) else reason(error)

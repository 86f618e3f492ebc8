"""PNG and JPEG files to pixels.

Boundary: one picture at a time; which pictures a model is shown is decided elsewhere.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image as Pillow
from PIL import ImageOps, UnidentifiedImageError

from engine.errors import MediaError
from engine.media.files import content, label
from engine.types import Image

MAX_PIXELS = 50_000_000
_FORMATS = ("PNG", "JPEG")


def read(path: Path) -> Image:
    """The picture [H, W, 3] RGB of a PNG or JPEG file; MediaError if any part of it is broken."""
    return decode(content(path), label(path))


def decode(data: bytes, name: str) -> Image:
    """The picture in the bytes of a PNG or JPEG file; `name` is what error messages call it."""
    try:
        with Pillow.open(io.BytesIO(data), formats=_FORMATS) as picture:
            _check_size(picture, name)
            picture.verify()  # All checksums; Pillow needs the file opened anew to decode it.
        with Pillow.open(io.BytesIO(data), formats=_FORMATS) as picture:
            return _pixels(picture)
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise MediaError(f"{name} is too large ({error}): make it smaller.") from error
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


def _check_size(picture: Pillow.Image, name: str) -> None:
    if picture.width * picture.height > MAX_PIXELS:
        raise MediaError(
            f"{name} is {picture.width:,} x {picture.height:,} pixels: make it smaller than "
            f"{MAX_PIXELS:,} pixels."
        )


def _pixels(picture: Pillow.Image) -> Image:
    """A writable copy; torch complains about arrays that share Pillow's read-only memory."""
    if picture.format == "JPEG":  # Phones store photos sideways and say so in the Exif data.
        picture = ImageOps.exif_transpose(picture)
    if picture.mode.startswith("I"):  # 16-bit grey: Pillow would clip instead of scaling
        grey = np.array(picture).astype(np.float64) / 257
        return np.repeat(np.clip(grey.round(), 0, 255).astype(np.uint8)[..., None], 3, axis=2)
    # A convert that changes nothing costs a third of the decoding.
    return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))


def _reason(error: Exception) -> str:
    """Pillow's own words, without the object address it puts into some of them."""
    if isinstance(error, UnidentifiedImageError):
        return "its content is of another kind"
    return str(error) or type(error).__name__

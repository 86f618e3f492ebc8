"""Decodes PNG and JPEG files into pixels.

The declared size is checked before memory is allocated, and Pillow gets only the parts that decide
the pixels.  Everything else (texts, colour profiles, Exif, further pictures) is removed before,
because decoders parse such parts, warn about them on stderr, and some unpack them without a limit.
One Exif value is read here: the orientation of a JPEG, an integer from 1 to 8 in the first
directory.  Any other form, and any damage in Exif, means "not rotated".

Formats: PNG (W3C, 3rd edition, chapters 5 and 11), JPEG (ITU-T T.81, annex B), Exif 2.32 (4.6).
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image as Pillow
from PIL import UnidentifiedImageError

from engine.errors import MediaError
from engine.media import kinds
from engine.media.media_files import content, label
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
MAX_CHUNKS = 100_000
MAX_SCANNED = 1_000_000_000  # pixels times scans: each scan of a JPEG goes over all pixels
_PNG_KEPT = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_BARE = (0x01, *range(0xD0, 0xD8))  # JPEG markers without a length
_SIZES = tuple(mark for mark in range(0xC0, 0xD0) if mark not in (0xC4, 0xC8, 0xCC))
_EXIF, _SCAN = 0xE1, 0xDA
_DROPPED = (*(mark for mark in range(0xE1, 0xF0) if mark != 0xEE), 0xFE)  # 0xEE: colour space
_ORIENTATION = 0x0112
_WIDTHS = {3: 2, 4: 4}  # Exif's SHORT and LONG, in bytes


class PictureParts(NamedTuple):
    """A picture's needed bytes, its declared size, and its Exif orientation (1: upright)."""

    data: bytes
    width: int
    height: int
    orientation: int = 1


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
        parts = (png if kind is kinds.PNG else jpeg)(data)
        size = f"{parts.width:,} x {parts.height:,} pixels"
        if parts.width * parts.height > MAX_PIXELS:
            raise MediaError(f"{name} is {size}: make it smaller than {MAX_PIXELS:,} pixels.")
        if max(parts.width, parts.height) > MAX_SIDE:
            raise MediaError(f"{name} is {size}: make each side at most {MAX_SIDE:,} pixels.")
        form = "PNG" if kind is kinds.PNG else "JPEG"
        with Pillow.open(io.BytesIO(parts.data), formats=(form,)) as picture:
            return _pixels(picture, parts.orientation)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error, zlib.error) as error:
        # Some of Pillow's messages contain an object address.
        odd = isinstance(error, UnidentifiedImageError)
        why = "its content is damaged" if odd else reason(error)
        raise MediaError(
            f"{name} is not a complete PNG or JPEG ({why}): copy it again or pick another."
        ) from error


def shrink(image: Image, width: int) -> Image:
    """The picture at most `width` pixels wide, for previews only."""
    if image.shape[1] <= width:
        return image
    height = max(1, round(image.shape[0] * width / image.shape[1]))
    return np.array(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BOX))


def _pixels(picture: Pillow.Image, orientation: int) -> Image:
    """A writable copy; torch warns about arrays that share Pillow's read-only memory."""
    if orientation in _TURNS:  # phones store photos sideways, with the rotation in Exif
        picture = picture.transpose(_TURNS[orientation])
    if picture.mode.startswith("I"):  # 16-bit grey: Pillow would clip instead of scaling
        grey = _EIGHT_BITS[np.clip(np.array(picture), 0, 65_535)]
        return np.repeat(grey[..., None], 3, axis=2)
    # convert() would cost a third of the decoding even if it changes nothing.
    return np.array(picture if picture.mode == "RGB" else picture.convert("RGB"))


def png(data: bytes) -> PictureParts:
    """The parts of a PNG; ValueError with the reason if a chunk up to IEND is damaged."""
    view, kept, seen, begin = memoryview(data), [data[:8]], set[bytes](), 8
    for _ in range(MAX_CHUNKS):
        kind, end = data[begin + 4 : begin + 8], begin + 12 + _number(data, begin, 4)
        if end > len(data):
            raise ValueError("it ends early")
        if zlib.crc32(view[begin + 4 : end - 4]) != _number(data, end - 4, 4):
            raise ValueError("a checksum is wrong")
        if (kind == b"IHDR") != (not seen) or (kind == b"IHDR" and end - begin != 25):
            raise ValueError("its header is out of place")
        seen.add(kind)
        if kind in _PNG_KEPT:
            kept.append(data[begin:end])
        if kind == b"IEND":
            break
        begin = end
    else:
        raise ValueError("it has too many chunks")
    if b"IDAT" not in seen:
        raise ValueError("it has no pixels")
    return PictureParts(b"".join(kept), _number(data, 16, 4), _number(data, 20, 4))


def jpeg(data: bytes) -> PictureParts:
    """The parts of a JPEG; ValueError with the reason if a segment before the first scan is
    damaged.  The decoder reads what follows by itself."""
    kept, begin, width, height, orientation = [data[:2]], 2, 0, 0, 1
    for _ in range(MAX_CHUNKS):
        mark, content = _marker(data, begin)
        end = content + (0 if mark in _BARE else _number(data, content, 2))
        if end > len(data) or (mark not in _BARE and end < content + 2):
            raise ValueError("it ends early")
        if mark == _SCAN:
            break
        if mark in _SIZES:
            height, width = _number(data, content + 3, 2), _number(data, content + 5, 2)
        elif mark == _EXIF and orientation == 1:
            orientation = _orientation(data[content + 2 : end])
        if mark not in _DROPPED:
            kept.append(data[content - 2 : end])
        begin = end
    else:
        raise ValueError("it has too many segments")
    scans = data.count(b"\xff\xda", content - 2)
    if scans * width * height > MAX_SCANNED:
        raise ValueError(f"its {width:,} x {height:,} pixels come in {scans:,} scans")
    return PictureParts(b"".join((*kept, data[content - 2 :])), width, height, orientation)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "big")


def _marker(data: bytes, at: int) -> tuple[int, int]:
    """(the marker at this offset, the start of its segment); fill bytes may come before it."""
    if data[at : at + 1] != b"\xff":
        raise ValueError("it ends early" if at >= len(data) else "a segment is out of place")
    while data[at : at + 1] == b"\xff":
        at += 1
    if at >= len(data) or data[at] in (0x00, 0xD8, 0xD9):
        raise ValueError("it has no pixels")
    return data[at], at + 1


def _orientation(segment: bytes) -> int:
    """The orientation in an APP1 segment: a TIFF header, then a directory of 12-byte entries."""
    tiff = segment[6:]
    if segment[:6] != b"Exif\0\0" or tiff[:4] not in (b"II*\0", b"MM\0*"):
        return 1
    order = "little" if tiff[:1] == b"I" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(tiff[at : at + size], order)  # type: ignore[arg-type]

    first = number(4, 4)
    for at in range(first + 2, min(first + 2 + 12 * number(first, 2), len(tiff) - 11), 12):
        width = _WIDTHS.get(number(at + 2, 2))
        if number(at, 2) == _ORIENTATION and width and number(at + 4, 4) == 1:
            value = number(at + 8, width)
            return value if 1 <= value <= 8 else 1
    return 1

"""PNG and JPEG files cut down to the parts that decide their pixels.

Everything else (texts, colour profiles, Exif, further pictures) is left out before a decoder sees
the file: decoders parse such parts eagerly, warn about them on stderr, and some unpack without a
limit.  Of Exif one value is read here: the orientation of a JPEG, a whole number from 1 to 8 in the
first directory.  Any other form of it, and any damage in Exif, means "not turned".

Formats: PNG (W3C, 3rd edition, chapters 5 and 11), JPEG (ITU-T T.81, annex B), Exif 2.32 (4.6).

Boundary: bytes in, fewer bytes and a few numbers out; decodes no pixel.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

MAX_CHUNKS = 100_000
MAX_SCANNED = 1_000_000_000  # pixels times scans: each scan of a JPEG goes over all pixels
_PNG_KEPT = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_BARE = (0x01, *range(0xD0, 0xD8))  # JPEG markers without a length
_SIZES = tuple(mark for mark in range(0xC0, 0xD0) if mark not in (0xC4, 0xC8, 0xCC))
_EXIF, _SCAN = 0xE1, 0xDA
_DROPPED = (*(mark for mark in range(0xE1, 0xF0) if mark != 0xEE), 0xFE)  # Adobe's tells colours
_ORIENTATION = 0x0112
_WIDTHS = {3: 2, 4: 4}  # Exif's SHORT and LONG, in bytes


@dataclass(frozen=True)
class Parts:
    """A picture's needed bytes, its size as declared, and its Exif orientation (1: upright)."""

    data: bytes
    width: int
    height: int
    orientation: int = 1


def png(data: bytes) -> Parts:
    """ValueError, with the reason, unless every chunk up to IEND is whole."""
    kept, at, width, height = [data[:8]], 8, 0, 0
    view, seen = memoryview(data), set[bytes]()
    for _ in range(MAX_CHUNKS):
        length, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(data):
            raise ValueError("it ends early")
        if zlib.crc32(view[at + 4 : end - 4]) != int.from_bytes(data[end - 4 : end], "big"):
            raise ValueError("a checksum is wrong")
        if (kind == b"IHDR") != (not seen) or (kind == b"IHDR" and length != 13):
            raise ValueError("its header is out of place")
        if kind == b"IHDR":
            width, height = (int.from_bytes(data[at + n : at + n + 4], "big") for n in (8, 12))
        seen.add(kind)
        if kind in _PNG_KEPT:
            kept.append(data[at:end])
        if kind == b"IEND":
            break
        at = end
    if not {b"IDAT", b"IEND"} <= seen:
        raise ValueError("it has no pixels" if b"IEND" in seen else "it has too many chunks")
    return Parts(b"".join(kept), width, height)


def jpeg(data: bytes) -> Parts:
    """ValueError, with the reason, unless the segments before the first scan are whole."""
    kept, at, width, height, orientation = [data[:2]], 2, 0, 0, 1
    for _ in range(MAX_CHUNKS):
        mark, begin = _marker(data, at)
        end = begin + (0 if mark in _BARE else int.from_bytes(data[begin : begin + 2], "big"))
        if end > len(data) or (mark not in _BARE and end < begin + 2):
            raise ValueError("it ends early")
        if mark in _SIZES:
            height, width = (int.from_bytes(data[begin + n : begin + n + 2], "big") for n in (3, 5))
        if mark == _EXIF and orientation == 1:
            orientation = _orientation(data[begin + 2 : end])
        if mark == _SCAN:
            break
        if mark not in _DROPPED:
            kept.append(data[begin - 2 : end])
        at = end
    else:
        raise ValueError("it has too many segments")
    scans = data.count(b"\xff\xda", at)
    if scans * width * height > MAX_SCANNED:
        raise ValueError(f"its {width:,} x {height:,} pixels come in {scans:,} scans")
    kept.append(data[begin - 2 :])
    return Parts(b"".join(kept), width, height, orientation)


def _marker(data: bytes, at: int) -> tuple[int, int]:
    """(the marker at this place, where its segment begins); it may have leading fill bytes."""
    if data[at : at + 1] != b"\xff":
        raise ValueError("it ends early" if at >= len(data) else "a segment is out of place")
    while data[at : at + 1] == b"\xff":
        at += 1
    if at >= len(data) or data[at] in (0x00, 0xD8, 0xD9):
        raise ValueError("it has no pixels")
    return data[at], at + 1


def _orientation(segment: bytes) -> int:
    """What an APP1 segment says: a TIFF header, then a directory of entries of 12 bytes."""
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

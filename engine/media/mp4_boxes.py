"""Checks the tables of an MP4 or MOV before FFmpeg builds its index from them.

FFmpeg needs about 70 bytes per declared sample, and a table of 20 bytes can declare two billion.
The limits are far above those of a healthy clip: a million samples are four and a half hours at 60
frames per second.  Sound stored sample by sample is exempt, as FFmpeg does not index it this way.

Format: ISO/IEC 14496-12, 4.2 (boxes), 8.6.1 (stts, ctts), 8.7.3 (stsz, stz2), 8.6.6 (elst),
8.8.8 (trun).

Boundary: an open file in, ValueError with a noun phrase out; decodes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

MAX_SAMPLES = 1_000_000
MAX_TABLES = 128 << 20  # bytes of a header, also of a fragment's header
MAX_BOXES = 200_000
MAX_EDITED = 100_000_000  # FFmpeg visits every sample for every entry of an edit list
_DEPTH = 10  # FFmpeg's own limit
_FOLDERS = frozenset(
    b"moov moof trak traf mdia minf stbl edts mvex udta dinf tapt wave hoov".split()
)


@dataclass
class Counts:
    """The declared counts so far, over all tracks."""

    samples: int = 0
    edits: int = 0
    boxes: int = 0
    sound: bool = field(default=False)  # whether the current track is sound

    def add(self, kind: bytes, box: bytes) -> None:
        """Counts one box; `box` is its content."""
        self.boxes += 1
        if kind == b"cmov":
            raise ValueError("a compressed header")
        if kind == b"hdlr":
            self.sound = box[8:12] == b"soun"
        elif kind == b"elst":
            self.edits += min(_number(box, 4), len(box) // 12)
        elif kind in _SAMPLES:
            self.samples = max(self.samples, _SAMPLES[kind](box, self.sound))
        elif kind == b"trun":
            self.samples += _number(box, 4)
        if self.samples > MAX_SAMPLES:
            raise ValueError(f"tables of over {MAX_SAMPLES:,} frames")
        if self.boxes > MAX_BOXES:
            raise ValueError(f"over {MAX_BOXES:,} boxes")
        if self.edits * self.samples > MAX_EDITED:
            raise ValueError(f"an edit list of {self.edits:,} entries")


def check(file: BinaryIO, size: int) -> None:
    """ValueError if the tables of an MP4 of `size` bytes declare more than the limits."""
    counts, at = Counts(), 0
    while at + 8 <= size:
        file.seek(at)
        head = file.read(16)
        kind, begin, end = _box(head, 0, size - at)
        if kind in _FOLDERS or kind in _SAMPLES or kind == b"trun":
            if end - begin > MAX_TABLES:
                raise ValueError(f"a header of {end - begin:,} bytes")
            file.seek(at + begin)
            content = file.read(end - begin)
            _walk(counts, kind, content, 0, len(content), 0)
        counts.add(b"", b"")
        at += end


def _walk(counts: Counts, kind: bytes, data: bytes, begin: int, end: int, depth: int) -> None:
    if kind not in _FOLDERS or depth > _DEPTH:
        counts.add(kind, data[begin:end])
        return
    counts.add(b"", b"")
    for inner, first, last in _boxes(data, begin, end):
        _walk(counts, inner, data, first, last, depth + 1)


def _boxes(data: bytes, begin: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """(kind, start and end of the content) of the boxes between two offsets."""
    while begin + 8 <= end:
        kind, first, last = _box(data, begin, end)
        yield kind, first, last
        begin = last


def _box(data: bytes, at: int, limit: int) -> tuple[bytes, int, int]:
    """The box at offset `at`; its end is at most `limit` and after its header."""
    size, kind, begin = _number(data, at), data[at + 4 : at + 8], at + 8
    if size == 1:
        size, begin = int.from_bytes(data[begin : begin + 8], "big"), begin + 8
    end = at + size if size else limit
    return kind, min(begin, limit), max(min(end, limit), min(begin, limit))


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _sized(box: bytes, sound: bool) -> int:
    return 0 if sound and _number(box, 4) else _number(box, 8)


def _timed(box: bytes, sound: bool) -> int:
    """The sum of the counts in a table of (count, duration)."""
    entries = min(_number(box, 4), (len(box) - 8) // 8)
    if sound and entries == 1 and _number(box, 12) == 1:
        return 0
    return sum(_number(box, at) for at in range(8, 8 + 8 * entries, 8))


_SAMPLES = {
    b"stsz": _sized,
    b"stz2": lambda box, sound: _number(box, 8),
    b"stts": _timed,
    b"ctts": _timed,
}

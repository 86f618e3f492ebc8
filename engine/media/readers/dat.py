"""Reads Prophesee's DAT recordings.

Format: a header (prophesee_format.py), two bytes (type and size of an event), then 8 bytes per
event: the time in 32 bits, which overflow after 71 minutes, then x in 14, y in 14, and p in 4 bits,
little-endian.  Opening reads the times of the whole file once, in pieces, so that overflows are
found and a damaged file is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, Times
from engine.media.readers import prophesee_format
from engine.media.recording import Counts, Indexed, Recording
from engine.quoting import count

RECORD = 8
PIECE = 1 << 17  # events that are read at once
BLOCK = 1 << 10  # events between two entries of the index
LAP = 1 << 32
TOLERANCE_US = 4096  # a step of EVT3's time high: files converted from it may be this much unsorted
_TYPES = (0, 12)  # Event2d and EventCd
_VERSION = "2"


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with media_files.opened(media_files.large(path, None)) as file:
        yield _Dat(file, name)


class _Dat(Indexed):
    def __init__(self, file: BinaryIO, name: str) -> None:
        head = file.read(prophesee_format.MAX_HEADER)
        header = prophesee_format.parse(head, name)
        version = header.values.get("version", _VERSION)
        if version != _VERSION:
            raise MediaError(f"{name} is DAT of version {version[:20]}: convert it to version 2.")
        self._file, self.name, self._start = file, name, header.end + 2
        self._count, rest = divmod(max(0, file.seek(0, 2) - self._start), RECORD)
        self.sensor, self.notes = header.sensor, header.notes(name, rest)
        layout = head[header.end : header.end + 2]
        if len(layout) == 2 and (layout[0] not in _TYPES or layout[1] != RECORD):
            raise MediaError(
                f"{name} holds events of type {layout[0]} with {count(layout[1], 'byte')}: give "
                "a DAT file of CD events, which have type 12 and 8 bytes."
            )
        if not self._count:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        self._times, self._latest = self._index()
        self.last = int(self._latest[-1])
        # Events that are out of order may be earlier than the file's first one.
        start = int(self._times[0])
        early = self.parts(start - TOLERANCE_US, start + 1)
        self.first = min(int(part.t.min()) for part in early if len(part.t))

    def parts(self, begin: int, end: int) -> Iterator[Columns]:
        # `_latest` is the latest time before a block; later ones are at most the tolerance below.
        first = max(0, int(np.searchsorted(self._latest, begin)) - 1)
        stop = int(np.searchsorted(self._latest, end + TOLERANCE_US)) * BLOCK
        latest = int(self._latest[first])
        for records in self._pieces(first * BLOCK, min(stop, self._count)):
            times = self._unwrapped(records[:, 0], latest)
            latest = max(latest, int(times.max()))
            data = records[:, 1]
            x, y = (data & 0x3FFF).astype(np.int32), (data >> 14 & 0x3FFF).astype(np.int32)
            yield Columns(x, y, times, data >> 28 > 0).between(begin, end)

    def counted(self) -> tuple[Times, Counts]:
        """At every 1,024th event, so the times are exact too."""
        counts = np.append(np.arange(len(self._times)) * BLOCK, self._count)
        times = np.append(self._times, self.last + 1)
        times[0] = self.first
        return np.maximum.accumulate(times), counts

    def _pieces(self, first: int, stop: int) -> Iterator[npt.NDArray[np.uint32]]:
        """The events from one to before another: [N, 2] of time and data."""
        for at in range(first, stop, PIECE):
            place, size = self._start + at * RECORD, min(PIECE, stop - at) * RECORD
            data = media_files.part(self._file, place, size, self.name)
            yield np.frombuffer(data, "<u4").reshape(-1, 2)

    def _index(self) -> tuple[Times, Times]:
        """Per block the time of its first event and the latest time before it; then the last."""
        times, latest, before = list[Times](), list[Times](), None
        for records in self._pieces(0, self._count):
            counter = np.ascontiguousarray(records[:, 0])
            start = int(counter[0]) if before is None else before
            lap = _lap(counter, start)
            if lap is None:
                found = self._unwrapped(counter, start)
                tops = np.maximum.accumulate(np.append(start, found))[::BLOCK]
                before = max(start, int(found.max()))
                times.append(found[::BLOCK].copy())  # without the whole column
            else:
                tops = np.append(start, counter[BLOCK - 1 :: BLOCK].astype(np.int64) + lap)
                before = int(counter[-1]) + lap
                times.append(counter[::BLOCK].astype(np.int64) + lap)
            latest.append(tops[: len(times[-1])].copy())
        return np.concatenate(times), np.concatenate([*latest, [before or 0]])

    def _unwrapped(self, counter: npt.NDArray[np.uint32], latest: int) -> Times:
        """The times of a 32-bit counter; `latest` is the latest time before them.  MediaError if
        one is earlier than the latest one before it by more than the tolerance."""
        lap = _lap(counter, latest)
        if lap is not None:
            return counter.astype(np.int64) + lap
        chain = np.append(latest, counter + np.int64(latest - latest % LAP))
        steps = np.diff(chain)
        laps = np.cumsum((steps < -LAP // 2).astype(np.int64) - (steps > LAP - TOLERANCE_US))
        chain[1:] += laps * LAP
        drop = int((np.maximum.accumulate(chain) - chain).max())
        if drop > TOLERANCE_US:
            raise MediaError(
                f"{self.name} is damaged or no DAT file: its time goes back by {drop:,} us, so "
                "copy it again or record it again."
            )
        return chain[1:]


def _lap(counter: npt.NDArray[np.uint32], latest: int) -> int | None:
    """What is to be added to the counter for its times; None if it is not in increasing order."""
    lap, place = latest - latest % LAP, latest % LAP
    if int(counter[0]) < place or int(counter[-1]) - place > LAP - TOLERANCE_US:
        return None
    return lap if bool((counter[1:] >= counter[:-1]).all()) else None

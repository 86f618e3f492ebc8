"""Reads the .bin recordings of N-Caltech101 and N-MNIST.

Format (Orchard et al. 2015, doi.org/10.3389/fnins.2015.00437): 5 bytes per event, big-endian: x in
8 bits, y in 8 bits, polarity in 1 bit, microseconds in 23 bits.  An event at y = 240 is none: it
says that the time counter overflowed, and adds 2**13 microseconds to all times after it.  There is
no header, so other bytes are recognised by their times, which then jump.
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
from engine.media.event_columns import Columns, Times, refuse_many
from engine.media.recording import ByPosition, Recording
from engine.quoting import count as counted

SIZE = 5  # bytes of an event
OVERFLOW_ROW = 240
OVERFLOW_US = 1 << 13
SCANNED = 64 << 20  # bytes of a file in which overflows are looked for
PIECE = 1 << 20  # events
MAX_BACKWARD = 20  # of so many events at most one steps back in time

Bytes = npt.NDArray[np.uint8]


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    data = media_files.large(path, None)
    if len(data) % SIZE:
        raise MediaError(
            f"{name} has {counted(len(data), 'byte')}, which are not whole events of {SIZE} bytes: "
            "it is cut off or no recording of N-Caltech101, copy it again."
        )
    with media_files.opened(data) as file:
        yield _Bin(file, len(data) // SIZE, name)


class _Bin(ByPosition):
    """Events by number; those that mark an overflow are left out of the columns."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self._file, self._name = file, name
        self._marks = np.empty(0, np.int64)  # numbers of the events that mark an overflow
        if size * SIZE <= SCANNED:
            pieces = ((at, min(at + PIECE, size)) for at in range(0, size, PIECE))
            found = [
                at + np.flatnonzero(self._rows(at, stop)[:, 1] == OVERFLOW_ROW)
                for at, stop in pieces
            ]
            self._marks = np.concatenate([self._marks, *found])
        super().__init__(name, size)

    def columns(self, first: int, last: int) -> Columns:
        refuse_many(last - first, self._name)
        rows = self._rows(first, last)
        times = self._times(rows, first)
        kept = rows[:, 1] != OVERFLOW_ROW
        if not kept.all():
            rows, times = rows[kept], times[kept]
        count = counted(len(self._marks), "time")
        notes = (f"The time counter of {self._name} overflowed {count}.",)
        return Columns(
            x=rows[:, 0].copy(),
            y=rows[:, 1].copy(),
            t=times,
            p=rows[:, 2] >> 7,
            notes=notes if len(self._marks) else (),
        )

    def times(self, first: int, last: int) -> Times:
        return self._times(self._rows(first, last), first)

    def _times(self, rows: Bytes, first: int) -> Times:
        high, middle, low = (rows[:, at].astype(np.int64) for at in (2, 3, 4))
        times: Times = (high & 127) << 16 | middle << 8 | low
        if len(self._marks):
            numbers = np.arange(first, first + len(rows))
            times += OVERFLOW_US * np.searchsorted(self._marks, numbers, side="left")
        if not len(self._marks) and (rows[:, 1] == OVERFLOW_ROW).any():
            raise MediaError(
                f"{self._name} has an overflow of its time counter (y = {OVERFLOW_ROW}), which is "
                f"read in files of up to {SCANNED >> 20} MB: give a shorter recording."
            )
        backward = int((times[1:] < times[:-1]).sum())
        if backward * MAX_BACKWARD > len(times):
            raise MediaError(
                f"{self._name} is no recording of N-Caltech101: its times step back {backward:,} "
                f"times in {len(times):,} events, give a .bin of that kind."
            )
        return times

    def _rows(self, first: int, last: int) -> Bytes:
        found = media_files.part(self._file, first * SIZE, (last - first) * SIZE, self._name)
        return np.frombuffer(found, np.uint8).reshape(-1, SIZE)

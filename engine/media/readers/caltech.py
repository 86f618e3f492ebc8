"""Reads the .bin recordings of N-Caltech101 and N-MNIST.

Format (Orchard et al. 2015, doi.org/10.3389/fnins.2015.00437): 5 bytes per event, big-endian: x in
8 bits, y in 8 bits, polarity in 1 bit, microseconds in 23 bits.  An event at y = 240 is none: it
says that the time counter overflowed, and adds 2**13 microseconds to all times after it.  There is
no header, so other bytes are recognised by their times, which then jump.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, refuse_many
from engine.media.recording import Recording, Whole
from engine.quoting import count as counted

SIZE = 5  # bytes of an event
OVERFLOW_ROW = 240
OVERFLOW_US = 1 << 13
MAX_BACKWARD = 20  # of so many events at most one steps back in time


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    refuse_many(len(media_files.large(path, whole=False)) // SIZE, name)
    data = np.frombuffer(media_files.content(path), np.uint8)
    rows = data[: len(data) // SIZE * SIZE].reshape(-1, SIZE)
    high, middle, low = (rows[:, at].astype(np.int64) for at in (2, 3, 4))
    marks = rows[:, 1] == OVERFLOW_ROW
    times = ((high & 127) << 16 | middle << 8 | low) + OVERFLOW_US * (np.cumsum(marks) - marks)
    backward = int((times[1:] < times[:-1]).sum())
    if len(data) % SIZE or backward * MAX_BACKWARD > len(times):
        raise MediaError(
            f"{name} is cut off or no recording of N-Caltech101: {counted(len(data), 'byte')} have "
            f"{len(data) % SIZE} of half an event, and times that step back "
            f"{counted(backward, 'time')}; copy it again."
        )
    overflows = int(marks.sum())
    rows, times = rows[~marks], times[~marks]
    note = f"The time counter of {name} overflowed {counted(overflows, 'time')}."
    x, y, p = rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2] >> 7
    yield Whole(Columns(x, y, times, p, notes=(note,) if overflows else ()), name)

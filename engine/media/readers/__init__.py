"""Event files: one reader module per format, found by the file's content and then by its name.

A reader module has `opened(path, name)`, a context manager that gives a Recording.  It reports
everything that is wrong with a file as MediaError with the name, and never runs code from it.

Boundary: a reader gives columns of plain numbers as they are in the file, and times in
microseconds.  engine/media/events.py checks the values and makes pictures of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import kinds
from engine.media_options import Window
from engine.types import Events

Column = npt.NDArray[Any] | int | float
Counts = npt.NDArray[np.int64]
# A format is one module here and one line in this table.
READERS: Mapping[kinds.FileKind, str] = {
    kinds.NPY: "engine.media.readers.npy",
    kinds.PROPHESEE_RAW: "engine.media.readers.prophesee",
    kinds.PROPHESEE_DAT: "engine.media.readers.dat",
    kinds.AEDAT4: "engine.media.readers.aedat4",
    kinds.NPZ: "engine.media.readers.npz",
    kinds.HDF5: "engine.media.readers.hdf5",
    kinds.CALTECH: "engine.media.readers.caltech",
    kinds.TEXT: "engine.media.readers.text",
}


@dataclass(frozen=True, eq=False)
class Columns:
    """The arrays x, y, t and p of N events by name, and the sensor's size if the file states it.

    `notes` are sentences about the file.  `as_published`: a file in the form of EventGPT's data.
    """

    table: Mapping[str, Column]
    width: int | None = None
    height: int | None = None
    notes: tuple[str, ...] = field(default=())
    as_published: bool = False


class Recording(Protocol):
    """An open event file.  A window counts from the first event."""

    def events(self, window: Window | None) -> Events:
        """The checked events in the window, or all; MediaError if the window has none."""
        ...

    def duration_us(self) -> int:
        """From the first to the last event."""
        ...

    def rates(self, bins: int) -> Counts:
        """The numbers of events in `bins` bins of equal length, from the first to the last event.

        Memory does not grow with the file.
        """
        ...


class Whole:
    """A Recording of a file that is read as a whole, because its format has no index."""

    def __init__(self, columns: Columns, name: str) -> None:
        from engine.media import events  # it imports this package

        self._name, self._all = name, events.normalised(columns, name)
        floats = np.asarray(columns.table["t"]).dtype.kind == "f"
        events.refuse_other_units(len(self._all), self.duration_us(), floats, name)

    def events(self, window: Window | None) -> Events:
        from engine.media import events

        return events.cut(self._all, window, self._name)

    def duration_us(self) -> int:
        return int(self._all.t.max() - self._all.t.min())

    def rates(self, bins: int) -> Counts:
        return binned(self._all.t, int(self._all.t.min()), self.duration_us(), bins)


def binned(times: npt.NDArray[np.int64], begin: int, duration_us: int, bins: int) -> Counts:
    """How many of the times fall into each bin; the last bin includes the last microsecond."""
    places = np.minimum((times - begin) / ((duration_us + 1) / bins), bins - 1).astype(np.intp)
    return np.bincount(places, minlength=bins).astype(np.int64)


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a file; MediaError for a file that is no event file."""
    kind = kinds.of_file(path, path.name) or kinds.NPY
    module = READERS.get(kind)
    if module is None:
        raise MediaError(kind.refusal(name, "a recording of events"))
    reader = import_module(module)
    found: AbstractContextManager[Recording] = reader.opened(path, name)
    with found as recording:
        yield recording

"""A recording that is read in parts: an index of times finds the part of a window.

Boundary: knows no format.  A reader gives the events between two times, and counts of events at
some times; this makes a Recording of it.  Memory follows the window, not the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from engine.media.readers import Columns, Counts, binned
from engine.media_options import Window
from engine.types import Events

Times = npt.NDArray[np.int64]
EXACT = 1 << 20


class Table(NamedTuple):
    """Columns of events."""

    x: npt.NDArray[np.int32]
    y: npt.NDArray[np.int32]
    t: Times
    p: npt.NDArray[np.bool_]

    def between(self, begin: int, end: int) -> Table:
        """The events from `begin` to before `end`."""
        inside = (self.t >= begin) & (self.t < end)
        if inside.all():
            return self
        return Table(self.x[inside], self.y[inside], self.t[inside], self.p[inside])


class Source(Protocol):
    """What a reader provides about a file.  Times are in microseconds without overflows."""

    first: int
    last: int
    sensor: tuple[int, int] | None  # width, height
    notes: tuple[str, ...]

    def tables(self, begin: int, end: int) -> Iterator[Table]:
        """The events from `begin` to before `end` in file order, in parts."""
        ...

    def counted(self) -> tuple[Times, Counts]:
        """Increasing times, and how many events are before each; the last one is the total."""
        ...


class Indexed:
    """The Recording of a source."""

    def __init__(self, source: Source, name: str) -> None:
        self._source, self._name = source, name

    def events(self, window: Window | None) -> Events:
        from engine.media import events  # it imports this package

        source = self._source
        begin, end = source.first, source.last + 1
        if window is None:
            events.refuse_many(int(source.counted()[1][-1]), self._name)
        else:
            begin, end = begin + window.start_us, begin + window.end_us
        parts, total = list[Table](), 0
        for table in source.tables(begin, end):
            total += len(table.t)
            parts = [*parts, table] if total <= events.MAX_EVENTS else []
        events.refuse_many(total, self._name)
        if window is not None and not total:
            raise events.no_events(self._name, window, self.duration_us())
        x, y, t, p = (np.concatenate(column) for column in zip(*parts, strict=True))
        width, height = source.sensor or (None, None)
        columns = Columns({"x": x, "y": y, "t": t, "p": p}, width, height, source.notes)
        return events.normalised(columns, self._name)

    def duration_us(self) -> int:
        return self._source.last - self._source.first

    def rates(self, bins: int) -> Counts:
        """Exact up to a million events.  Otherwise the total and the source's counts are exact, and
        between two of these the rate is taken as constant.
        """
        source = self._source
        times, counts = source.counted()
        if counts[-1] <= EXACT:
            tables = source.tables(source.first, source.last + 1)
            parts = [binned(part.t, source.first, self.duration_us(), bins) for part in tables]
            exact: Counts = np.sum(parts, axis=0, dtype=np.int64)
            return exact
        edges = np.linspace(source.first, source.last + 1, bins + 1)
        before = np.rint(np.interp(edges, times, counts)).astype(np.int64)
        before[0], before[-1] = 0, counts[-1]
        return np.diff(before)

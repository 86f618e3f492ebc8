"""A recording that is read by position, so that memory follows the window and not the file.

A position is an event's number, or a byte of a text.  Times ascend in nearly all recordings, so a
window is found by bisection.  Single events may be late by up to SLACK_US; the window is searched
that much wider.  A recording whose times step back by more is read as a whole.

Boundary: a Source gives columns and times; this module finds windows and knows no formats.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import events as streams
from engine.media.readers import Columns, Counts, Whole
from engine.media_options import Window
from engine.types import Events

SLACK_US = 10_000
PROBES = 64  # times that are compared when a recording is opened
BLOCK = 4096  # events that are read to look at one time
NEVER = 1 << 62  # a time behind all events
Times = npt.NDArray[np.int64]


class Source(Protocol):
    """Events by position, from 0 to below `size`; `edge` positions are read at either end."""

    size: int
    edge: int
    floats: bool  # whether the times are floats without a unit

    def columns(self, first: int, last: int) -> Columns:
        """The events of these positions; MediaError if they are too many or damaged."""
        ...

    def times(self, first: int, last: int) -> Times:
        """Only their times in microseconds."""
        ...

    def time(self, position: int) -> int:
        """The time of the first event from this position on; NEVER if there is none."""
        ...

    def count(self, first: int, last: int) -> int:
        """The number of events between two positions."""
        ...

    def bracket(self, time: int) -> tuple[int, int]:
        """The positions between which an index places this time; 0 and `size` without an index."""
        ...


class Numbered:
    """The part of a Source that is the same for all formats whose events have numbers."""

    edge = 1 << 16
    floats = False

    def __init__(self, size: int, block: int = BLOCK) -> None:
        self.size, self._block = size, block
        self._near: tuple[int, Times] = (-1, np.empty(0, np.int64))

    def times(self, first: int, last: int) -> Times:
        raise NotImplementedError

    def time(self, position: int) -> int:
        first = position - position % self._block
        if first != self._near[0]:
            self._near = (first, self.times(first, min(first + self._block, self.size)))
        return int(self._near[1][position - first])

    def count(self, first: int, last: int) -> int:
        return last - first

    def bracket(self, time: int) -> tuple[int, int]:
        return 0, self.size


class ByPosition:
    """A Recording over a Source."""

    def __init__(self, source: Source, name: str) -> None:
        if not source.size:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        self._source, self._name = source, name
        self._begin, self._end, self._ascends = _ends(source)
        if self._ascends:
            count = source.count(0, source.size)
            streams.refuse_other_units(count, self._end - self._begin, source.floats, name)

    def events(self, window: Window | None) -> Events:
        if not self._ascends:
            return self._all().events(window)
        if window is None:
            return streams.normalised(self._source.columns(0, self._source.size), self._name)
        begin, end = self._begin + window.start_us, self._begin + window.end_us
        first, last = (self._first(time) for time in (begin - SLACK_US, end + SLACK_US))
        columns = self._source.columns(first, last)
        times = columns.table.get("t")
        if isinstance(times, np.ndarray) and not len(times):
            raise streams.no_events(self._name, window, self.duration_us())
        found = streams.normalised(columns, self._name)
        if _late(found.t) > SLACK_US:
            return self._all().events(window)
        if not ((found.t >= begin) & (found.t < end)).any():
            raise streams.no_events(self._name, window, self.duration_us())
        return streams.cut(found, window, self._name, self._begin)

    def duration_us(self) -> int:
        return self._end - self._begin if self._ascends else self._all().duration_us()

    def rates(self, bins: int) -> Counts:
        if not self._ascends:
            return self._all().rates(bins)
        edges = self._begin + _edges(self.duration_us(), bins)
        places = [0, *(self._first(int(edge)) for edge in edges), self._source.size]
        pairs = zip(places, np.maximum.accumulate(places)[1:], strict=False)
        return np.array([self._source.count(first, int(last)) for first, last in pairs], np.int64)

    def _first(self, time: int) -> int:
        """The first position whose event is not before the time."""
        low, high = self._source.bracket(time)
        size = self._source.size
        holds = (  # an index may be wrong
            0 <= low <= high <= size
            and (low == 0 or self._source.time(low - 1) < time)
            and (high == size or self._source.time(high) >= time)
        )
        if not holds:
            low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if self._source.time(middle) < time:
                low = middle + 1
            else:
                high = middle
        return low

    def _all(self) -> Whole:
        """The whole recording: without ascending times a window cannot be found otherwise."""
        if self._source.count(0, self._source.size) > streams.MAX_EVENTS:
            raise MediaError(
                f"{self._name} has times that step back by more than {SLACK_US // 1000} ms and is "
                "too long to be read as a whole: sort its events by time."
            )
        return Whole(self._source.columns(0, self._source.size), self._name)


def _ends(source: Source) -> tuple[int, int, bool]:
    """The first and the last time, and whether times ascend at both ends and in between."""
    head = source.times(0, min(source.edge, source.size))
    tail = source.times(max(source.size - source.edge, 0), source.size)
    places = [source.size * index // PROBES for index in range(PROBES)]
    between = np.array([time for place in places if (time := source.time(place)) < NEVER], np.int64)
    ascends = all(_late(times) <= SLACK_US for times in (head, between, tail))
    begin, end = int(head.min()), int(tail.max())
    inside = begin <= int(between.min()) and int(between.max()) <= end
    return begin, end, ascends and inside


def _edges(duration_us: int, bins: int) -> Times:
    """The first microsecond of each bin but the first, exactly as `readers.binned` rounds."""
    step, numbers = (duration_us + 1) / bins, np.arange(1, bins)
    edges = np.ceil(step * numbers)
    edges -= (edges - 1) / step >= numbers
    edges += edges / step < numbers
    return np.asarray(edges, np.int64)


def _late(times: Times) -> int:
    """By how much the latest event is late."""
    return int((np.maximum.accumulate(times) - times).max()) if len(times) else 0

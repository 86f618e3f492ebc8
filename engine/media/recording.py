"""Open recordings of events: the part in a window, and event rates, of any format.

A format without an index is read as a whole (Whole).  The others are rows of blocks of which is
known between which times their events lie (Indexed), or is found out from samples of their times
(Ascending): a window reads the blocks that it touches, and memory follows the window, not the file.

A module of readers/ gives the Recording of a file.  It reports what is wrong with it as MediaError
or Damaged, and never runs code from it.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import event_columns, media_files
from engine.media.event_columns import Columns, Times, no_events, normalised
from engine.media_options import Window
from engine.types import Events

SLACK_US = 10_000  # single events may be late by so much
STEPS_BACK = (
    f"has times that step back by more than {SLACK_US // 1000} ms and is too long to be read as a "
    "whole: sort its events by time."
)
BLOCK = 1 << 16  # events in a block at least
BLOCKS = 256  # at most: so many times are read when a recording is opened
EDGE = 1 << 16  # events that are read at either end
TAIL = 16  # blocks in which the last event is looked for at once
EXACT = 1 << 20  # events whose rates are exact
Counts = npt.NDArray[np.int64]


def late(times: Times) -> int:
    return int((np.maximum.accumulate(times) - times).max())


class Damaged(Exception):
    """A file is not what its kind says; the message is the reason."""


class Recording(ABC):
    """An open event file, with its first and last time.  A window counts from the first event."""

    name: str
    first: int
    last: int

    @abstractmethod
    def events(self, window: Window | None) -> Events:
        """The checked events in the window, or all; MediaError if the window has none."""

    @abstractmethod
    def counts(self, times: Times) -> Counts:
        """How many events are before each of the ascending times."""

    def duration_us(self) -> int:
        return self.last - self.first

    def rates(self, bins: int) -> Counts:
        """The numbers of events in `bins` bins of equal length, from the first to the last event.
        Memory does not grow with the file."""
        length = self.duration_us() + 1
        edges = [self.first - index * length // -bins for index in range(bins + 1)]
        return np.diff(self.counts(np.array(edges, np.int64)))


class Whole(Recording):
    def __init__(self, columns: Columns, name: str) -> None:
        self.name, self.all = name, normalised(columns, name)
        self.first, self.last = int(self.all.t.min()), int(self.all.t.max())
        floats = columns.t.dtype.kind == "f"
        event_columns.refuse_other_units(len(self.all), self.duration_us(), floats, name)

    def events(self, window: Window | None) -> Events:
        return event_columns.cut(self.all, window, self.name)

    def counts(self, times: Times) -> Counts:
        return np.searchsorted(np.sort(self.all.t), times)


class Indexed(Recording):
    """A row of blocks; the events of block i lie between low[i] and high[i], in microseconds
    without overflows.  A format sets these, the sensor's width and height if they are known, and
    its notes; then `set_ends` finds the first and the last time."""

    low: Times
    high: Times
    sensor: tuple[int, int] | None = None
    notes: tuple[str, ...] = ()
    as_published = False
    most = 0  # events that are read at once, if fewer than in other formats

    @abstractmethod
    def blocks(self, first: int, stop: int) -> Iterator[Columns]:
        """The events from one block to before another, in file order; then the notes are whole."""

    def counted(self) -> tuple[Times, Counts]:
        """Increasing times, and how many events are before each; the last one is the total, or 0 if
        all events have to be read."""
        return self.low[:1], np.zeros(1, np.int64)

    def finished(self, columns: Columns) -> Columns:
        """The events of a window with what the file says about all."""
        width, height = self.sensor or (None, None)
        columns = replace(columns, width=width, height=height, notes=self.notes)
        return replace(columns, as_published=self.as_published)

    def parts(self, begin: int, end: int) -> Iterator[Columns]:
        """The events from `begin` to before `end` in file order."""
        inside = np.flatnonzero((self.high >= begin) & (self.low < end)).tolist()
        for part in self.blocks(inside[0], inside[-1] + 1) if inside else ():
            yield part.between(begin, end)

    def set_ends(self) -> None:
        start = next((part for part in self.blocks(0, len(self.low)) if len(part.t)), None)
        if start is None:
            raise MediaError(f"{self.name} holds 0 events: pick another recording.")
        early = self.parts(int(self.low[0]), int(start.t.min()) + 1)
        self.first = min(int(part.t.min()) for part in early if len(part.t))
        self.last = self.first
        for stop in range(len(self.low), 0, -TAIL):
            begin = max(stop - TAIL, 0)
            if self.high[begin:stop].max() > self.last:
                ends = [int(part.t.max()) for part in self.blocks(begin, stop) if len(part.t)]
                self.last = max([self.last, *ends])

    def events(self, window: Window | None) -> Events:
        if window is None:
            found = self.blocks(0, len(self.low))
        else:
            found = self.parts(self.first + window.start_us, self.first + window.end_us)
        parts, total = list[Columns](), 0
        for part in found:
            total += len(part.t)
            event_columns.refuse_many(total, self.name, self.most)
            parts.append(part)
        columns = self.finished(Columns.joined(parts)) if total else None
        if window and not (columns and len(columns.t)):
            raise no_events(self.name, window, self.duration_us())
        return normalised(columns or Columns.joined(parts), self.name)

    def counts(self, times: Times) -> Counts:
        """Exact up to a million events.  Otherwise the total and the counts of the index are exact,
        and between two of these the rate is taken as constant."""
        known, before = self.counted()
        if before[-1] > EXACT:
            return np.rint(np.interp(times, known, before)).astype(np.int64)
        each = [np.searchsorted(np.sort(part.t), times) for part in self.blocks(0, len(self.low))]
        return np.asarray(np.sum(each, axis=0), np.int64)


class OutOfOrder(Exception):
    """Times step back by more than the slack, so a window cannot be found by them."""


class Ascending(Indexed):
    """Read by the numbers of events.  Times ascend in nearly all recordings, so samples of them are
    an index.  A recording whose times step back by more than the slack is read as a whole."""

    piece = 1 << 20  # events that are read at once
    floats = False  # whether the times are floats without a unit

    def __init__(self, name: str, size: int) -> None:
        """`size` events; `columns` and `times` of the format must work already."""
        if not size:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        self.name, self.size = name, size
        self._places = [*range(0, size, max(BLOCK, -(-size // BLOCKS))), size]
        head, tail = self.times(0, min(EDGE, size)), self.times(max(size - EDGE, 0), size)
        self.first, self.last = int(head.min()), int(tail.max())
        starts = [self.times(place, place + 1) for place in self._places[:-1]]
        samples = np.append(np.concatenate(starts), self.last)
        self.low, self.high = samples[:-1] - SLACK_US, samples[1:] + SLACK_US
        ordered = all(late(times) <= SLACK_US for times in (head, samples, tail))
        self._ascends = ordered and self.first <= int(samples.min())
        if self._ascends:
            event_columns.refuse_other_units(size, self.duration_us(), self.floats, name)

    @abstractmethod
    def columns(self, first: int, last: int) -> Columns:
        """The events of these numbers; MediaError if they are damaged."""

    @abstractmethod
    def times(self, first: int, last: int) -> Times:
        """Only their times in microseconds."""

    def ordered(self) -> Recording:
        """Itself, or the recording as a whole."""
        return self if self._ascends else self.as_whole()

    def blocks(self, first: int, stop: int) -> Iterator[Columns]:
        latest = -np.inf
        for part in self._pieces(self._places[first], self._places[stop]):
            if part.t[0] < latest or (part.t[1:] < part.t[:-1]).any():
                times = np.append(latest, part.t)
                with np.errstate(invalid="ignore"):  # infinite times, which are refused later
                    if (np.maximum.accumulate(times) - times > SLACK_US).any():
                        raise OutOfOrder
            latest = max(latest, float(part.t.max()))
            yield part

    def _pieces(self, at: int, end: int) -> Iterator[Columns]:
        for place in range(at, end, self.piece):
            yield self.columns(place, min(place + self.piece, end))

    def events(self, window: Window | None) -> Events:
        try:
            return super().events(window)
        except OutOfOrder:
            return self.as_whole().events(window)

    def counts(self, times: Times) -> Counts:
        """By bisection, from the sample before each time on."""
        places, starts = [0], np.maximum.accumulate(self.low) + SLACK_US
        for time in times.tolist():
            block = max(int(np.searchsorted(starts, time)) - 1, 0)
            low, high = self._places[block : block + 2]
            low += bisect_left(range(low, high), time, key=lambda at: self.times(at, at + 1)[0])
            places.append(max(low, places[-1]))
        return np.array(places[1:], np.int64)

    def as_whole(self) -> Whole:
        if self.size > event_columns.MAX_EVENTS:
            raise MediaError(f"{self.name} {STEPS_BACK}")
        columns = Columns.joined(list(self._pieces(0, self.size)))
        return Whole(self.finished(columns), self.name)


class Rows(Ascending):
    """Rows of an open file, of one type and from a place on, each an event."""

    def __init__(
        self, file: BinaryIO, start: int, size: int, dtype: np.dtype[Any], name: str
    ) -> None:
        self._file, self._start, self._dtype, self.name = file, start, dtype, name
        self.floats = dtype["t"].kind == "f"
        super().__init__(name, size)

    def rows(self, first: int, last: int) -> npt.NDArray[Any]:
        size = self._dtype.itemsize
        place = self._start + first * size
        found = media_files.part(self._file, place, (last - first) * size, self.name)
        return np.frombuffer(found, self._dtype)

    def columns(self, first: int, last: int) -> Columns:
        table = self.rows(first, last)
        return Columns(*(np.ascontiguousarray(table[key]) for key in "xytp"))

    def times(self, first: int, last: int) -> Times:
        times = self.rows(first, last)["t"]
        if self.floats:
            # Values that are no whole microseconds are refused when the events are read.
            times = np.nan_to_num(times.astype(np.float64), posinf=2**62, neginf=-(2**62))
            times = np.clip(times, -(2**62), 2**62)
        return times.astype(np.int64)

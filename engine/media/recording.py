"""Open recordings of events: the part in a window, and event rates, of any format.

A format reads its columns as a whole (Whole), by position (ByPosition) or by an index of times
(Indexed).  With the last two, memory follows the window and not the file.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import event_columns
from engine.media.event_columns import Columns, Times, no_events, normalised, refuse_other_units
from engine.media_options import Window
from engine.types import Events

SLACK_US = 10_000  # single events may be late by so much; windows are searched that much wider
PROBES = 64  # times that are compared when a recording is opened
BLOCK = 4096  # events that are read to look at one time
NEVER = 1 << 62  # a time behind all events
EXACT = 1 << 20  # events whose rates are exact
Counts = npt.NDArray[np.int64]


class Recording(ABC):
    """An open event file.  A window counts from the first event."""

    @abstractmethod
    def events(self, window: Window | None) -> Events:
        """The checked events in the window, or all; MediaError if the window has none."""

    @abstractmethod
    def duration_us(self) -> int:
        """From the first to the last event."""

    @abstractmethod
    def rates(self, bins: int) -> Counts:
        """The numbers of events in `bins` bins of equal length, from the first to the last event.
        Memory does not grow with the file."""


class Whole(Recording):
    """Of a file that is read as a whole, because its format has no index."""

    def __init__(self, columns: Columns, name: str) -> None:
        self._name, self._all = name, normalised(columns, name)
        floats = columns.t.dtype.kind == "f"
        refuse_other_units(len(self._all), self.duration_us(), floats, name)

    def events(self, window: Window | None) -> Events:
        return event_columns.cut(self._all, window, self._name)

    def duration_us(self) -> int:
        return int(self._all.t.max() - self._all.t.min())

    def rates(self, bins: int) -> Counts:
        return binned(self._all.t, int(self._all.t.min()), self.duration_us(), bins)


def binned(times: Times, begin: int, duration_us: int, bins: int) -> Counts:
    """How many of the times fall into each bin; the last bin includes the last microsecond."""
    places = np.minimum((times - begin) / ((duration_us + 1) / bins), bins - 1).astype(np.intp)
    return np.bincount(places, minlength=bins).astype(np.int64)


class ByPosition(Recording):
    """Read by position: an event's number, or a byte of a text.

    Times ascend in nearly all recordings, so a window is found by bisection.  A recording whose
    times step back by more than the slack is read as a whole.
    """

    edge = 1 << 16  # positions that are read at either end
    floats = False  # whether the times are floats without a unit

    def __init__(self, name: str, size: int, block: int = BLOCK) -> None:
        """`size` positions; `columns` and `times` of the format must work already."""
        if not size:
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        self._name, self.size, self._block = name, size, block
        self._near: tuple[int, Times] = (-1, np.empty(0, np.int64))
        head = self.times(0, min(self.edge, size))
        tail = self.times(max(size - self.edge, 0), size)
        probed = (self.time(size * index // PROBES) for index in range(PROBES))
        between = np.array([time for time in probed if time < NEVER], np.int64)
        self._begin, self._end = int(head.min()), int(tail.max())
        self._ascends = (
            all(_late(times) <= SLACK_US for times in (head, between, tail))
            and self._begin <= int(between.min())
            and int(between.max()) <= self._end
        )
        if self._ascends:
            count, lasts = self.count(0, size), self._end - self._begin
            refuse_other_units(count, lasts, self.floats, name)

    @abstractmethod
    def columns(self, first: int, last: int) -> Columns:
        """The events of these positions; MediaError if they are too many or damaged."""

    @abstractmethod
    def times(self, first: int, last: int) -> Times:
        """Only their times in microseconds."""

    def time(self, position: int) -> int:
        """The time of the first event from this position on; NEVER if there is none."""
        first = position - position % self._block
        if first != self._near[0]:
            self._near = (first, self.times(first, min(first + self._block, self.size)))
        return int(self._near[1][position - first])

    def count(self, first: int, last: int) -> int:
        """The number of events between two positions."""
        return last - first

    def bracket(self, time: int) -> tuple[int, int]:
        """The positions between which an index places this time; 0 and `size` without an index."""
        return 0, self.size

    def events(self, window: Window | None) -> Events:
        if not self._ascends:
            return self._whole().events(window)
        if window is None:
            return normalised(self.columns(0, self.size), self._name)
        begin, end = self._begin + window.start_us, self._begin + window.end_us
        first, last = (self._first(time) for time in (begin - SLACK_US, end + SLACK_US))
        columns = self.columns(first, last)
        if not len(columns.t):
            raise no_events(self._name, window, self.duration_us())
        found = normalised(columns, self._name)
        if _late(found.t) > SLACK_US:
            return self._whole().events(window)
        if not ((found.t >= begin) & (found.t < end)).any():
            raise no_events(self._name, window, self.duration_us())
        return event_columns.cut(found, window, self._name, self._begin)

    def duration_us(self) -> int:
        return self._end - self._begin if self._ascends else self._whole().duration_us()

    def rates(self, bins: int) -> Counts:
        if not self._ascends:
            return self._whole().rates(bins)
        # The first microsecond of each bin but the first, exactly as `binned` rounds.
        step, numbers = (self.duration_us() + 1) / bins, np.arange(1, bins)
        edges = np.ceil(step * numbers)
        edges -= (edges - 1) / step >= numbers
        edges += edges / step < numbers
        starts = (self._first(self._begin + int(edge)) for edge in edges)
        places = np.maximum.accumulate([0, *starts, self.size]).tolist()
        counts = [self.count(first, last) for first, last in pairwise(places)]
        return np.array(counts, np.int64)

    def _first(self, time: int) -> int:
        """The first position whose event is not before the time."""
        low, high = self.bracket(time)
        holds = (  # an index may be wrong
            0 <= low <= high <= self.size
            and (low == 0 or self.time(low - 1) < time)
            and (high == self.size or self.time(high) >= time)
        )
        if not holds:
            low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if self.time(middle) < time:
                low = middle + 1
            else:
                high = middle
        return low

    def _whole(self) -> Whole:
        """Without ascending times a window cannot be found otherwise."""
        if self.count(0, self.size) > event_columns.MAX_EVENTS:
            raise MediaError(
                f"{self._name} has times that step back by more than {SLACK_US // 1000} ms and is "
                "too long to be read as a whole: sort its events by time."
            )
        return Whole(self.columns(0, self.size), self._name)


def _late(times: Times) -> int:
    return int((np.maximum.accumulate(times) - times).max()) if len(times) else 0


class Indexed(Recording):
    """Read in parts that an index of times finds.

    A format sets the name, the first and the last time in microseconds without overflows, the
    sensor's width and height if they are known, and its notes.
    """

    name: str
    first: int
    last: int
    sensor: tuple[int, int] | None
    notes: tuple[str, ...]

    @abstractmethod
    def parts(self, begin: int, end: int) -> Iterator[Columns]:
        """The events from `begin` to before `end` in file order; the notes are complete after."""

    @abstractmethod
    def counted(self) -> tuple[Times, Counts]:
        """Increasing times, and how many events are before each; the last one is the total."""

    def events(self, window: Window | None) -> Events:
        begin, end = self.first, self.last + 1
        if window is None:
            event_columns.refuse_many(int(self.counted()[1][-1]), self.name)
        else:
            begin, end = begin + window.start_us, begin + window.end_us
        parts, total = list[Columns](), 0
        for part in self.parts(begin, end):
            total += len(part.t)
            parts = [*parts, part] if total <= event_columns.MAX_EVENTS else []
        event_columns.refuse_many(total, self.name)
        if window is not None and not total:
            raise no_events(self.name, window, self.duration_us())
        x, y, t, p = (np.concatenate([getattr(part, key) for part in parts]) for key in "xytp")
        width, height = self.sensor or (None, None)
        return normalised(Columns(x, y, t, p, width, height, self.notes), self.name)

    def duration_us(self) -> int:
        return self.last - self.first

    def rates(self, bins: int) -> Counts:
        """Exact up to a million events.  Otherwise the total and the counts of the index are exact,
        and between two of these the rate is taken as constant."""
        times, counts = self.counted()
        if counts[-1] <= EXACT:
            parts = self.parts(self.first, self.last + 1)
            each = [binned(part.t, self.first, self.duration_us(), bins) for part in parts]
            exact: Counts = np.sum(each, axis=0, dtype=np.int64)
            return exact
        edges = np.linspace(self.first, self.last + 1, bins + 1)
        before = np.rint(np.interp(edges, times, counts)).astype(np.int64)
        before[0], before[-1] = 0, counts[-1]
        return np.diff(before)

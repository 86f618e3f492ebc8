"""The times of an event stream: how many events when, what each slice covers, and one window.
Times are microseconds after the first event."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.media import events as streams
from engine.media.media_files import label
from engine.media_options import COUNT_SPLIT, Split, time_text
from engine.types import Events, Image

BINS = 120
RATE_BINS = 240


class EventDensity(NamedTuple):
    """Counts of events per bin of `bin_us` microseconds: all, and `on` of those with p = 1."""

    bin_us: float
    on: npt.NDArray[np.int64]
    total: npt.NDArray[np.int64]


class SliceSpan(NamedTuple):
    """The times of a slice's first and last event, and its number of events."""

    begin_us: int
    end_us: int
    events: int


@dataclass(frozen=True, eq=False)
class EventRates:
    """The numbers of events of a whole recording in bins of equal length."""

    duration_us: int
    counts: npt.NDArray[np.int64]

    @property
    def bin_us(self) -> float:
        return (self.duration_us + 1) / len(self.counts)

    @property
    def per_second(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.counts * (1e6 / self.bin_us), np.float64)

    @property
    def unit(self) -> tuple[str, int]:
        """The unit of a time axis, and its length in microseconds."""
        return ("s", 1_000_000) if self.duration_us >= 2_000_000 else ("ms", 1_000)

    @property
    def lasts(self) -> str:
        """The duration in words, to the millisecond if it is more than 10 ms."""
        return time_text(round(self.duration_us, -3 if self.duration_us > 10_000 else 0))


def rates(path: Path, bins: int = RATE_BINS) -> EventRates:
    """Of a recording of any length, in memory that does not grow with it if its format allows that;
    MediaError if it cannot be read."""
    with streams.opened(path, label(path)) as recording:
        return EventRates(recording.duration_us(), recording.rates(bins))


def duration_us(events: Events) -> int:
    """Between the smallest and the largest time."""
    return int(events.t.max() - events.t.min())


def density(events: Events, bins: int = BINS) -> EventDensity:
    """All events in `bins` bins of equal length; the last event falls into the last bin."""
    width = (duration_us(events) + 1) / bins
    places = np.minimum((events.t - events.t.min()) / width, bins - 1).astype(np.intp)
    on = np.bincount(places[events.p == 1], minlength=bins)
    return EventDensity(width, on, np.bincount(places, minlength=bins))


def slice_spans(events: Events, split: Split = COUNT_SPLIT) -> list[SliceSpan]:
    """What each picture of `events.render` covers; MediaError if there are too few events.  A part
    without events, which a split by time may have, begins and ends where the one before it ends."""
    begin, spans = events.t.min(), list[SliceSpan]()
    for part in streams.parts(events, split):
        times = events.t[part] - begin
        last = spans[-1].end_us if spans else 0
        low, high = (times.min(), times.max()) if len(times) else (last, last)
        spans.append(SliceSpan(int(low), int(high), len(times)))
    return spans


def window(events: Events, begin_us: float, length_us: float) -> tuple[Image, int, int]:
    """The events from `begin_us` on, for `length_us`, drawn as the event pictures are, and how
    many have p = 1 and p = 0."""
    times = events.t - events.t.min()
    some = events.take(np.flatnonzero((times >= begin_us) & (times < begin_us + length_us)))
    on = int(some.p.sum())
    return streams.draw(some, slice(None), "stream"), on, len(some) - on

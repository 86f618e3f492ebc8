"""One time line of a sample: how many events when, and when each picture that a model receives is
from.  Times are microseconds after 0, where the first event and the first frame of the clip are: no
file says which began earlier.  A file that cannot be read becomes a sentence."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from engine import media
from engine.errors import MediaError
from engine.media import events as streams
from engine.media import images, video
from engine.media.media_files import label
from engine.media_options import COUNT_SPLIT, Split, Window, time_text
from engine.types import (
    DEFAULT_MEDIA,
    EXTENTS,
    ChosenFrames,
    Events,
    Image,
    Media,
    MediaKind,
    MediaOptions,
    Sample,
)

T = TypeVar("T")
WIDTH = 320  # pixels of a picture that is kept
MAX_EVENTS = 10_000_000  # of a stream that is counted and drawn here; 13 bytes each
UNKNOWN_IMAGES = (
    "The times of the event images are unknown: they are drawn in order, with equal lengths."
)
SAME_IMAGES = (
    "The event images equal the slices of the raw events, so their times are those of the slices."
)
UNKNOWN_FRAMES = (
    "The times of the frames are unknown: they are drawn at equal distances, the first at 0 and "
    "the last at the end."
)
BOTH = (
    "The first event and the first frame of the clip are both drawn at 0: the files do not say "
    "which began earlier."
)
APART = (
    "The frames are of the whole clip, which begins at 0 too: they are not from the same moments "
    "as the events of the window."
)
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


@dataclass(frozen=True, eq=False)
class SeenPicture:
    """A picture that a model receives, and its time; a frame begins and ends at one moment.
    `known` is False if the time is only assumed.  `events` is the number of events drawn in it."""

    name: str
    begin_us: float
    end_us: float
    known: bool
    picture: Image
    events: int | None = None


@dataclass(frozen=True)
class SeenRow:
    """The pictures of one kind of model in the order of time, and where they come from."""

    kind: MediaKind
    source: str
    pictures: tuple[SeenPicture, ...]


@dataclass(frozen=True)
class SeenTimeline:
    """From 0 to `window_us`, which is 0 if no file has a time; `notes` are sentences."""

    window_us: float
    density: EventDensity | None
    rows: tuple[SeenRow, ...]
    notes: tuple[str, ...]


def read_events(path: Path, window: Window | None = None) -> Events:
    """The raw events, if they are few enough to be counted and drawn here; else MediaError."""
    stream = streams.read(path, window)
    if len(stream) > MAX_EVENTS:
        raise MediaError(
            f"{len(stream):,} events are too many for the time line (at most {MAX_EVENTS:,}): "
            "choose a window, as in 0s+1s."
        )
    return stream


def timeline(
    sample: Sample, kinds: Collection[MediaKind], how: MediaOptions = DEFAULT_MEDIA
) -> SeenTimeline:
    """What models of these kinds receive of the sample, with the settings of `media.load`."""
    notes: list[str] = []
    every = (_read(partial(media.load, sample, kind, how), notes) for kind in kinds)
    loaded = [shown for shown in every if shown is not None]
    stream = _read(partial(_stream, sample, how), notes)
    clips = {shown.frames.clip for shown in loaded if shown.frames and shown.frames.clip}
    times = {clip: _read(partial(video.times, clip), notes) or () for clip in clips}
    ends = [duration_us(stream) if stream else 0]
    window = float(max([*ends, *(moments[-1] for moments in times.values() if moments)]))
    rows = [
        _frames(shown, shown.frames, times, window)
        if shown.frames
        else _event_images(shown, stream, how.split, window)
        for shown in loaded
    ]
    part = how.window_of(sample)
    if stream and part:
        notes.append(f"The events are those of the window {part}: its first event is at 0.")
    if stream and how.perturbed:
        notes.append(f"The events are perturbed by {how.perturbed}.")
    if stream and any(times.values()):
        notes.append(APART if part else BOTH)
    counted = density(stream) if stream else None
    for row in rows:
        known, events = [one.known for one in row.pictures], row.kind == "events"
        if not all(known):
            notes.append(UNKNOWN_IMAGES if events else UNKNOWN_FRAMES)
        elif events and row.source.endswith("event images") and any(known):
            notes.append(SAME_IMAGES)
    return SeenTimeline(window, counted, tuple(rows), tuple(dict.fromkeys(notes)))


def _read(what: Callable[[], T], notes: list[str]) -> T | None:
    """What was read; None with a note if that failed."""
    try:
        return what()
    except MediaError as error:
        notes.append(str(error))
        return None


def _stream(sample: Sample, how: MediaOptions) -> Events | None:
    if sample.events is None:
        return None
    plain = read_events(sample.events, how.window_of(sample))
    return streams.perturbed(plain, how, sample.id, sample.events.name)


def _event_images(found: Media, stream: Events | None, split: Split, window: float) -> SeenRow:
    """Slices of the raw events, or images that were ready; those have times only if equal."""
    total = len(found.images)
    spans = _spans(found, stream, split)
    edges = np.linspace(0, window or total, total + 1).tolist()
    assumed = [(begin, end, None) for begin, end in pairwise(edges)]
    pictures: list[SeenPicture] = []
    for image, (begin, end, events) in zip(found.images, spans or assumed, strict=True):
        name, small = f"Event image {len(pictures) + 1} of {total}", images.shrink(image, WIDTH)
        pictures.append(SeenPicture(name, begin, end, spans is not None, small, events))
    return SeenRow(found.kind, found.source, tuple(pictures))


def _spans(found: Media, stream: Events | None, split: Split) -> list[SliceSpan] | None:
    """The slices that the pictures were drawn from; None if they are not known."""
    total = len(found.images)
    if stream is None or len(stream) < total:
        return None
    if found.extent is not None:  # they were drawn from the events
        return slice_spans(stream, split)
    equal = Split(parts=total)
    for extent in EXTENTS:
        drawn = streams.render(stream, equal, extent)
        if all(np.array_equal(a, b) for a, b in zip(found.images, drawn, strict=True)):
            return slice_spans(stream, equal)
    return None


def _frames(
    found: Media, chosen: ChosenFrames, times: dict[Path, tuple[float, ...]], window: float
) -> SeenRow:
    """A tick per frame; a frame that is shown several times is one tick."""
    known = times.get(chosen.clip, ()) if chosen.clip else ()
    given = known if len(known) == chosen.count else ()
    pictures: dict[int, SeenPicture] = {}
    for index, image in zip(chosen.indices, found.images, strict=True):
        at = given[index] if given else index / max(1, chosen.count - 1) * (window or chosen.count)
        name = f"Frame {index} of {chosen.count:,}"
        small = images.shrink(image, WIDTH)
        pictures.setdefault(index, SeenPicture(name, at, at, bool(given), small))
    return SeenRow(found.kind, found.source, tuple(pictures.values()))

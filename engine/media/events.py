"""Event streams: checks what a reader gives, makes `Events` of it, and draws them as pictures.

Boundary: knows no formats (readers/).  It checks and normalises the values once; after that x and y
are uint16, p is 0 or 1, and t is int64 microseconds.  A reader gives microseconds, so fractions
(which would be seconds) and times that cannot be microseconds are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import readers
from engine.media.media_files import label
from engine.media.readers import Column, Columns
from engine.media_options import COUNT_SPLIT, DENSEST_US, Split, Window, time_text
from engine.quoting import counted, shown
from engine.types import Events, Extent, Image

# Four times the side of today's largest sensors; one wrong coordinate must not fill the memory.
MAX_SIDE = 4096
MAX_EVENTS = 1 << 26  # 67 million: about 2 GB during checking and drawing
LONG_MS = 100.0
JUMP_US = 10_000  # later events than this are no mere disorder of single events
MAX_SPREAD = 10  # of all times, against the middle 80 % of them
MAX_US = 2**53  # 285 years: larger times are nanoseconds since 1970
LONGEST_US = 10**11  # 28 hours
SHORTEST_US = 10_000  # whole numbers as floats over less may be seconds
BURST_US, BURST, DENSEST = 1_000, 100, 1_000  # more events in 1 us than in a burst, or at any time
MAX_ZERO = 0.01  # of the events
WRAP_US = 1_000_000  # between the events at an overflow
REFUSED = f"although EventGPT's published code refuses streams of {LONG_MS:.0f} ms and longer."

Numbers = npt.NDArray[Any]
Part = slice | npt.NDArray[np.intp]  # events of one picture


def read(path: Path, window: Window | None = None, name: str = "") -> Events:
    """The stream of an event file, or the part of it in the window.

    MediaError if the file is missing, damaged or not plain numbers, or if the window is empty.
    """
    called = name or label(path)
    with readers.opened(path, called) as recording:
        found, lasts = recording.events(window), recording.duration_us()
    if window is None or window.end_us <= lasts + 1:
        return found
    note = f"{called} lasts {time_text(lasts)}: it ends within the window {window}."
    return replace(found, warnings=(*found.warnings, note))


def normalised(columns: Columns, name: str) -> Events:
    """The checked stream of a reader's columns; `name` is used in error messages."""
    table = columns.table
    x, y, t, p = (_stream(table, key, name) for key in "xytp")
    lengths = {key: len(values) for key, values in zip("xytp", (x, y, t, p), strict=True)}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{key} {length:,}" for key, length in lengths.items())
        raise MediaError(f"{name} has columns of different lengths ({sizes}): record it again.")
    if not len(t):
        raise MediaError(f"{name} holds 0 events: pick another recording.")
    refuse_many(len(t), name)
    zero = _zero_events(x, y, t, p, name)
    times, wrapped = _unwrap(_whole(t, "t", name), name)
    if not columns.as_published:  # EventGPT's own form may hold parts in any order
        _refuse_jumps(times, name)
    polarity, negative = _polarity(_whole(p, "p", name), columns.as_published, name)
    width = _side(x, columns.width, "x", name)
    height = _side(y, columns.height, "y", name)
    notes = (*columns.notes, *zero, *_notes(times, wrapped, name), *negative)
    x, y = x.astype(np.uint16), y.astype(np.uint16)
    return Events(x, y, times, polarity, width, height, notes)


def refuse_many(count: int, name: str) -> None:
    """MediaError for more events than are held in memory at once."""
    if count > MAX_EVENTS:
        raise MediaError(
            f"{name} holds {count:,} events, and at most {MAX_EVENTS:,} are read at once: choose a "
            "window, as in --window 0s+1s."
        )


def refuse_other_units(count: int, duration_us: int, floats: bool, name: str) -> None:
    """MediaError for a recording whose times cannot be microseconds.

    `floats`: the times are stored as floats without a unit.
    """
    if duration_us >= LONGEST_US:
        hours = f"{duration_us / 3.6e9:,.0f} hours"
        what, unit = f"times over {hours} (the limit is 28)", "nanoseconds"
    elif count > (BURST if duration_us < BURST_US else DENSEST) * (duration_us + 1):
        what = f"{counted(count, 'event')} within {counted(duration_us + 1, 'microsecond')}"
        unit = "seconds or no times"
    elif floats and duration_us < SHORTEST_US:
        what, unit = f"floats as times, which span {duration_us:,}", "seconds"
    else:
        return
    raise MediaError(
        f"{name} has {what}: its times look like {unit}, so give microseconds as integers, or "
        "state the unit where the format can."
    )


def cut(events: Events, window: Window | None, name: str, first_us: int | None = None) -> Events:
    """The events in the window; MediaError if there are none.

    It counts from the time `first_us`, by default from the first event.
    """
    if window is None:
        return events
    begin = int(events.t.min()) if first_us is None else first_us
    inside = (events.t >= begin + window.start_us) & (events.t < begin + window.end_us)
    if not inside.any():
        raise no_events(name, window, int(events.t.max()) - begin)
    found = events.take(inside)
    notes = tuple(note for note in events.warnings if not note.endswith(REFUSED))
    return replace(found, warnings=(*notes, *_long(found.t, name)))


def no_events(name: str, window: Window, duration_us: int) -> MediaError:
    """The error of a window without events."""
    return MediaError(
        f"{name} has no events in the window {window}: it lasts {time_text(duration_us)}, choose "
        "another window."
    )


def render(events: Events, split: Split = COUNT_SPLIT, extent: Extent = "slice") -> list[Image]:
    """The event pictures [H, W, 3]: white background, red for p = 1, blue for p = 0.

    The last event at a pixel wins.  With extent "slice" the size of a picture is
    (max(y) + 1, max(x) + 1) of its events, as in the published code; with "stream", and for a part
    without events, it is that of the whole stream.  MediaError if there are too few events.
    """
    return [draw(events, part, extent) for part in parts(events, split)]


def parts(events: Events, split: Split = COUNT_SPLIT) -> list[Part]:
    """The parts of the stream that `render` draws; MediaError if it has too few events.

    "count": equal numbers of events in file order, the last part takes the remainder.  The others:
    equal durations between the first and the last event.
    """
    if split.rule == "count":
        if len(events) < split.parts:
            raise MediaError(
                f"{counted(len(events), 'event')} cannot be cut into {split.parts:,} slices: "
                "choose a "
                "longer recording or window, or fewer parts."
            )
        size = len(events) // split.parts
        ends = [*(index * size for index in range(split.parts)), len(events)]
        return [slice(*pair) for pair in pairwise(ends)]
    order = np.argsort(events.t, kind="stable")
    times = events.t[order]
    begin, after = int(times[0]), int(times[-1]) + 1
    edges = [begin + (after - begin) * index // split.parts for index in range(split.parts + 1)]
    found: list[Part] = []
    for low, high in pairwise(edges):
        if split.rule == "densest":
            low, high = _densest(times, low, high)
        first, last = np.searchsorted(times, [low, high])
        found.append(np.sort(order[first:last]))  # file order: the last event at a pixel wins
    return found


def _densest(times: npt.NDArray[np.int64], low: int, high: int) -> tuple[int, int]:
    """The 25 ms between two times that hold the most events, from an event on; the first such.

    Near the end they are fewer than 25 ms, and hold what the last 25 ms from that event on hold.
    """
    first, last = np.searchsorted(times, [low, high])
    begins = times[first:last]
    if not len(begins):
        return low, high
    ends = np.searchsorted(times, np.minimum(begins + DENSEST_US, high))
    best = int(begins[int((ends - np.arange(first, last)).argmax())])
    return best, min(best + DENSEST_US, high)


def draw(events: Events, part: Part, extent: Extent) -> Image:
    """The events of one part, which may be none, as a picture [H, W, 3]."""
    x, y = events.x[part], events.y[part]
    height, width = events.height, events.width
    if extent == "slice" and len(x):
        height, width = int(y.max()) + 1, int(x.max()) + 1
    picture = np.full((height * width, 3), 255, np.uint8)
    pixels = y.astype(np.intp) * width + x
    red = events.p[part] * np.uint8(255)
    # NumPy assigns in order, so the last event at a pixel wins.
    picture[pixels, 0] = red
    picture[pixels, 1] = 0
    picture[pixels, 2] = ~red
    return picture.reshape(height, width, 3)


def _stream(table: Mapping[str, Column], key: str, name: str) -> Numbers:
    values = table.get(key)
    if not isinstance(values, np.ndarray):
        found = shown(", ".join(sorted(table)) or "none")
        raise MediaError(
            f"{name} has no array {key!r} (found: {found}): give a file with x, y, t and p."
        )
    if values.ndim != 1:
        raise MediaError(f"{name} has {key} of shape {values.shape}: give one value per event.")
    return values


def _whole(values: Numbers, key: str, name: str) -> Numbers:
    """The values as integers; floats are accepted if they are finite and have no fraction."""
    if values.dtype.kind == "b":
        if key == "t":
            raise MediaError(f"{name} has true and false as times: give microseconds as integers.")
        return values.astype(np.uint8)
    if values.dtype.kind != "f":
        return values
    with np.errstate(invalid="ignore"):  # rounding a NaN may warn
        values = values.astype(np.float64, copy=False)
        bad = ~np.isfinite(values) | (values != np.trunc(values)) | (np.abs(values) >= 2**62)
    if bad.any():
        at = int(bad.argmax())
        unit = " of microseconds" if key == "t" else ""
        raise MediaError(
            f"{name} has {key} = {values[at]} at event {at:,}: give whole numbers{unit}."
        )
    return values.astype(np.int64)


def _side(values: Numbers, given: int | None, key: str, name: str) -> int:
    """The sensor's width or height: from the file, else the largest coordinate + 1."""
    whole = _whole(values, key, name)
    low, high = int(whole.min()), int(whole.max())
    if low < 0 or high >= MAX_SIDE:
        wrong = low if low < 0 else high
        raise MediaError(
            f"{name} has an event at {key} = {wrong:,}: coordinates from 0 to {MAX_SIDE - 1:,} "
            "can be drawn, record it again."
        )
    if given is None:
        return high + 1
    if not high < given <= MAX_SIDE:
        side = "width" if key == "x" else "height"
        raise MediaError(
            f"{name} says {side} {given:,} but has an event at {key} = {high:,}: correct the "
            f"{side} (at most {MAX_SIDE:,})."
        )
    return given


def _polarity(
    p: Numbers, as_published: bool, name: str
) -> tuple[npt.NDArray[np.uint8], tuple[str, ...]]:
    """(0 or 1 per event, a note if there was a -1).

    -1 is darker, like 0.  EventGPT's published code draws all but 0 as brighter, so its own form of
    file is read that way.
    """
    known = (p == 0) | (p == 1) | (p == -1)
    if not known.all():
        wrong = p[int((~known).argmax())]
        raise MediaError(f"{name} has an event of polarity {wrong}: give 0 and 1.")
    if not (p == -1).any():
        return (p == 1).astype(np.uint8), ()
    if as_published:
        note = f"{name} has polarity -1, which is drawn as positive (red), as in EventGPT's code."
        return (p != 0).astype(np.uint8), (note,)
    return (p == 1).astype(np.uint8), (f"{name} has polarity -1, which is read as 0 (blue).",)


def _zero_events(x: Numbers, y: Numbers, t: Numbers, p: Numbers, name: str) -> tuple[str, ...]:
    """A note on events of which all columns are 0, but for the first; MediaError if they are many.

    They are parts of a file that were never written, or were lost.
    """
    zero = np.flatnonzero(t == 0)
    count = int(((x[zero] == 0) & (y[zero] == 0) & (p[zero] == 0)).sum()) - 1
    if count > MAX_ZERO * len(t):
        raise MediaError(
            f"{name} is damaged: {count + 1:,} of its {len(t):,} events are zeros in all columns, "
            "so copy it again."
        )
    return (f"{counted(count, 'event')} of {name} are zeros in all columns.",) if count > 0 else ()


def _unwrap(t: Numbers, name: str) -> tuple[npt.NDArray[np.int64], int]:
    """(t without overflows of a counter of 16, 31 or 32 bits, the number of overflows).

    In a column with more bits than the counter the times must go on within a second.
    """
    low, high = int(t.min()), int(t.max())
    for extreme in (low, high):
        if abs(extreme) >= MAX_US:
            raise MediaError(f"{name} has an event at t = {extreme:,}: give microseconds.")
    times = t.astype(np.int64)
    lap = 1 << (16 if t.dtype.itemsize == 2 else 32 if high - low >= 1 << 31 else 31)
    slack = lap // 8 if lap == 1 << (8 * t.dtype.itemsize) else WRAP_US
    if not lap - slack < high - low < lap:
        return times, 0
    steps = np.diff(times)
    over = steps < slack - lap
    # A late event from before an overflow jumps forward by nearly as much, which undoes it.
    laps = np.cumsum(over.astype(np.int64) - (steps > lap - slack))
    back = steps[~over]
    # Other large steps back mean shuffled times, not an overflow.
    if not over.any() or laps.min() < 0 or (len(back) and back.min() < -(lap // 8)):
        return times, 0
    times[1:] += laps * lap
    return times, int(laps.max())


def _refuse_jumps(times: npt.NDArray[np.int64], name: str) -> None:
    """MediaError for damage: times that jump far away from nearly all others, and back.

    Parts in another order step back too, but all times are near each other then.
    """
    back = np.flatnonzero(times[1:] < times[:-1])
    far = int((times[back] - times[back + 1] > JUMP_US).sum())
    if far < 2:
        return
    low, high = np.quantile(times[:: len(times) // 100_000 + 1], (0.1, 0.9))
    span = int(times.max() - times.min())
    if span > MAX_SPREAD * (high - low + JUMP_US):
        raise MediaError(
            f"{name} is damaged: its times jump back {counted(far, 'time')} and reach over "
            f"{time_text(span)}, but most lie within {time_text(int(high - low))}, so copy it "
            "again."
        )


def _notes(times: npt.NDArray[np.int64], wrapped: int, name: str) -> tuple[str, ...]:
    notes = []
    if wrapped:
        notes.append(
            f"The time counter of {name} overflowed {counted(wrapped, 'time')} and was continued."
        )
    backward = int((times[1:] < times[:-1]).sum())
    if backward:
        notes.append(
            f"The times of {name} step back {counted(backward, 'time')}; events are drawn in file "
            "order."
        )
    return (*notes, *_long(times, name))


def _long(times: npt.NDArray[np.int64], name: str) -> Iterator[str]:
    """A note on a stream that the published code refuses."""
    duration = float(times.max() - times.min()) / 1000
    if duration >= LONG_MS:
        yield f"{duration:,.1f} ms of {name} are drawn, {REFUSED}"

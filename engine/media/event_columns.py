"""The columns of events as a file has them: their names, their units, and their check.  A reader
gives times in microseconds, so fractions (which would be seconds) and times that cannot be
microseconds are refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media_options import Window, time_text
from engine.quoting import count as counted
from engine.types import Events

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
MAX_CORNER = 100  # events in a row at x = 0, y = 0; 1 in the real and the demo recordings
WRAP_US = 1_000_000  # between the events at an overflow
REFUSED = f"although EventGPT's published code refuses streams of {LONG_MS:.0f} ms and longer."

# The names that event files use.
SPELLINGS = {
    "x": ("x", "xs", "x_coordinate", "x_coordinates"),
    "y": ("y", "ys", "y_coordinate", "y_coordinates"),
    "t": ("t", "ts", "time", "times", "timestamp", "timestamps"),
    "p": ("p", "ps", "pol", "pols", "polarity", "polarities", "on"),
}
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
UNITS = "s, ms, us or ns"
_UNIT = re.compile(r"(s|sec|seconds?)|(ms|milliseconds?)|(us|microseconds?)|(ns|nanoseconds?)")
_NAME = re.compile(rf"([a-z]+)(?:[_ ]({_UNIT.pattern})|\s*[\[(]([^\])]+)[\])])")

Numbers = npt.NDArray[Any]
Times = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Columns:
    """x, y, t and p of N events, and the sensor's size if the file states it.  `notes` are
    sentences about the file.  `as_published`: a file in the form of EventGPT's data."""

    x: Numbers
    y: Numbers
    t: Numbers
    p: Numbers
    _: KW_ONLY
    width: int | None = None
    height: int | None = None
    notes: tuple[str, ...] = ()
    as_published: bool = False

    def between(self, begin: int, end: int) -> Columns:
        """The events from `begin` to before `end`; NaN stays, which is refused later."""
        outside = (self.t < begin) | (self.t >= end)
        if not outside.any():
            return self
        x, y, t, p = (getattr(self, key)[~outside] for key in "xytp")
        return replace(self, x=x, y=y, t=t, p=p)

    @staticmethod
    def joined(parts: Sequence[Columns]) -> Columns:
        if len(parts) == 1:
            return parts[0]
        return Columns(*(np.concatenate([getattr(part, key) for part in parts]) for key in "xytp"))


def known(names: Iterable[str]) -> dict[str, str]:
    """x, y, t and p to the first name that is a spelling of it; those without one are left out."""
    found: dict[str, str] = {}
    for name in names:
        for column, spellings in SPELLINGS.items():
            if name.lower() in spellings:
                found.setdefault(column, name)
    return found


def with_unit(name: str) -> tuple[str, str]:
    """The name and the unit behind it, as in t_us, t[us] and "time (us)"; "" without one.  A unit
    in brackets that is not known is given as it stands."""
    text = _lower(name)
    match = _NAME.fullmatch(text)
    if match is None or match[1] not in SPELLINGS["t"]:
        return text, ""
    stated = match[2] or match[match.re.groups]
    return match[1], unit(stated) or stated


def unit(text: str) -> str:
    """The key of MICROSECONDS that a text means, in any case; "" for an unknown one."""
    match = _UNIT.fullmatch(_lower(text))
    return list(MICROSECONDS)[(match.lastindex or 0) - 1] if match else ""


def _lower(text: str) -> str:
    plain = text.strip().lower()
    return plain.replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")


def microseconds(values: Numbers, factor: float, name: str) -> Times:
    """The times in whole microseconds; MediaError for one that is too large or no number."""
    scaled = np.rint(values.astype(np.float64) * factor)
    bad = ~(np.abs(scaled) < MAX_US)
    if bad.any():
        raise MediaError(f"{name} has a time of {values[bad][0]}: give microseconds.")
    return scaled.astype(np.int64)


def normalised(columns: Columns, name: str) -> Events:
    """The checked stream; `name` is used in error messages."""
    x, y, t, p = columns.x, columns.y, columns.t, columns.p
    refuse_lengths({"x": x, "y": y, "t": t, "p": p}, name)
    if not len(t):
        raise MediaError(f"{name} holds 0 events: pick another recording.")
    refuse_many(len(t), name)
    notes = [*columns.notes, *_zero_events(columns, name)]
    times, wrapped = _unwrap(_whole(t, "t", name), name)
    if not columns.as_published:  # EventGPT's own form may hold parts in any order
        _refuse_jumps(times, name)
    polarity = _whole(p, "p", name)
    wrong = (polarity != 0) & (polarity != 1) & (polarity != -1)
    if wrong.any():
        raise MediaError(f"{name} has an event of polarity {polarity[wrong][0]}: give 0 and 1.")
    width = _side(x, columns.width, "x", name)
    height = _side(y, columns.height, "y", name)
    if wrapped:
        notes.append(
            f"The time counter of {name} overflowed {counted(wrapped, 'time')} and was continued."
        )
    if backward := int((times[1:] < times[:-1]).sum()):
        notes.append(
            f"The times of {name} step back {counted(backward, 'time')}; events are drawn in file "
            "order."
        )
    notes += _long(times, name)
    # -1 is darker, like 0, but EventGPT's published code draws all but 0 as brighter.
    brighter = polarity != 0 if columns.as_published else polarity == 1
    if (polarity == -1).any():
        how = "drawn as positive (red), as in EventGPT's code"
        how = how if columns.as_published else "read as 0 (blue)"
        notes.append(f"{name} has polarity -1, which is {how}.")
    x, y = x.astype(np.uint16), y.astype(np.uint16)
    return Events(x, y, times, brighter.astype(np.uint8), width, height, tuple(notes))


def repeats(values: Numbers, most: int) -> npt.NDArray[np.intp]:
    """The places of values that equal the one before, in rows of more than `most` of them."""
    places = np.flatnonzero(values[1:] == values[:-1]) + 1
    starts = np.flatnonzero(np.diff(places, prepend=-1) != 1)
    lengths = np.diff(starts, append=len(places))
    return places[np.repeat(lengths > most, lengths)]


def refuse_lengths(arrays: Mapping[str, Sized], name: str) -> None:
    lengths = {key: len(array) for key, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{key} {length:,}" for key, length in lengths.items())
        raise MediaError(f"{name} has columns of different lengths ({sizes}): record it again.")


def refuse_many(count: int, name: str, most: int = 0) -> None:
    """MediaError for more events than are held in memory at once: `most`, or MAX_EVENTS."""
    most = most or MAX_EVENTS
    if count > most:
        raise MediaError(
            f"{name} holds more than {most:,} events, the most that are read at once: choose "
            "a window, as in --window 0s+1s."
        )


def refuse_other_units(count: int, duration_us: int, floats: bool, name: str) -> None:
    """MediaError for a recording whose times cannot be microseconds.  `floats`: the times are
    stored as floats without a unit."""
    if duration_us >= LONGEST_US:
        what, unit = f"times over {duration_us / 3.6e9:,.0f} hours (the limit is 28)", "nanoseconds"
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


def cut(events: Events, window: Window | None, name: str) -> Events:
    """The events in the window, which counts from the first one; MediaError if there are none."""
    if window is None:
        return events
    begin = int(events.t.min())
    inside = (events.t >= begin + window.start_us) & (events.t < begin + window.end_us)
    if not inside.any():
        raise no_events(name, window, int(events.t.max()) - begin)
    found = events.take(inside)
    notes = tuple(note for note in events.warnings if not note.endswith(REFUSED))
    return replace(found, warnings=(*notes, *_long(found.t, name)))


def no_events(name: str, window: Window, duration_us: int) -> MediaError:
    return MediaError(
        f"{name} has no events in the window {window}: it lasts {time_text(duration_us)}, choose "
        "another window."
    )


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
    side = "width" if key == "x" else "height"
    if low < 0 or high >= MAX_SIDE:
        what = f"has an event at {key} = {low if low < 0 else high:,}"
    elif given is not None and not high < given <= MAX_SIDE:
        what = f"says {side} {given:,} but has an event at {key} = {high:,}"
    else:
        return high + 1 if given is None else given
    raise MediaError(f"{name} {what}: record it again, with a {side} of at most {MAX_SIDE:,}.")


def _zero_events(columns: Columns, name: str) -> tuple[str, ...]:
    """A note on events that were never written or were lost: of which all columns are 0, but for
    the first, or x and y of many in a row.  MediaError if they are many."""
    zero = np.flatnonzero((columns.x == 0) & (columns.y == 0))
    lost = (columns.t[zero] == 0) & (columns.p[zero] == 0)
    more = repeats(zero - np.arange(len(zero)), MAX_CORNER)
    lost[more] = lost[more - 1] = True
    count, what = int(lost.sum()) - 1, "zeros in all columns, or in x and y of many in a row"
    if count > MAX_ZERO * len(columns.t):
        raise MediaError(
            f"{name} is damaged: {count + 1:,} of its {len(columns.t):,} events are {what}, so "
            "copy it again."
        )
    return (f"{counted(count, 'event')} of {name} are {what}.",) if count > 0 else ()


def _unwrap(t: Numbers, name: str) -> tuple[Times, int]:
    """(t without overflows of a counter of 16, 31 or 32 bits, the number of overflows).  In a
    column with more bits than the counter the times must go on within a second."""
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


def _refuse_jumps(times: Times, name: str) -> None:
    """MediaError for damage: times that jump far away from nearly all others, and back.  Parts in
    another order step back too, but all times are near each other then."""
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


def _long(times: Times, name: str) -> Iterator[str]:
    duration = float(times.max() - times.min()) / 1000
    if duration >= LONG_MS:
        yield f"{duration:,.1f} ms of {name} are drawn, {REFUSED}"

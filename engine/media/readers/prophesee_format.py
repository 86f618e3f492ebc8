"""The header of Prophesee's files, and the words of its encodings EVT2, EVT2.1 and EVT3.

Format: docs.prophesee.ai, "RAW File Format", "DAT File Format" and "EVT 2.0/2.1/3.0 Format".  A
header is lines of text that begin with "% ", each a key and a value.  A line "% end" may close it;
otherwise it ends before the first line that does not begin so.

The top 4 bits of a word are its type.  A word of type 8 (time high) sets the upper bits of the
time; all later events add their lower bits to it.  In EVT3 the row, the column of a vector, the
polarity and the lower bits are words of their own.

Decoding begins with the state in front of the words.  The state is put there as words, so every
event has a time and a row before it.  Where the standard leaves the meaning open, this does what
the vendor's decoder (OpenEB) does: a repeated time high keeps the lower bits.

A time high that falls by half of its values or more is an overflow; one that falls by less is an
error, so the times of events go back by less than one step of a time high: 64 us in EVT2 and
EVT2.1, 4,096 us in EVT3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media.event_columns import MAX_SIDE, Columns, Times
from engine.quoting import count as counted
from engine.quoting import quoted

MAX_HEADER = 1 << 16
_LINE = re.compile(rb"% ?([\t\x20-\x7e\x80-\xff]{0,1000})\r?\n")
_PAIR = re.compile(r"([0-9]{1,9})\s*[xX]\s*([0-9]{1,9})")
Words = npt.NDArray[Any]
TIME_HIGH = 8
ROW, _COLUMN, _BASE, _VECTOR_12, _VECTOR_8, _TIME_LOW = 0, 2, 3, 4, 5, 6  # of EVT3
NO_ROW = 0xFFF  # rows have 11 bits


@dataclass(frozen=True)
class Header:
    """The values by lower-case key, the options of "format", and where the header ends.  `sensor`:
    its (width, height), None if it is not stated."""

    values: Mapping[str, str]
    options: Mapping[str, str]
    end: int
    sensor: tuple[int, int] | None

    @property
    def encoding(self) -> str:
        """The name that "format" or else "evt" gives, such as "EVT3" or "EVT2.1"; "" for none."""
        name = self.values.get("format", "").split(";")[0].strip().upper()
        version = self.values.get("evt", "").removesuffix(".0")
        return name or (f"EVT{version}" if version else "")

    def notes(self, name: str, rest: int) -> tuple[str, ...]:
        """On a file without a sensor size, or with `rest` bytes of half an event."""
        unknown = f"{name} states no sensor size, so the events' own is taken."
        half = (
            f"{name} ends with {counted(rest, 'byte')} of an incomplete event, which are left out; "
            "the file may have been cut short."
        )
        return (*([] if self.sensor else [unknown]), *([half] if rest else []))


def parse(head: bytes, name: str) -> Header:
    """The header at the beginning of a file; MediaError if there is none, or an impossible one."""
    values, at = dict[str, str](), 0
    while line := _LINE.match(head, at):
        key, _, value = line[1].decode("latin-1").strip().partition(" ")
        at = line.end()
        if key == "end":
            break
        values[key.lower()] = value.strip()
    if not values or at >= MAX_HEADER:
        raise MediaError(f"{name} has no header of Prophesee (lines with %): record it again.")
    pairs = (part.split("=", 1) for part in values.get("format", "").split(";") if "=" in part)
    options = {key.strip().lower(): value.strip() for key, value in pairs}
    sides = (options.get(side, values.get(side, "")) for side in ("width", "height"))
    text = values.get("geometry") or "x".join(sides)
    if text == "x":
        return Header(values, options, at, None)
    found = _PAIR.fullmatch(text)
    size = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(1 <= side <= MAX_SIDE for side in size):
        raise MediaError(
            f"{name} states the sensor size {quoted(text)}: give a file with a width and a height "
            f"from 1 to {MAX_SIDE:,}."
        )
    return Header(values, options, at, size)


@dataclass(frozen=True)
class State:
    """What the words before a place have set; `time` includes overflows, `low` is its lower part.
    `base` is the column and, in bit 11, the polarity of a vector."""

    time: int
    row: int = 0
    base: int = 0


@dataclass(frozen=True)
class Encoding:
    """How words are laid out: the type and the time are in a control word of `bits` bits.  `stride`
    control words make one word of the file, and the control word is the one at `offset`."""

    name: str
    bits: int  # of a control word
    low: int  # bits of the time that are not in a time high
    reserved: tuple[int, ...]  # types that no word has
    stride: int = 1
    offset: int = 0

    @property
    def word(self) -> int:
        """Bytes of a word in the file."""
        return self.bits * self.stride // 8

    @property
    def unit(self) -> int:
        """Microseconds of one step of a time high."""
        return 1 << self.low

    @property
    def span(self) -> int:
        """How many values a time high has."""
        return 1 << (self.bits - 4)

    @property
    def lap(self) -> int:
        """Microseconds after which the time overflows."""
        return self.span << self.low

    def control(self, data: bytes | bytearray | memoryview) -> Words:
        return np.frombuffer(data, f"<u{self.bits // 8}")[self.offset :: self.stride]

    def values(self, control: Words) -> Times:
        found = control[control >> (self.bits - 4) == TIME_HIGH]
        values: Times = found.astype(np.int64) & (self.span - 1)
        return values

    def falls(self, steps: Times) -> npt.NDArray[np.bool_]:
        """Which steps between time highs are an overflow; ValueError if one goes back."""
        back = steps[(steps < 0) & (steps > -self.span // 2)]
        if len(back):
            raise ValueError(f"its time goes back by {-int(back[0]) << self.low:,} us")
        return steps < 0

    def laps(self, values: Times) -> Times:
        """How often time highs have overflowed at each of them."""
        return np.concatenate([[0], np.cumsum(self.falls(np.diff(values)))])


# Types 2, 3 and 13 are not in the vendor's tables either, but its older cameras write them.
_RESERVED = (4, 5, 6, 7, 9, 11, 12)
EVT2 = Encoding("EVT2", 32, 6, _RESERVED)
EVT21 = Encoding("EVT2.1", 32, 6, _RESERVED, stride=2, offset=1)
EVT21_LEGACY = replace(EVT21, offset=0)  # IMX636 sends the upper half first
EVT3 = Encoding("EVT3", 16, 12, (1, 9, 11, 12))
ENCODINGS: Mapping[str, Encoding] = {"EVT2": EVT2, "EVT2.1": EVT21, "EVT21": EVT21, "EVT3": EVT3}


def decode(encoding: Encoding, data: bytes, state: State) -> tuple[Columns, State]:
    """The events of whole words, and the state behind them; ValueError if their time goes back."""
    control = encoding.control(data)
    if encoding is EVT3:
        return _evt3(control, state)
    masks = None if encoding is EVT2 else _masks(encoding, data)
    return _evt2(encoding, control, masks, state)


def count(encoding: Encoding, data: bytes) -> int:
    control = encoding.control(data)
    kinds = control >> (encoding.bits - 4)
    if encoding is EVT2:
        return int(np.count_nonzero(kinds < 2))
    if encoding is EVT3:
        vectors = control[(kinds == _VECTOR_12) | (kinds == _VECTOR_8)]
        masks = np.where(vectors >> 12 == _VECTOR_12, vectors & 0xFFF, vectors & 0xFF)
        return int(np.count_nonzero(kinds == _COLUMN) + np.bitwise_count(masks).sum())
    return int(np.bitwise_count(_masks(encoding, data)[kinds < 2]).sum())


def strange(encoding: Encoding, control: Words) -> int:
    """How many words no sensor writes: of a reserved type, zeros behind another zero word, and in
    EVT2.1 events whose first column is not a multiple of 32.

    A single zero word is an event of EVT2 and a row of EVT3, but no sensor sends it twice in a row.
    """
    reserved = control.dtype.type(sum(1 << kind for kind in encoding.reserved))
    kinds = control >> control.dtype.type(encoding.bits - 4)
    zero = control == 0
    found = np.count_nonzero(np.right_shift(reserved, kinds) & 1)
    found += np.count_nonzero(zero[1:] & zero[:-1])
    if encoding.stride > 1:
        found += np.count_nonzero(control[kinds < 2] >> 11 & 31)
    return int(found)


def _masks(encoding: Encoding, data: bytes) -> Words:
    """Of EVT2.1: which of 32 columns have an event."""
    return np.frombuffer(data, "<u4")[1 - encoding.offset :: 2]


def _evt2(
    encoding: Encoding, control: Words, masks: Words | None, state: State
) -> tuple[Columns, State]:
    high = np.uint32(TIME_HIGH << 28 | (state.time % encoding.lap) >> encoding.low)
    words = np.concatenate([[high], control]).astype(np.uint32)
    kinds = words >> 28
    is_high = kinds == TIME_HIGH
    times = _unwrapped(words[is_high] & 0x0FFFFFFF, encoding, state.time)
    events = np.flatnonzero(kinds < 2)
    found = words[events]
    t = times[np.cumsum(is_high, dtype=np.int32)[events] - 1] + ((found >> 22) & 63)
    table = Columns(
        ((found >> 11) & 2047).astype(np.int32), (found & 2047).astype(np.int32), t, found >> 28 > 0
    )
    if masks is not None:
        table = _spread(table, masks[events - 1], 32)
    return table, State(int(times[-1]))


def _unwrapped(values: Words, encoding: Encoding, first: int) -> Times:
    """The times of time highs; the first one has the time `first`."""
    highs = values.astype(np.int64)
    laps = encoding.laps(highs)
    times: Times = highs << encoding.low
    times += (first // encoding.lap + laps) * encoding.lap
    return times


def _spread(table: Columns, masks: Words, bits: int) -> Columns:
    """An event for each set bit of a mask, at the column plus the bit's place."""
    set_bits = (masks[:, None] >> np.arange(bits, dtype=masks.dtype)) & 1
    row, bit = np.divmod(np.flatnonzero(set_bits.astype(np.bool_)), bits)
    return Columns(table.x[row] + bit.astype(np.int32), table.y[row], table.t[row], table.p[row])


def _evt3(control: Words, state: State) -> tuple[Columns, State]:
    before = (
        TIME_HIGH << 12 | state.time >> 12 & 0xFFF,
        _TIME_LOW << 12 | state.time & 0xFFF,
        ROW << 12 | state.row,
        _BASE << 12 | state.base & 0xFFF,
    )
    words = np.concatenate([np.array(before, np.uint16), control])
    kinds = words >> 12
    is_row, is_time = kinds == ROW, (kinds == TIME_HIGH) | (kinds == _TIME_LOW)
    times, rows = _times(words[is_time], state.time), words[is_row] & 0x7FF
    is_vector = (kinds == _VECTOR_12) | (kinds == _VECTOR_8)
    events = np.flatnonzero((kinds == _COLUMN) | is_vector)
    found = words[events]
    y = rows[np.cumsum(is_row, dtype=np.int32)[events] - 1].astype(np.int32)
    t = times[np.cumsum(is_time, dtype=np.int32)[events] - 1]
    table = Columns((found & 0x7FF).astype(np.int32), y, t, found & 0x800 > 0)
    bases, steps = words[kinds == _BASE], kinds[is_vector]
    row = int(rows[-1]) if len(rows) > 1 else state.row
    after = State(int(times[-1]), row, int(bases[-1]) & 0xFFF)
    if len(steps):
        table, base = _vectors(words, kinds, events, table)
        after = replace(after, base=base)
    return table, after


def _times(words: Words, first: int) -> Times:
    """The time after each time high and time low; the first two words give `first`."""
    is_high = words >> 12 == TIME_HIGH
    values = words & 0xFFF
    highs = _unwrapped(values[is_high], EVT3, first)
    time = highs[np.cumsum(is_high) - 1]
    new = np.concatenate([[True], np.diff(highs) != 0])  # resets the lower bits
    sets = ~is_high
    sets[is_high] = new
    lows = np.where(is_high, 0, values)
    last = np.maximum.accumulate(np.where(sets, np.arange(len(words)), 0))
    found: Times = time + lows[last]
    return found


def _vectors(
    words: Words, kinds: Words, events: npt.NDArray[np.intp], table: Columns
) -> tuple[Columns, int]:
    """The events of vectors and single columns, and the base behind the words."""
    sizes = np.zeros(len(words), np.int32)
    sizes[kinds == _VECTOR_12], sizes[kinds == _VECTOR_8] = 12, 8
    passed = np.cumsum(sizes) - sizes  # columns of the vectors before each word
    is_base = kinds == _BASE
    bases = words[is_base].astype(np.int32)
    columns = (bases & 0x7FF) - passed[is_base]
    which = np.cumsum(is_base, dtype=np.int32)[events] - 1
    single = sizes[events] == 0
    x = np.where(single, table.x, columns[which] + passed[events])
    p = np.where(single, table.p, bases[which] & 0x800 > 0)
    masks = np.where(single, 1, words[events] & np.where(sizes[events] == 8, 0xFF, 0xFFF))
    spread = _spread(Columns(x, table.y, table.t, p), masks.astype(np.uint16), 12)
    column = int(columns[-1] + passed[-1] + sizes[-1])
    return spread, column & 0x7FF | int(bases[-1]) & 0x800

"""Reads Prophesee's recordings: RAW in the encodings EVT2, EVT2.1 and EVT3, and DAT.

Format: docs.prophesee.ai, "RAW File Format", "DAT File Format" and "EVT 2.0/2.1/3.0 Format".  A
header is lines of text that begin with "% ", each a key and a value; a line "% end" may close it.

RAW: words whose top 4 bits are their type.  A word of type 8 (time high) sets the upper bits of the
time; all later events add their lower bits to it.  In EVT3 the row, the column of a vector, the
polarity and the lower bits are words of their own.  A time high that falls by half of its values or
more is an overflow; one that falls by less is an error, so the times of events go back by less than
one step of a time high.  Where the standard leaves the meaning open, this does what the vendor's
decoder (OpenEB) does: a repeated time high keeps the lower bits.  Bytes that are no such file break
these rules, or have words that no sensor writes; each piece that is read is checked for them.
Opening reads a file once, in pieces, for the index of its times and to find each overflow.

DAT: two bytes (type and size of an event), then 8 bytes per event: the time in 32 bits, which
overflow after 71 minutes, then x in 14, y in 14, and p in 4 bits, little-endian.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import MAX_SIDE, Columns, Times, repeats
from engine.media.recording import SLACK_US, Counts, Damaged, Indexed, Recording, Rows, Whole, late
from engine.quoting import count as counted
from engine.quoting import quoted

MAX_HEADER = 1 << 16
PIECE = 1 << 20  # bytes that are decoded at once
SCAN = 1 << 20  # bytes that are searched for times at once
BLOCK = 1 << 12  # words between two entries of the index
NODES = 4096  # counts for event rates
MAX_STRANGE = 0.01  # of the words of a piece that no sensor writes
# Equal words in a row.  The longest run in the real and the demo recordings, written in each
# encoding, is 1; a flash over a row of 2,048 columns is 171 equal vectors of EVT3.
MAX_RUN = 512
DAT_EVENT = np.dtype([("t", "<u4"), ("rest", "<u4")])
DAT_LAYOUTS = (b"\x00\x08", b"\x0c\x08")  # type and size: Event2d and EventCd
_LINE = re.compile(rb"% ?([\t\x20-\x7e\x80-\xff]{0,1000})\r?\n")
_PAIR = re.compile(r"([0-9]{1,9})\s*[xX]\s*([0-9]{1,9})")
Words = npt.NDArray[Any]
TIME_HIGH = 8
ROW, _COLUMN, _BASE, _VECTOR_12, _VECTOR_8, _TIME_LOW = 0, 2, 3, 4, 5, 6  # of EVT3
NO_ROW = 0xFFF  # rows have 11 bits


@dataclass(frozen=True)
class Header:
    """The values by lower-case key, with the options of "format"; and where the header ends."""

    values: Mapping[str, str]
    end: int
    encoding: str  # such as "EVT3" or "EVT2.1"; "" in DAT
    sensor: tuple[int, int] | None

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
    form, *options = values.get("format", "").split(";")
    pairs = (part.split("=", 1) for part in options if "=" in part)
    values |= {key.strip().lower(): value.strip() for key, value in pairs}
    version = values.get("evt", "").removesuffix(".0")
    encoding = form.strip().upper() or (f"EVT{version}" if version else "")
    text = values.get("geometry") or f"{values.get('width', '')}x{values.get('height', '')}"
    if text == "x":
        return Header(values, at, encoding, None)
    sides = _PAIR.fullmatch(text)
    width, height = (int(sides[1]), int(sides[2])) if sides else (0, 0)
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise MediaError(
            f"{name} states the sensor size {quoted(text)}: give a file with a width and a height "
            f"from 1 to {MAX_SIDE:,}."
        )
    return Header(values, at, encoding, (width, height))


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with media_files.opened(media_files.large(path, whole=False)) as file:
        head = file.read(MAX_HEADER)
        header = parse(head, name)
        if header.encoding:
            yield _Raw(file, header, name)
        else:
            yield _Dat(file, header, head, name).ordered()


# RAW
@dataclass(frozen=True)
class State:
    """What the words before a place have set; `time` includes overflows.  `base` is the column and,
    in bit 11, the polarity of a vector."""

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
        return self.bits * self.stride // 8

    @property
    def span(self) -> int:
        return 1 << (self.bits - 4)

    def control(self, data: bytes | bytearray) -> Words:
        return np.frombuffer(data, f"<u{self.bits // 8}")[self.offset :: self.stride]

    def masks(self, data: bytes) -> Words:
        """Of EVT2.1: which of 32 columns have an event."""
        return np.frombuffer(data, "<u4")[1 - self.offset :: 2]

    def times(self, highs: Words, first: int) -> Times:
        """The times of time highs, the first of which is `first`; Damaged if they go back."""
        values = highs.astype(np.int64) & (self.span - 1)
        steps = np.diff(values)
        back = steps[(steps < 0) & (steps > -self.span // 2)]
        if len(back):
            raise Damaged(f"its time goes back by {-int(back[0]) << self.low:,} us")
        laps = np.cumsum(np.append(first >> self.low + self.bits - 4, steps < 0))
        times: Times = (laps * self.span + values) << self.low
        return times


# Types 2, 3 and 13 are not in the vendor's tables either, but its older cameras write them.
_RESERVED = (4, 5, 6, 7, 9, 11, 12)
EVT2 = Encoding("EVT2", 32, 6, _RESERVED)
EVT21 = Encoding("EVT2.1", 32, 6, _RESERVED, stride=2, offset=1)
EVT21_LEGACY = replace(EVT21, offset=0)  # IMX636 sends the upper half first
EVT3 = Encoding("EVT3", 16, 12, (1, 9, 11, 12))
ENCODINGS: Mapping[str, Encoding] = {"EVT2": EVT2, "EVT2.1": EVT21, "EVT21": EVT21, "EVT3": EVT3}


class _Raw(Indexed):
    def __init__(self, file: BinaryIO, header: Header, name: str) -> None:
        coding = ENCODINGS.get(header.encoding)
        order = header.values.get("endianness", "little")
        if coding is EVT21 and order == "legacy":
            coding = EVT21_LEGACY
        elif coding is None or order != "little":
            raise MediaError(
                f"{name} has the encoding {quoted(header.encoding)} and the byte order "
                f"{quoted(order)}: give EVT2, EVT2.1 or EVT3 in little-endian, or convert it with "
                "Metavision Studio."
            )
        self._file, self.name, self._start, self._coding = file, name, header.end, coding
        self._words, rest = divmod(file.seek(0, 2) - header.end, coding.word)
        self.sensor, self._of_header = header.sensor, header.notes(name, rest)
        # Words before the first time high have no time; the vendor's decoder skips them too.
        control = coding.control(b"".join(self._pieces(0, min(self._words, BLOCK), SCAN)))
        places = np.flatnonzero(control >> (coding.bits - 4) == TIME_HIGH)
        self._checked(control[: int(places[0]) if len(places) else None])
        if not len(places):
            raise MediaError(
                f"{name} has no times in its first {counted(len(control), 'word')} of "
                f"{coding.name}: record it again."
            )
        high = control[places[:1]]
        self._start += int(places[0]) * coding.word
        self._words -= int(places[0])
        # Per block of words the first and the last time that its events can have.
        ends = [np.array([(int(high[0]) & (coding.span - 1)) << coding.low], np.int64)]
        for data in self._pieces(0, self._words, SCAN):
            control = coding.control(data)
            places = np.flatnonzero(control >> (coding.bits - 4) == TIME_HIGH)
            highs = np.append(high, control[places])
            stops = np.arange(BLOCK, len(control) + BLOCK, BLOCK)
            ends.append(coding.times(highs, int(ends[-1][-1]))[np.searchsorted(places, stops)])
            high = highs[-1:]
        times = np.concatenate(ends)
        self.low, self.high = times[:-1], times[1:] + (1 << coding.low) - 1
        self.set_ends()

    def blocks(self, first: int, stop: int) -> Iterator[Columns]:
        state, odd = self._state(first), 0
        for data in self._pieces(first * BLOCK, min(stop * BLOCK, self._words), PIECE):
            odd += self._checked(self._coding.control(data))
            columns, state = decode(self._coding, data, state)
            yield columns
        note = (
            f"{counted(odd, 'word')} of {self.name} are repeats in a row or not defined in "
            f"{self._coding.name}; the file may be damaged."
        )
        self.notes = (*self._of_header, note) if odd else self._of_header

    def counted(self) -> tuple[Times, Counts]:
        """At up to 4,096 places of the file."""
        step = -(-len(self.low) // NODES)
        places = [*range(0, self._words, step * BLOCK), self._words]
        pieces = (self._pieces(*pair, SCAN) for pair in pairwise(places))
        sums = [sum(count(self._coding, data) for data in some) for some in pieces]
        times = np.append(self.low[::step], self.last + 1)
        times[0] = self.first
        return np.maximum.accumulate(times), np.cumsum([0, *sums])

    def _checked(self, control: Words) -> int:
        """The number of words that no sensor writes; Damaged if they are many."""
        found = strange(self._coding, control)
        if found > MAX_STRANGE * len(control):
            what = f"{found:,} of {len(control):,} words are repeats in a row or not defined"
            raise Damaged(f"{what} in {self._coding.name}")
        return found

    def _pieces(self, place: int, stop: int, size: int) -> Iterator[bytes]:
        """The words from a place to before another, as bytes."""
        end = self._start + stop * self._coding.word
        for at in range(self._start + place * self._coding.word, end, size):
            yield media_files.part(self._file, at, min(size, end - at), self.name)

    def _state(self, block: int) -> State:
        """The state before a block: in EVT3 a row holds until the next one, however far it is.  The
        column of a vector comes right before it, so it is looked for in one block only."""
        time = int(self.low[block])
        if self._coding is not EVT3 or not block:
            return State(time)
        at = block - 1
        near = b"".join(self._pieces(at * BLOCK, block * BLOCK, SCAN))
        _, state = decode(EVT3, near, State(int(self.low[at]), NO_ROW))
        row = state.row
        while row == NO_ROW and at:
            at -= 1
            control = EVT3.control(b"".join(self._pieces(at * BLOCK, at * BLOCK + BLOCK, SCAN)))
            rows = control[control >> 12 == ROW]
            row = int(rows[-1]) & 0x7FF if len(rows) else NO_ROW
        return State(time, 0 if row == NO_ROW else row, state.base)


def count(coding: Encoding, data: bytes) -> int:
    control = coding.control(data)
    kinds = control >> (coding.bits - 4)
    if coding is EVT2:
        return int(np.count_nonzero(kinds < 2))
    if coding is EVT3:
        masks = (control & 0xFFF)[kinds == _VECTOR_12], (control & 0xFF)[kinds == _VECTOR_8]
        vectors = sum(int(np.bitwise_count(mask).sum()) for mask in masks)
        return int(np.count_nonzero(kinds == _COLUMN)) + vectors
    return int(np.bitwise_count(coding.masks(data)[kinds < 2]).sum())


def strange(coding: Encoding, control: Words) -> int:
    """How many words no sensor writes: of a reserved type, too many equal ones in a row, and in
    EVT2.1 events whose first column is not a multiple of 32.  A single zero word is an event of
    EVT2 and a row of EVT3, but no sensor sends it twice in a row."""
    reserved = control.dtype.type(sum(1 << kind for kind in coding.reserved))
    kinds = control >> control.dtype.type(coding.bits - 4)
    wrong = np.right_shift(reserved, kinds) & 1 > 0
    wrong[1:] |= (control[1:] | control[:-1]) == 0
    wrong[repeats(control, MAX_RUN)] = True
    found = np.count_nonzero(wrong)
    if coding.stride > 1:
        found += np.count_nonzero(control[kinds < 2] >> 11 & 31)
    return int(found)


def decode(coding: Encoding, data: bytes, state: State) -> tuple[Columns, State]:
    """The events of whole words, and the state behind them; Damaged if their time goes back.
    The state is put before the words as words, so every event has a time and a row before it."""
    control = coding.control(data)
    if coding is EVT3:
        return _evt3(control, state)
    high = TIME_HIGH << 28 | (state.time >> coding.low) & (coding.span - 1)
    words = np.concatenate([np.array([high], np.uint32), control])
    kinds = words >> 28
    is_high = kinds == TIME_HIGH
    times = coding.times(words[is_high], state.time)
    events = np.flatnonzero(kinds < 2)
    found = words[events]
    t = times[np.cumsum(is_high, dtype=np.int32)[events] - 1] + ((found >> 22) & 63)
    x, y = ((found >> 11) & 2047).astype(np.int32), (found & 2047).astype(np.int32)
    table = Columns(x, y, t, found >> 28 > 0)
    if coding is not EVT2:
        table = _spread(table, coding.masks(data)[events - 1], 32)
    return table, State(int(times[-1]))


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
    row = int(rows[-1]) if len(rows) > 1 else state.row
    base = int(words[kinds == _BASE][-1]) & 0xFFF
    if is_vector.any():
        table, base = _vectors(words, kinds, events, table)
    return table, State(int(times[-1]), row, base)


def _times(words: Words, first: int) -> Times:
    """The time after each time high and time low; the first two words give `first`."""
    is_high = words >> 12 == TIME_HIGH
    values = words & 0xFFF
    highs = EVT3.times(values[is_high], first)
    new = np.concatenate([[True], np.diff(highs) != 0])  # resets the lower bits
    sets = ~is_high
    sets[is_high] = new
    lows = np.where(is_high, 0, values)
    last = np.maximum.accumulate(np.where(sets, np.arange(len(words)), 0))
    times: Times = highs[np.cumsum(is_high) - 1] + lows[last]
    return times


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


# DAT
class _Dat(Rows):
    def __init__(self, file: BinaryIO, header: Header, head: bytes, name: str) -> None:
        version, layout = header.values.get("version", "2"), head[header.end : header.end + 2]
        if version != "2" or (len(layout) == 2 and layout not in DAT_LAYOUTS):
            raise MediaError(
                f"{name} is DAT of version {version[:20]} with events of type and size "
                f"{[*layout]}: give version 2 with CD events (type 12, 8 bytes)."
            )
        start = header.end + 2
        count, rest = divmod(max(0, file.seek(0, 2) - start), DAT_EVENT.itemsize)
        self.sensor, self.notes = header.sensor, header.notes(name, rest)
        super().__init__(file, start, count, DAT_EVENT, name)

    def columns(self, first: int, last: int) -> Columns:
        table = self.rows(first, last)
        data = table["rest"]
        x, y = (data & 0x3FFF).astype(np.int32), (data >> 14 & 0x3FFF).astype(np.int32)
        return Columns(x, y, np.ascontiguousarray(table["t"]), data >> 28 > 0)

    def as_whole(self) -> Whole:
        """Of a recording whose counter overflows; other large steps back are damage."""
        found = super().as_whole()
        if (back := late(found.all.t)) > SLACK_US:
            raise Damaged(f"its time goes back by {back:,} us")
        return found

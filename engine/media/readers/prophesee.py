"""Reads Prophesee's RAW recordings in the encodings EVT2, EVT2.1 and EVT3.

Format: a header, then words (prophesee_format.py).  Opening reads the file
once, in pieces, and looks only at the lowest and the highest time of each block of words: that
finds each overflow of the time counter and gives the index of the windows.  The times of a block
may not be before those of the block in front of it; inside a block they are checked when it is
read.  Bytes that are no such file break this rule, have no times, or have words that no sensor
writes: of these a recording may have a few, and each piece that is read is checked for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import Columns, Times
from engine.media.readers import prophesee_format as form
from engine.media.readers.prophesee_format import EVT3, TIME_HIGH, State, Words
from engine.media.recording import Counts, Indexed, Recording
from engine.quoting import count as counted
from engine.quoting import quoted

PIECE = 1 << 20  # bytes that are decoded at once
SCAN = 1 << 20  # bytes that are searched for times at once
BLOCK = 1 << 12  # words between two entries of the index
NODES = 4096  # counts for event rates
MAX_STRANGE = 0.01  # of the words of a piece that no sensor writes


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with media_files.opened(media_files.large(path, None)) as file:
        yield _Raw(file, name)


class _Raw(Indexed):
    def __init__(self, file: BinaryIO, name: str) -> None:
        header = form.parse(file.read(form.MAX_HEADER), name)
        found = form.ENCODINGS.get(header.encoding)
        if found is None:
            raise MediaError(
                f"{name} has the encoding {quoted(header.encoding)}: give EVT2, EVT2.1 or EVT3, or "
                "convert it with Metavision Studio."
            )
        order = header.options.get("endianness", header.values.get("endianness", "little"))
        if found is form.EVT21 and order == "legacy":
            found = form.EVT21_LEGACY
        elif order != "little":
            raise MediaError(
                f"{name} has words of the byte order {quoted(order)}: record it as little-endian."
            )
        self._file, self.name, self._start, self._encoding = file, name, header.end, found
        self._words, rest = divmod(file.seek(0, 2) - header.end, found.word)
        self.sensor, self._of_header = header.sensor, header.notes(name, rest)
        self.notes = self._of_header
        self._skip_to_time()
        try:
            self._before, self._latest = self._index()
        except ValueError as error:
            raise self._damaged(error) from error
        self.first, self.last = self._ends()

    def parts(self, begin: int, end: int) -> Iterator[Columns]:
        # In front of this block, and in it up to its first time high, all times are before `begin`.
        unit = self._encoding.unit
        first = int(np.searchsorted(self._latest, begin // unit * unit))
        stop = int(np.searchsorted(self._before, end))
        state = self._state(first) if first < stop else State(0)
        self.notes, odd = self._of_header, 0
        for data in self._pieces(first * BLOCK, min(stop * BLOCK, self._words), PIECE):
            odd += self._checked(self._encoding.control(data))
            try:
                columns, state = form.decode(self._encoding, data, state)
            except ValueError as error:
                raise self._damaged(error) from error
            yield columns.between(begin, end)
        if odd:
            note = (
                f"{counted(odd, 'word')} of {self.name} are zeros in a row or not defined in "
                f"{self._encoding.name}; the file may be damaged."
            )
            self.notes = (*self._of_header, note)

    def counted(self) -> tuple[Times, Counts]:
        """At up to 4,096 places of the file."""
        step = -(-len(self._before) // NODES)
        places = [*range(0, self._words, step * BLOCK), self._words]
        counts = [0]
        for place, stop in pairwise(places):
            pieces = self._pieces(place, stop, SCAN)
            counts.append(counts[-1] + sum(form.count(self._encoding, data) for data in pieces))
        times = np.append(self._before[::step], self.last + 1)
        times[0] = self.first
        return np.maximum.accumulate(times), np.array(counts)

    def _damaged(self, error: ValueError) -> MediaError:
        return MediaError(
            f"{self.name} is damaged or no {self._encoding.name} ({error}): copy it again or "
            "record it again."
        )

    def _checked(self, control: Words) -> int:
        """The number of words that no sensor writes; MediaError if they are many."""
        found = form.strange(self._encoding, control)
        if found > MAX_STRANGE * len(control):
            error = f"{found:,} of {len(control):,} words are zeros in a row or not defined"
            raise self._damaged(ValueError(error))
        return found

    def _pieces(self, place: int, stop: int, size: int) -> Iterator[bytes]:
        """The words from a place to before another, as bytes."""
        word = self._encoding.word
        end = self._start + stop * word
        for at in range(self._start + place * word, end, size):
            yield media_files.part(self._file, at, min(size, end - at), self.name)

    def _skip_to_time(self) -> None:
        """Words before the first time high have no time; the vendor's decoder skips them too."""
        skipped = 0
        for data in self._pieces(0, self._words, PIECE):
            control = self._encoding.control(data)
            found = np.flatnonzero(control >> (self._encoding.bits - 4) == TIME_HIGH)
            self._checked(control[: int(found[0]) if len(found) else None])
            if len(found):
                skipped += int(found[0])
                self._start += skipped * self._encoding.word
                self._words -= skipped
                return
            skipped += len(control)
        raise MediaError(
            f"{self.name} has no times in its {self._words:,} words of {self._encoding.name}: "
            "record it again."
        )

    def _index(self) -> tuple[Times, Times]:
        """Per block of words the time high before it, and the last one up to its end."""
        coding, rows = self._encoding, list[Times]()
        size = BLOCK * coding.word
        buffer = bytearray(SCAN // size * size)  # one for all: new memory takes twice the time
        self._file.seek(self._start)
        for at in range(0, self._words * coding.word, len(buffer)):
            size_here = min(len(buffer), self._words * coding.word - at)
            view = memoryview(buffer)[:size_here]
            if self._file.readinto(view) < size_here:  # type: ignore[attr-defined]
                raise MediaError(f"{self.name} became shorter while it was read: try again.")
            buffer[size_here:] = bytes(len(buffer) - size_here)  # no time highs
            rows.append(_spans(coding, coding.control(buffer)[: -(-size_here // size) * BLOCK]))
        first, last, inner = np.concatenate(rows).T
        timed = first >= 0
        first, last, inner = first[timed], last[timed], inner[timed]
        falls = coding.falls(first[1:] - last[:-1])
        laps = np.cumsum(np.append(0, falls + inner[:-1])) + inner
        latest = ((last << coding.low) + laps * coding.lap)[np.cumsum(timed) - 1]
        return np.append(first[0] << coding.low, latest[:-1]), latest

    def _ends(self) -> tuple[int, int]:
        unit, edge = self._encoding.unit, 1 << 62
        start = next((t for t in self.parts(0, edge) if len(t.t)), None)
        if start is None:
            raise MediaError(f"{self.name} holds 0 events: pick another recording.")
        low = int(start.t.min()) // unit * unit
        first = min(int(t.t.min()) for t in self.parts(low, low + unit) if len(t.t))
        for time in np.unique(self._before)[::-1].tolist():
            ends = [int(t.t.max()) for t in self.parts(time, edge) if len(t.t)]
            if ends:
                return first, max(ends)
            edge = time
        return first, first

    def _state(self, block: int) -> State:
        """The state before a block: in EVT3 a row holds until the next one, however far it is.  The
        column of a vector comes right before it, so it is looked for in one block only."""
        time = int(self._before[block])
        if self._encoding is not EVT3 or not block:
            return State(time)
        place = block * BLOCK
        near = b"".join(self._pieces(place - BLOCK, place, PIECE))
        _, state = form.decode(EVT3, near, State(int(self._before[block - 1]), form.NO_ROW))
        row, end = state.row, place - BLOCK
        while row == form.NO_ROW and end > 0:
            begin = max(0, end - SCAN)
            control = EVT3.control(b"".join(self._pieces(begin, end, SCAN)))
            rows = control[control >> 12 == form.ROW]
            row, end = int(rows[-1]) & 0x7FF if len(rows) else form.NO_ROW, begin
        return State(time, 0 if row == form.NO_ROW else row, state.base)


def _spans(coding: form.Encoding, control: Words) -> Times:
    """Of each block of words: the first and the last time high, and the overflows between them.

    A block without a time high has -1.  Only where the lowest and the highest are far apart is each
    one looked at: there is an overflow between them, or the file is damaged.
    """
    blocks = control.reshape(-1, BLOCK)
    kind, top = blocks.dtype.type, TIME_HIGH << (coding.bits - 4)
    first = (blocks - kind(top)).min(axis=1).astype(np.int64)
    last = (blocks - kind(top + coding.span)).max(axis=1).astype(np.int64) & (coding.span - 1)
    first[first >= coding.span] = -1
    inner = np.zeros_like(first)
    for row in np.flatnonzero((first >= 0) & (last - first >= coding.span // 2)).tolist():
        values = coding.values(blocks[row])
        first[row], last[row], inner[row] = values[0], values[-1], coding.laps(values)[-1]
    return np.stack([first, last, inner], axis=1)

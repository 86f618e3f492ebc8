"""Reads Prophesee's RAW recordings in the encodings EVT2, EVT2.1 and EVT3.

Format: a header (prophesee_header.py), then words (prophesee_words.py).  Opening reads the file
once, in pieces, and looks only at the time highs: that finds each overflow of the time counter and
gives the index of the windows.  Time highs may not go back, except by half a lap or more, which is
an overflow; so the times of events go back by less than one step of a time high (64 us in EVT2 and
EVT2.1, 4,096 us in EVT3).  Bytes that are no such file break that rule, or have no time highs.

Boundary: does not check coordinates (events.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media import media_files
from engine.media.readers import Counts, Recording, prophesee_header
from engine.media.readers.indexed import Indexed, Table, Times
from engine.media.readers.prophesee_words import (
    ENCODINGS,
    EVT3,
    EVT21,
    EVT21_LEGACY,
    NO_ROW,
    ROW,
    Encoding,
    State,
    Words,
    count,
    decode,
)
from engine.quoting import quoted

PIECE = 1 << 20  # bytes that are decoded at once
SCAN = 1 << 22  # bytes that are searched for time highs at once
BLOCK = 1 << 12  # words between two entries of the index
NODES = 4096  # counts for event rates


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a .raw file."""
    with media_files.opened(media_files.large(path, None)) as file:
        yield Indexed(_Raw(file, name), name)


def _encoding(header: prophesee_header.Header, name: str) -> Encoding:
    found = ENCODINGS.get(header.encoding)
    if found is None:
        raise MediaError(
            f"{name} has the encoding {quoted(header.encoding)}: give EVT2, EVT2.1 or EVT3, or "
            "convert it with Metavision Studio."
        )
    order = header.options.get("endianness", header.values.get("endianness", "little"))
    if found is EVT21 and order == "legacy":
        return EVT21_LEGACY
    if order != "little":
        raise MediaError(
            f"{name} has words of the byte order {quoted(order)}: record it as little-endian."
        )
    return found


class _Raw:
    """The Source of a RAW file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        header = prophesee_header.parse(file.read(prophesee_header.MAX_HEADER), name)
        self._file, self._name, self._start = file, name, header.end
        self._encoding = _encoding(header, name)
        self.sensor = prophesee_header.sensor(header, name)
        self._words, rest = divmod(file.seek(0, 2) - header.end, self._encoding.word)
        self.notes = prophesee_header.notes(name, self.sensor, rest)
        self._places, self._times = self._index()
        self.first, self.last = self._ends()

    def tables(self, begin: int, end: int) -> Iterator[Table]:
        unit = self._encoding.unit
        # Times below `begin` and of its own step can follow the first time high of that step.
        first = max(0, int(np.searchsorted(self._times, begin // unit * unit)) - 1)
        after = int(np.searchsorted(self._times, end))
        place = int(self._places[first])
        stop = int(self._places[after]) if after < len(self._places) else self._words
        state = self._state(place, int(self._times[first]))
        for data in self._pieces(place, stop, PIECE):
            table, state = decode(self._encoding, data, state)
            yield table.between(begin, end)

    def counted(self) -> tuple[Times, Counts]:
        """At up to 4,096 places of the file."""
        step = -(-len(self._places) // NODES)
        places = [*self._places[::step].tolist(), self._words]
        counts = [0]
        for place, stop in pairwise(places):
            pieces = self._pieces(place, stop, SCAN)
            counts.append(counts[-1] + sum(count(self._encoding, data) for data in pieces))
        times = [*self._times[::step].tolist(), self.last + 1]
        times[0] = self.first
        return np.maximum.accumulate(np.array(times)), np.array(counts)

    def _pieces(self, place: int, stop: int, size: int) -> Iterator[bytes]:
        """The words from a place to before another, as bytes."""
        word = self._encoding.word
        at, end = self._start + place * word, self._start + stop * word
        while at < end:
            self._file.seek(at)
            data = self._file.read(min(size, end - at))
            if not data:
                raise MediaError(f"{self._name} became shorter while it was read: try again.")
            at += len(data)
            yield data

    def _index(self) -> tuple[Times, Times]:
        """Places and times of the first time high of each block of words."""
        places, times, laps, before, at = list[Times](), list[Times](), 0, None, 0
        coding = self._encoding
        for data in self._pieces(0, self._words, SCAN):
            control = coding.control(data)
            highs = coding.highs(control)
            values = control[highs] & control.dtype.type((1 << (coding.bits - 4)) - 1)
            if len(values):
                chain = np.concatenate([values[:1] if before is None else before, values])
                wraps = self._wraps(chain)
                blocks = np.arange(0, len(control), BLOCK)
                which = np.unique(np.searchsorted(highs, blocks))
                which = which[which < len(highs)]
                lap = laps + np.searchsorted(wraps, which, side="right")
                places.append(at + highs[which])
                times.append((values[which].astype(np.int64) << coding.low) + lap * coding.lap)
                laps, before = laps + len(wraps), values[-1:]
            at += len(control)
        if not places:
            raise MediaError(
                f"{self._name} has no times in its {at:,} words of {coding.name}: record it again."
            )
        return np.concatenate(places), np.concatenate(times)

    def _wraps(self, chain: Words) -> Times:
        """Where values of time highs overflow; MediaError if one goes back."""
        steps = chain[1:] - chain[:-1]  # unsigned: a step back becomes a very large one
        falls = np.flatnonzero(steps >> (self._encoding.bits - 4))
        drops = chain[falls].astype(np.int64) - chain[falls + 1]
        small = drops[drops < 1 << (self._encoding.bits - 5)]
        if len(small):
            raise MediaError(
                f"{self._name} is damaged or no {self._encoding.name}: its time goes back by "
                f"{int(small[0]) << self._encoding.low:,} us, so record it again."
            )
        return falls

    def _ends(self) -> tuple[int, int]:
        """The first and the last time of an event."""
        unit, edge = self._encoding.unit, 1 << 62
        start = next((t for t in self.tables(0, edge) if len(t.t)), None)
        if start is None:
            raise MediaError(f"{self._name} holds 0 events: pick another recording.")
        low = int(start.t.min()) // unit * unit
        first = min(int(t.t.min()) for t in self.tables(low, low + unit) if len(t.t))
        for time in self._times[::-1].tolist():
            ends = [int(t.t.max()) for t in self.tables(time, edge) if len(t.t)]
            if ends:
                return first, max(ends)
            edge = time
        return first, first

    def _state(self, place: int, time: int) -> State:
        """The state before a place: in EVT3 a row holds until the next one, however far it is.

        The column of a vector comes right before it, so it is looked for in one block only.
        """
        begin = int(self._places[0])
        if self._encoding is not EVT3 or place == begin:
            return State(time)
        near = max(begin, place - BLOCK)
        _, state = decode(EVT3, b"".join(self._pieces(near, place, PIECE)), State(0, row=NO_ROW))
        while state.row == NO_ROW and near > begin:
            far = max(begin, near - PIECE)
            control = EVT3.control(b"".join(self._pieces(far, near, SCAN)))
            rows = control[control >> 12 == ROW]
            state = replace(state, row=int(rows[-1]) & 0x7FF if len(rows) else NO_ROW)
            near = far
        return State(time, state.row if state.row != NO_ROW else 0, state.base)

"""Reads iniVation's AEDAT4 recordings.

The table of packets at the end of the file (aedat4_format.py) is the index of the windows.  A
recording that was interrupted has none; then each packet is read once to make it.  The packets
must fill the file.  Times inside a packet may be in any order, but no packet may begin before the
one in front of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files
from engine.media.readers import Counts, Recording, aedat4_format
from engine.media.readers.aedat4_format import MAX_PACKET, PACKET, Packets
from engine.media.readers.indexed import Indexed, Table, Times
from engine.quoting import counted


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in an .aedat4 file."""
    with media_files.opened(media_files.large(path, None)) as file:
        try:
            source = _Aedat4(file, name)
        except ValueError as error:
            raise MediaError(_damaged(name, error)) from error
        yield Indexed(source, name)


def _damaged(name: str, error: ValueError) -> str:
    return f"{name} is damaged or no AEDAT4 recording ({error}): copy it again or record it again."


class _Aedat4:
    """The Source of an AEDAT4 file.  Making it raises ValueError for a damaged file."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._size = file, name, file.seek(0, 2)
        self._header = aedat4_format.header(file)
        streams = sorted(self._header.sensors)
        if not streams:
            raise MediaError(f"{name} has no stream of events: record one with the camera's.")
        self._stream = streams[0]
        self.sensor = self._header.sensors[self._stream]
        self.notes: tuple[str, ...] = ()
        if len(streams) > 1:
            self.notes = (f"{name} has {len(streams)} streams of events; the first one is read.",)
        listed = self._listed()
        self._packets = self._of_events(listed) if listed else self._walked()
        if not len(self._packets.counts):
            raise MediaError(f"{name} holds 0 events: pick another recording.")
        falls = np.diff(self._packets.starts)
        if len(falls) and falls.min() < 0:
            raise ValueError(f"its time goes back by {-int(falls.min()):,} us")
        ends = [self._packet(place) for place in (0, int(self._packets.ends.argmax()))]
        self.first, self.last = int(ends[0].t.min()), int(ends[1].t.max())

    def tables(self, begin: int, end: int) -> Iterator[Table]:
        packets = self._packets
        for place in np.flatnonzero((packets.ends >= begin) & (packets.starts < end)).tolist():
            try:
                yield self._packet(place).between(begin, end)
            except ValueError as error:
                raise MediaError(_damaged(self._name, error)) from error

    def counted(self) -> tuple[Times, Counts]:
        """At the beginning of each packet."""
        counts = np.append(0, np.cumsum(self._packets.counts))
        return np.append(self._packets.starts, self.last + 1), counts

    def _packet(self, place: int) -> Table:
        """The events of a packet; ValueError if they are not what the table says."""
        _, at, size, count, start, end = (int(column[place]) for column in self._packets)
        events = self._events(at, size)
        times = events["t"].astype(np.int64)
        if len(times) != count or int(times.min()) < start or int(times.max()) > end:
            raise ValueError(f"packet {place:,} of events is not as the table of packets says")
        x, y = events["x"].astype(np.int32), events["y"].astype(np.int32)
        return Table(x, y, times, events["p"] > 0)

    def _events(self, at: int, size: int) -> npt.NDArray[Any]:
        return aedat4_format.events(self._content(at, size))

    def _content(self, at: int, size: int) -> bytes:
        """The decompressed bytes at a place."""
        if not 0 <= size <= MAX_PACKET:
            raise ValueError(f"a packet has {counted(size, 'byte')}")
        self._file.seek(at)
        data = self._file.read(size)
        if len(data) < size:
            raise ValueError(f"it ends in the middle of a packet of {counted(size, 'byte')}")
        return aedat4_format.decompressed(data, self._header.compression)

    def _listed(self) -> Packets | None:
        """The packets by the table; None if the file has none, or is cut off before it."""
        at, begin = self._header.table, self._header.end
        if not begin <= at < self._size:
            return None
        found = aedat4_format.table(self._content(at, self._size - at))
        found = found.take(np.argsort(found.places))
        expected = np.append(begin, found.places + found.sizes) + PACKET
        if not np.array_equal(np.append(found.places, at + PACKET), expected):
            raise ValueError("its packets do not fill the file up to their table")
        return found

    def _of_events(self, packets: Packets) -> Packets:
        return packets.take((packets.streams == self._stream) & (packets.counts > 0))

    def _walked(self) -> Packets:
        """The packets one after another; a note says that the file is incomplete."""
        rows, at = list[tuple[int, ...]](), self._header.end
        while at + PACKET <= self._size:
            self._file.seek(at)
            head = self._file.read(PACKET)
            stream, size = (int.from_bytes(head[i : i + 4], "little") for i in (0, 4))
            if at + PACKET + size > self._size:
                break
            at += PACKET
            if stream == self._stream:
                times = self._events(at, size)["t"]
                span = (int(times.min()), int(times.max())) if len(times) else (0, 0)
                rows.append((stream, at, size, len(times), *span))
            at += size
        note = f"{self._name} has no table of packets; the recording was interrupted or cut short."
        if at < self._size:
            note += f" Its last {counted(self._size - at, 'byte')} are no whole packet: left out."
        self.notes = (*self.notes, note)
        columns = np.array(rows, np.int64).reshape(-1, len(Packets._fields)).T
        return self._of_events(Packets(*columns))

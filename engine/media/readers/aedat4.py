"""Reads iniVation's AEDAT4 recordings.

Format: a line with the version, a header (a FlatBuffer with its size in front: compression, place
of the table of packets, and XML that names the streams), then packets, each with the number of its
stream, its size, and a compressed FlatBuffer.  The events of a packet have 16 bytes each.  The
table at the end has the place, the number of events and the times of each packet: it is the index
of the windows.  A recording that was interrupted has none; then each packet is read once.

A table of a FlatBuffer (flatbuffers.dev, "FlatBuffer Internals") begins with the distance to its
list of field offsets; a field that is not in the list has its default value.

The packets must fill the file.  Times inside a packet may be in any order, but no packet may begin
before the one in front of it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files
from engine.media.event_columns import MAX_SIDE, Columns, Times
from engine.media.recording import Counts, Damaged, Indexed, Recording
from engine.quoting import count as counted

PACKET = 8  # bytes in front of a packet: stream and size
MAX_PACKET = 1 << 28  # bytes before and after decompression: 16 million events
_MAX_HEADER = 1 << 20
_PIECE = 1 << 20
_MAGIC = b"#!AER-DAT4.0\r\n"
_COMPRESSIONS = ("", "lz4", "lz4", "zstd", "zstd")
_EVENT = np.dtype([("t", "<i8"), ("x", "<i2"), ("y", "<i2"), ("p", "u1"), ("gap", "V3")])
# A packet: its stream, the place behind the bytes in front, and the times of its events.
_PACKET = np.dtype([(key, "<i8") for key in ("stream", "at", "size", "count", "start", "end")])
_STREAM = re.compile(r'<node name="([0-9]{1,9})"')
_VALUE = re.compile(r'<attr key="([^"]{0,99})"[^>]{0,99}>([^<]{0,99})<')
_SIDE = re.compile("[0-9]{1,9}")
Places = npt.NDArray[np.int64]


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    with media_files.opened(media_files.large(path, whole=False)) as file:
        yield _Aedat4(file, name)


class _Aedat4(Indexed):
    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name, self._size = file, name, file.seek(0, 2)
        sensors = self._read_header()
        if not sensors:
            raise MediaError(f"{name} has no stream of events: record one with the camera's.")
        self._stream = min(sensors)
        self.sensor = sensors[self._stream]
        if len(sensors) > 1:
            self.notes = (f"{name} has {len(sensors)} streams of events; the first one is read.",)
        packets = self._listed()
        packets = self._walked() if packets is None else packets
        packets = packets[(packets["stream"] == self._stream) & (packets["count"] > 0)]
        self._packets, self.low, self.high = packets, packets["start"], packets["end"]
        falls = np.diff(self.low)
        if len(falls) and falls.min() < 0:
            raise Damaged(f"its time goes back by {-int(falls.min()):,} us")
        self.set_ends()

    def blocks(self, first: int, stop: int) -> Iterator[Columns]:
        for place in range(first, stop):
            _, at, size, count, start, end = self._packets[place].tolist()
            events = self._events(at, size)
            times = events["t"].astype(np.int64)
            if len(times) != count or int(times.min()) < start or int(times.max()) > end:
                raise Damaged(f"packet {place:,} is not as the table of packets says")
            x, y = events["x"].astype(np.int32), events["y"].astype(np.int32)
            yield Columns(x, y, times, events["p"] > 0)

    def counted(self) -> tuple[Times, Counts]:
        """At the beginning of each packet."""
        return np.append(self.low, self.last + 1), np.append(0, np.cumsum(self._packets["count"]))

    def _read_header(self) -> dict[int, tuple[int, int] | None]:
        """The streams of events by number, with the sensor's size where it is stated."""
        self._file.seek(0)
        if self._file.read(len(_MAGIC)) != _MAGIC:
            raise Damaged("it does not begin with the line #!AER-DAT4.0")
        size = int.from_bytes(self._file.read(4), "little")
        data = self._file.read(min(size, _MAX_HEADER))
        if not 8 <= size == len(data):
            raise Damaged(f"its header has {len(data):,} of {counted(size, 'byte')}")
        table = root(data)
        (compression,) = column(data, table, 0, "<i4").tolist()
        if not 0 <= compression < len(_COMPRESSIONS):
            raise Damaged(f"its compression is {compression}")
        self._compression = _COMPRESSIONS[compression]
        # The place of the table of packets; below 0 if there is none.
        (self._table,) = column(data, table, 1, "<i8", default=-1).tolist()
        self._begin = len(_MAGIC) + 4 + size  # of the packets
        # The recorder writes one form of XML only, so no parser is used.
        at, length = vector(data, table, 2)
        text = data[at : at + length].decode("utf-8", "replace")
        _, *parts = _STREAM.split(text)  # numbers of streams, and what follows each
        sensors: dict[int, tuple[int, int] | None] = {}
        for stream, part in zip(parts[::2], parts[1::2], strict=True):
            values = {key: value.strip() for key, value in reversed(_VALUE.findall(part))}
            width, height = values.get("sizeX", ""), values.get("sizeY", "")
            sides = [int(side) if _SIDE.fullmatch(side) else 0 for side in (width, height)]
            if values.get("typeIdentifier") != "EVTS":
                continue
            if (width or height) and not all(1 <= side <= MAX_SIDE for side in sides):
                raise Damaged(f"it states the sensor size {width} x {height}")
            sensors[int(stream)] = (sides[0], sides[1]) if width or height else None
        return sensors

    def _events(self, at: int, size: int) -> npt.NDArray[Any]:
        """The events of the packet at a place, with the fields t, x, y and p."""
        data = self._content(at, size)
        if data[8:12] != b"EVTS":
            raise Damaged("a packet of events has no events")
        place, count = vector(data, root(data, 4), 0)
        if place + count * _EVENT.itemsize > len(data):
            raise Damaged(f"a packet of {len(data):,} bytes claims {counted(count, 'event')}")
        return np.frombuffer(data, _EVENT, count, place) if count else np.empty(0, _EVENT)

    def _content(self, at: int, size: int) -> bytes:
        """The decompressed bytes of a packet; Damaged if they are damaged or too many."""
        if not 0 <= size <= MAX_PACKET:
            raise Damaged(f"a packet has {counted(size, 'byte')}")
        self._file.seek(at)
        data = self._file.read(size)
        if len(data) < size:
            raise Damaged(f"it ends in the middle of a packet of {counted(size, 'byte')}")
        if not self._compression:
            return data
        import pyarrow as pa  # takes a tenth of a second

        parts, total = list[bytes](), 0
        try:
            with pa.CompressedInputStream(pa.BufferReader(data), self._compression) as stream:
                while part := stream.read(_PIECE):
                    parts.append(part)
                    total += len(part)
                    if total > MAX_PACKET:
                        raise Damaged(f"a packet has more than {MAX_PACKET:,} bytes")
        except (OSError, pa.ArrowException) as error:
            raise Damaged("a packet cannot be decompressed") from error
        return b"".join(parts)

    def _listed(self) -> npt.NDArray[Any] | None:
        """The packets by the table; None if the file has none, or is cut off before it."""
        if not self._begin <= self._table < self._size:
            return None
        data = self._content(self._table, self._size - self._table)
        if data[8:12] != b"FTAB":
            raise Damaged("its table of packets is none")
        place, count = vector(data, root(data, 4), 0)
        if place + 4 * count > len(data):
            raise Damaged(f"a vector of {count:,} tables in {len(data):,} bytes")
        entries = place + 4 * np.arange(count)
        entries += _numbers(data, entries, "<u4")
        streams, pair = (column(data, entries, 1, form) for form in ("<i4", "<i8"))
        places, *others = (column(data, entries, at, "<i8") for at in (0, 2, 3, 4))
        found: npt.NDArray[Any] = np.rec.fromarrays(
            [streams, places, pair >> 32, *others], dtype=_PACKET
        )
        found = found[np.argsort(places)]
        expected = np.append(self._begin, found["at"] + found["size"]) + PACKET
        if not np.array_equal(np.append(found["at"], self._table + PACKET), expected):
            raise Damaged("its packets do not fill the file up to their table")
        return found

    def _walked(self) -> npt.NDArray[Any]:
        """The packets one after another; a note says that the file is incomplete."""
        rows, at = list[tuple[int, ...]](), self._begin
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
        note = f"{self.name} has no table of packets; the recording was interrupted or cut short."
        if at < self._size:
            note += f" Its last {counted(self._size - at, 'byte')} are no whole packet: left out."
        self.notes = (*self.notes, note)
        return np.array(rows, _PACKET)


# FlatBuffers; Damaged for an offset outside the buffer.
def root(data: bytes, at: int = 0) -> Places:
    """The place of the main table; `at` 4 skips the size in front of it."""
    return at + _numbers(data, np.array([at]), "<u4")


def column(data: bytes, tables: Places, number: int, form: str, default: int = 0) -> Places:
    """The same field, a number, of many tables."""
    places = _fields(data, tables, number)
    values = np.full(len(tables), default, np.int64)
    values[places > 0] = _numbers(data, places[places > 0], form)
    return values


def vector(data: bytes, table: Places, number: int) -> tuple[int, int]:
    """(place, number) of the elements of a field of one table."""
    place = _fields(data, table, number)
    if not place[0]:
        return 0, 0
    begin = place + _numbers(data, place, "<u4")
    return int(begin[0]) + 4, int(_numbers(data, begin, "<u4")[0])


def _fields(data: bytes, tables: Places, number: int) -> Places:
    """The places of a field of the tables; 0 where it has its default."""
    lists, found = tables - _numbers(data, tables, "<i4"), np.zeros(len(tables), np.int64)
    known = _numbers(data, lists, "<u2") >= 6 + 2 * number
    found[known] = _numbers(data, lists[known] + 4 + 2 * number, "<u2")
    return np.where(found > 0, tables + found, 0)


def _numbers(data: bytes, places: Places, form: str) -> Places:
    size = np.dtype(form).itemsize
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) <= len(data) - size:
        raise Damaged(f"an offset outside {len(data):,} bytes")
    found = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(size)]
    values: Places = found.view(form).reshape(len(places)).astype(np.int64)
    return values

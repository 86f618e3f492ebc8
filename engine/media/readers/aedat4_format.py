"""The parts of an AEDAT4 file: header, compression, table of packets, and a packet of events.

Format: a line with the version, a header (a FlatBuffer with its size in front: compression, place
of the table of packets, and XML that names the streams), then packets, each with the number of its
stream, its size, and a compressed FlatBuffer.  The events of a packet have 16 bytes each.  The
table at the end has the place, the number of events and the times of each packet.

Boundary: bytes in, values out; ValueError for anything else.  Decompression has a limit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.media.readers import flat_tables
from engine.quoting import counted

PACKET = 8  # bytes in front of a packet: stream and size
MAX_PACKET = 1 << 28  # bytes before and after decompression: 16 million events
_MAX_HEADER = 1 << 20
_MAX_SIDE = 4096  # as in events.py, which imports this package
_PIECE = 1 << 20
_MAGIC = b"#!AER-DAT4.0\r\n"
_COMPRESSIONS = ("", "lz4", "lz4", "zstd", "zstd")
_EVENT = np.dtype(
    {
        "names": ["t", "x", "y", "p"],
        "formats": ["<i8", "<i2", "<i2", "u1"],
        "offsets": [0, 8, 10, 12],
        "itemsize": 16,
    }
)
_STREAM = re.compile(r'<node name="([0-9]{1,9})"')
_VALUE = r'<attr key="{}"[^>]{{0,99}}>([^<]{{0,99}})<'


class Packets(NamedTuple):
    """Packets in the order of the file, in columns; times are those of the events."""

    streams: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]  # behind the bytes in front of it
    sizes: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]

    def take(self, part: npt.NDArray[Any]) -> Packets:
        return Packets(*(column[part] for column in self))


@dataclass(frozen=True)
class Header:
    """`sensors` has the size of each stream of events, if it is stated."""

    compression: str
    table: int  # place of the table of packets; below 0 for none
    sensors: Mapping[int, tuple[int, int] | None]
    end: int


def header(file: BinaryIO) -> Header:
    """The header at the beginning of a file."""
    file.seek(0)
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin with the line #!AER-DAT4.0")
    size = int.from_bytes(file.read(4), "little")
    data = file.read(min(size, _MAX_HEADER))
    if not 8 <= size == len(data):
        raise ValueError(f"its header has {len(data):,} of {counted(size, 'byte')}")
    table = flat_tables.root(data)
    compression = table.integer(0, "<i", 0)
    if not 0 <= compression < len(_COMPRESSIONS):
        raise ValueError(f"its compression is {compression}")
    text = bytes(table.vector(2, 1)).decode("utf-8", "replace")
    place = table.integer(1, "<q", -1)
    return Header(_COMPRESSIONS[compression], place, _sensors(text), len(_MAGIC) + 4 + size)


def _sensors(text: str) -> dict[int, tuple[int, int] | None]:
    """The streams of events in the XML: the recorder writes one form only, so no parser is used."""
    _, *parts = _STREAM.split(text)  # numbers of streams, and what follows each
    return {
        int(stream): _size(_value(part, "sizeX"), _value(part, "sizeY"))
        for stream, part in zip(parts[::2], parts[1::2], strict=True)
        if _value(part, "typeIdentifier") == "EVTS"
    }


def _value(text: str, key: str) -> str:
    found = re.search(_VALUE.format(key), text)
    return found[1].strip() if found else ""


def _size(width: str, height: str) -> tuple[int, int] | None:
    if not width and not height:
        return None
    sides = [int(side) if re.fullmatch("[0-9]{1,9}", side) else 0 for side in (width, height)]
    if not all(1 <= side <= _MAX_SIDE for side in sides):
        raise ValueError(f"it states the sensor size {width} x {height}")
    return sides[0], sides[1]


def decompressed(data: bytes, compression: str) -> bytes:
    """The bytes of a packet; ValueError if they are damaged or too many."""
    if not compression:
        return data
    import pyarrow as pa  # takes a tenth of a second

    parts, size = list[bytes](), 0
    try:
        with pa.CompressedInputStream(pa.BufferReader(data), compression) as stream:
            while part := stream.read(_PIECE):
                parts.append(part)
                size += len(part)
                if size > MAX_PACKET:
                    raise ValueError(f"a packet has more than {MAX_PACKET:,} bytes")
    except (OSError, pa.ArrowException) as error:
        raise ValueError("a packet cannot be decompressed") from error
    return b"".join(parts)


def events(data: bytes) -> npt.NDArray[Any]:
    """The events of a decompressed packet, with the fields t, x, y and p."""
    if data[8:12] != b"EVTS":
        raise ValueError("a packet of events has no events")
    return np.frombuffer(flat_tables.root(data, 4).vector(0, _EVENT.itemsize), _EVENT)


def table(data: bytes) -> Packets:
    """The packets that a decompressed table lists."""
    if data[8:12] != b"FTAB":
        raise ValueError("its table of packets is none")
    entries = flat_tables.root(data, 4).tables(0)
    info, info_end = (flat_tables.column(data, entries, 1, form) for form in ("<i4", "<i8"))
    numbers = [flat_tables.column(data, entries, number, "<i8") for number in (0, 2, 3, 4)]
    return Packets(info, numbers[0], info_end >> 32, *numbers[1:])

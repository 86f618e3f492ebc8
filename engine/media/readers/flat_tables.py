"""Reads FlatBuffers for AEDAT4 files; ValueError for an offset outside the buffer.

Format: flatbuffers.dev, "FlatBuffer Internals".  A table begins with the distance to its list of
field offsets; a field that is not in the list has its default value.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FlatTable:
    """One table of a buffer."""

    data: bytes
    at: int

    def field(self, number: int) -> int | None:
        """The place of a field; None if it has its default."""
        fields = self.at - _read("<i", self.data, self.at)
        entry = 4 + 2 * number
        if entry + 2 > _read("<H", self.data, fields):
            return None
        offset = _read("<H", self.data, fields + entry)
        return self.at + offset if offset else None

    def integer(self, number: int, form: str, default: int) -> int:
        """A number; `form` is that of struct."""
        at = self.field(number)
        return default if at is None else _read(form, self.data, at)

    def vector(self, number: int, size: int) -> memoryview:
        """The bytes of a vector or a text, whose elements have `size` bytes."""
        at = self.field(number)
        if at is None:
            return memoryview(b"")
        begin = at + _read("<I", self.data, at)
        end = begin + 4 + _read("<I", self.data, begin) * size
        if end > len(self.data):
            raise ValueError(f"a vector up to byte {end:,} of {len(self.data):,}")
        return memoryview(self.data)[begin + 4 : end]

    def tables(self, number: int) -> Places:
        """The places of the tables in a vector."""
        offsets = np.frombuffer(self.vector(number, 4), "<u4").astype(np.int64)
        at = self.field(number)
        begin = 0 if at is None else at + _read("<I", self.data, at) + 4
        return begin + 4 * np.arange(len(offsets)) + offsets


def root(data: bytes, at: int = 0) -> FlatTable:
    """The main table; `at` 4 skips the size in front of it."""
    return FlatTable(data, at + _read("<I", data, at))


def column(data: bytes, tables: Places, number: int, form: str) -> npt.NDArray[np.int64]:
    """The same field, a number, of many tables; 0 where it has its default."""
    if not len(tables):
        return np.zeros(0, np.int64)
    fields = tables - _gather(data, tables, "<i4")
    offsets = np.zeros(len(tables), np.int64)
    known = _gather(data, fields, "<u2") >= 6 + 2 * number
    offsets[known] = _gather(data, fields[known] + 4 + 2 * number, "<u2")
    values = np.zeros(len(tables), np.int64)
    given = offsets > 0
    values[given] = _gather(data, tables[given] + offsets[given], form)
    return values


def _gather(data: bytes, places: Places, form: str) -> npt.NDArray[np.int64]:
    size = np.dtype(form).itemsize
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) <= len(data) - size:
        raise ValueError(f"an offset outside {len(data):,} bytes")
    found = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(size)]
    values: npt.NDArray[np.int64] = found.view(form)[:, 0].astype(np.int64)
    return values


def _read(form: str, data: bytes, at: int) -> int:
    if not 0 <= at <= len(data) - struct.calcsize(form):
        raise ValueError(f"an offset of {at:,} in {len(data):,} bytes")
    return int(struct.unpack_from(form, data, at)[0])

"""Reads FlatBuffers for AEDAT4 files; ValueError for an offset outside the buffer.

Format: flatbuffers.dev, "FlatBuffer Internals".  A table begins with the distance to its list of
field offsets; a field that is not in the list has its default value.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


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


def tables(data: bytes, table: Places, number: int) -> Places:
    """The places of the tables in a vector."""
    place, count = vector(data, table, number)
    if place + 4 * count > len(data):
        raise ValueError(f"a vector of {count:,} tables in {len(data):,} bytes")
    places: Places = place + 4 * np.arange(count)
    return places + _numbers(data, places, "<u4")


def _fields(data: bytes, tables: Places, number: int) -> Places:
    """The places of a field of the tables; 0 where it has its default."""
    lists, found = tables - _numbers(data, tables, "<i4"), np.zeros(len(tables), np.int64)
    known = _numbers(data, lists, "<u2") >= 6 + 2 * number
    found[known] = _numbers(data, lists[known] + 4 + 2 * number, "<u2")
    return np.where(found > 0, tables + found, 0)


def _numbers(data: bytes, places: Places, form: str) -> Places:
    size = np.dtype(form).itemsize
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) <= len(data) - size:
        raise ValueError(f"an offset outside {len(data):,} bytes")
    found = np.frombuffer(data, np.uint8)[places[:, None] + np.arange(size)]
    values: Places = found.view(form).reshape(len(places)).astype(np.int64)
    return values

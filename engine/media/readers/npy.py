"""Reads a .npy file of events into named columns of plain numbers.

Format: a header (npy_header.py), then the array's bytes or, for objects, a pickle.  Two forms are
accepted: a 0-d object array that holds a dict of arrays, and a 1-d structured array.  NumPy writes
the gaps of an aligned structured array as fields without a name.

Boundary: does not interpret the columns; never uses NumPy's own pickle loader.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import MediaError
from engine.media import kinds, npy_header, pickles
from engine.media.media_files import content
from engine.media.npy_header import NpyHeader
from engine.media.readers import Column, Columns, Recording, Whole
from engine.media.standins import Array
from engine.quoting import quoted

FIELD = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
GAP = re.compile(r"\|?V([0-9]{1,4})")
MAX_FIELDS = 256


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording of a .npy file, which is read as a whole."""
    table = columns(content(path), name)
    width, height = _whole_number(table.get("width")), _whole_number(table.get("height"))
    yield Whole(Columns(table, width, height), name)


def _whole_number(value: Column | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def columns(data: bytes, name: str) -> dict[str, Column]:
    """The arrays and numbers of a .npy file by name; MediaError says what is wrong."""
    other = kinds.of(data[: kinds.HEAD], name)
    if other is not None and other.field != "events":
        raise MediaError(other.refusal(name, "a .npy of events"))
    try:
        header = npy_header.read(data)
        if header.descr == "|O" and header.shape == ():
            return _dict(data, header.start)
        return _records(header, data)
    except ValueError as error:
        raise MediaError(
            f"{name} is refused, as it holds {error}: give a .npy with a dict of plain arrays "
            "x, y, t and p."
        ) from error


def _dict(data: bytes, start: int) -> dict[str, Column]:
    value = pickles.load(data, start)
    if isinstance(value, Array):
        value = value.item()
    if not isinstance(value, dict):
        raise ValueError("an object that is no dict")
    if len(value) > MAX_FIELDS:
        raise ValueError(f"a dict of {len(value):,} keys")
    arrays = {key: _column(item) for key, item in value.items()}
    return {key: item for key, item in arrays.items() if item is not None}


def _column(value: object) -> Column | None:
    """An array or a number; None for anything else, such as a list or a text."""
    if isinstance(value, Array):
        return value.numpy()
    return value if isinstance(value, int | float) else None


def _records(header: NpyHeader, data: bytes) -> dict[str, Column]:
    match header.descr, header.shape:
        case [list(fields), (int(count),)] if 0 < len(fields) <= MAX_FIELDS:
            dtype = _dtype(fields)
        case _:
            raise ValueError(
                f"an array of type {quoted(header.descr)} and shape {quoted(header.shape)}"
            )
    size = len(data) - header.start
    if count < 0 or count * dtype.itemsize != size:
        raise ValueError(f"{size:,} bytes where its header claims {count:,} records")
    if not count:
        return {name: np.empty(0) for name in dtype.names or ()}
    table = np.frombuffer(data, dtype, count, header.start)
    return {name: table[name] for name in dtype.names or ()}


def _dtype(fields: list[object]) -> np.dtype[Any]:
    """The type of one record; fields without a name are gaps."""
    names, codes, offsets, size = list[str](), list[str](), list[int](), 0
    for field in fields:
        match field:
            case (str(name), str(code)) if name and FIELD.fullmatch(code):
                names.append(name)
                codes.append(code)
                offsets.append(size)
                size += np.dtype(code).itemsize
            case ("", str(code)) if gap := GAP.fullmatch(code):
                size += int(gap[1])
            case _:
                raise ValueError(f"a record with the field {quoted(field)}")
    if not names:
        raise ValueError("records without a field")
    return np.dtype({"names": names, "formats": codes, "offsets": offsets, "itemsize": size})

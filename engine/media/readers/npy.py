"""Reads a .npy file of events into named columns of plain numbers.

Format: a header (npy_header.py), then the array's bytes or, for objects, a pickle.  Accepted forms:
a 1-d structured array, which is read by position; a 0-d object array that holds a dict of arrays;
and a 1-d object array of time bins, each a dict or a structured array (EventBench).  NumPy writes
the gaps of an aligned structured array as fields without a name.  NumPy's own pickle loader is
never used.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import npy_header, pickles
from engine.media.events import refuse_many
from engine.media.media_files import content, large
from engine.media.media_files import opened as opened_file
from engine.media.npy_header import NpyHeader
from engine.media.readers import Column, Columns, Recording, Whole
from engine.media.readers.by_position import ByPosition, Numbered, Times
from engine.media.standins import Array
from engine.quoting import counted, quoted

FIELD = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
GAP = re.compile(r"\|?V([0-9]{1,4})")
MAX_FIELDS = 256
MAX_BINS = 4096
PIECE = 1 << 18  # bytes


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording of a .npy file; a structured array is read by position."""
    data = large(path, None)
    with opened_file(data) as file:
        records = _by_position(file, len(data), name)
        if records is not None:
            yield ByPosition(records, name)
            return
    yield Whole(described(columns(content(path), name)), name)


def _by_position(file: BinaryIO, size: int, name: str) -> _Records | None:
    """The records of a structured array with x, y, t and p; None for another file."""
    head = file.read(npy_header.MAX_BYTES + 12)
    with refused(name):
        header = npy_header.read(head)
        dtype = _record(header)
        count = _count(header, dtype, size) if dtype else 0
    if not dtype or not count or not {"x", "y", "t", "p"} <= set(dtype.names or ()):
        return None
    return _Records(file, header.start, count, dtype, name)


class _Records(Numbered):
    """The records of a structured array by number."""

    def __init__(
        self, file: BinaryIO, start: int, count: int, dtype: np.dtype[Any], name: str
    ) -> None:
        super().__init__(count)
        self._file, self._start, self._dtype, self._name = file, start, dtype, name
        self.floats = dtype["t"].kind == "f"

    def columns(self, first: int, last: int) -> Columns:
        refuse_many(last - first, self._name)
        table = self._rows(first, last)
        return Columns({key: np.ascontiguousarray(table[key]) for key in "xytp"}, as_published=True)

    def times(self, first: int, last: int) -> Times:
        times = self._rows(first, last)["t"]
        if times.dtype.kind == "f":
            # Values that are no whole microseconds are refused when the events are read.
            times = np.nan_to_num(times.astype(np.float64), posinf=2**62, neginf=-(2**62))
            times = np.clip(times, -(2**62), 2**62)
        return times.astype(np.int64)

    def _rows(self, first: int, last: int) -> npt.NDArray[Any]:
        size = self._dtype.itemsize
        self._file.seek(self._start + first * size)
        found = self._file.read((last - first) * size)
        if len(found) != (last - first) * size:
            raise MediaError(f"{self._name} became shorter while it was read: copy it again.")
        return np.frombuffer(found, self._dtype)


@contextmanager
def refused(name: str) -> Iterator[None]:
    """A ValueError with a noun phrase becomes the MediaError of this file."""
    try:
        yield
    except ValueError as error:
        raise MediaError(
            f"{name} is refused, as it holds {error}: give a .npy with a dict of plain arrays "
            "x, y, t and p."
        ) from error


def described(table: dict[str, Column]) -> Columns:
    """The columns with the sensor's size."""
    width, height = table.get("width"), table.get("height")
    return Columns(
        table,
        width if type(width) is int else None,
        height if type(height) is int else None,
        as_published=True,
    )


def columns(data: bytes, name: str) -> dict[str, Column]:
    """The arrays and numbers of a .npy file by name; MediaError says what is wrong."""
    with refused(name):
        header = npy_header.read(data)
        if header.descr == "|O":
            return _objects(pickles.load(data, header.start))
        return _records(header, data)


def of_stream(file: BinaryIO, size: int, name: str) -> Columns | None:
    """As `columns` for objects, in pieces, so that little is unpacked in vain; None else."""
    stream = io.BufferedReader(cast(io.RawIOBase, file), PIECE)
    with refused(name):
        header = npy_header.read(stream.peek(PIECE))
        if header.descr != "|O":
            return None
        stream.read(header.start)
        found = described(_objects(pickles.load_stream(stream, size)))
    while stream.read(PIECE):  # to the end, where an archive's checksum is compared
        pass
    return found


def array(data: bytes) -> npt.NDArray[Any] | None:
    """A 1-d array of plain numbers, None for another form; ValueError if it is damaged."""
    header = npy_header.read(data)
    match header.descr, header.shape:
        case str(code), (int(count),) if FIELD.fullmatch(code):
            dtype = np.dtype(code)
            _check_size(count, dtype, len(data) - header.start)
            return np.frombuffer(data, dtype, count, header.start) if count else np.empty(0, dtype)
    return None


def _objects(value: object) -> dict[str, Column]:
    """The columns of a dict, or of all time bins together."""
    bins = value.items() if isinstance(value, Array) and value.shape != () else None
    if bins is not None:
        return _joined(bins)
    return _of_object(value.item() if isinstance(value, Array) else value)


def _of_object(value: object) -> dict[str, Column]:
    if isinstance(value, Array):
        table = value.numpy()
        if table.dtype.names is None or table.ndim != 1:
            raise ValueError(f"a time bin of type {quoted(str(table.dtype))}")
        return {name: table[name] for name in table.dtype.names}
    if not isinstance(value, dict):
        raise ValueError("an object that is no dict")
    if len(value) > MAX_FIELDS:
        raise ValueError(f"a dict of {len(value):,} keys")
    arrays = {key: _column(item) for key, item in value.items()}
    return {key: item for key, item in arrays.items() if item is not None}


def _joined(bins: Sequence[object]) -> dict[str, Column]:
    """The arrays of all bins in file order; numbers beside them are left out."""
    if not 0 < len(bins) <= MAX_BINS:
        raise ValueError(f"{len(bins):,} time bins")
    parts = [_arrays(_of_object(one)) for one in bins]
    missing = [key for key in "xytp" if any(key not in part for part in parts)]
    if missing:
        raise ValueError(f"a time bin without {' and '.join(missing)}")
    return {key: np.concatenate([part[key] for part in parts]) for key in "xytp"}


def _arrays(table: Mapping[str, Column]) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a time bin, which must be of one length."""
    found = {key: item for key, item in table.items() if isinstance(item, np.ndarray)}
    sizes = {found[key].shape for key in "xytp" if key in found}
    if len(sizes) > 1 or any(len(size) != 1 for size in sizes):
        raise ValueError("a time bin with columns of different lengths")
    return found


def _column(value: object) -> Column | None:
    """An array or a number; None for anything else, such as a list or a text."""
    if isinstance(value, Array):
        found = value.numpy()
        if found.dtype.names is not None:
            raise ValueError("an array of records in a dict")
        return found
    return value if isinstance(value, int | float) else None


def _records(header: NpyHeader, data: bytes) -> dict[str, Column]:
    dtype = _record(header)
    if dtype is None:
        raise ValueError(
            f"an array of type {quoted(header.descr)} and shape {quoted(header.shape)}"
        )
    count = _count(header, dtype, len(data))
    if not count:
        return {name: np.empty(0) for name in dtype.names or ()}
    table = np.frombuffer(data, dtype, count, header.start)
    return {name: table[name] for name in dtype.names or ()}


def _record(header: NpyHeader) -> np.dtype[Any] | None:
    """The type of the records of a 1-d structured array; None for another array."""
    match header.descr, header.shape:
        case [list(fields), (int(),)] if 0 < len(fields) <= MAX_FIELDS:
            return _dtype(fields)
    return None


def _count(header: NpyHeader, dtype: np.dtype[Any], size: int) -> int:
    """How many records a file of this size has; ValueError if the header claims others."""
    match header.shape:
        case (int(count),):
            _check_size(count, dtype, size - header.start)
            return count
    raise ValueError(f"an array of shape {quoted(header.shape)}")


def _check_size(count: int, dtype: np.dtype[Any], size: int) -> None:
    if count < 0 or count * dtype.itemsize != size:
        raise ValueError(
            f"{counted(size, 'byte')} where its header claims {counted(count, 'record')}"
        )


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

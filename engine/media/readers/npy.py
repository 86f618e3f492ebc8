"""Reads a .npy file of events into named columns of plain numbers.

Format: NumPy's .npy, versions 1.0 to 3.0 (numpy.org/doc/stable/reference/generated/
numpy.lib.format.html): magic, version, header length, a Python literal with type and shape, then
the array's bytes or, for objects, a pickle.  Accepted forms: a 1-d structured array, which is read
by position; a 0-d object array that holds a dict of arrays; and a 1-d object array of time bins,
each a dict or a structured array (EventBench).  NumPy writes the gaps of an aligned structured
array as fields without a name.  NumPy's own pickle loader is never used.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files, pickles
from engine.media.event_columns import Columns, Times, refuse_many
from engine.media.pickles import Array
from engine.media.recording import ByPosition, Recording, Whole
from engine.quoting import count as counted
from engine.quoting import quoted, shown

MAX_HEADER = 10_000
FIELD = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
GAP = re.compile(r"\|?V([0-9]{1,4})")
MAX_FIELDS = 256
MAX_BINS = 4096
PIECE = 1 << 18  # bytes
# The parts of the literals that NumPy writes; a comma before a closing bracket is dropped.
_TOKEN = re.compile(
    r"""\s*(?:[ub]?(?P<text>'(?:[^'\\]|\\.){0,256}'|"(?:[^"\\]|\\.){0,256}")"""
    r"""|(?P<number>[0-9]{1,18})L?|(?P<word>True|False|None)|(?P<comma>,\s*(?=[])}]))"""
    r"""|(?P<mark>[][(){},:]))""",
    re.DOTALL,
)
_IN_JSON = {"(": "[", ")": "]", "True": "true", "False": "false", "None": "null"}
Column = npt.NDArray[Any] | int | float


class NpyHeader(msgspec.Struct):
    """The array's type and shape as in the file; its bytes begin at offset `start`."""

    descr: str | list[tuple[object, ...]]
    shape: tuple[int, ...]
    start: int = 0


def header(data: bytes) -> NpyHeader:
    """The header of a .npy file; ValueError with a noun phrase that names the problem."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        raise ValueError("no .npy header")
    start = 12 if data[6] > 1 else 10
    length = int.from_bytes(data[8:start], "little")
    if length > MAX_HEADER or start + length > len(data):
        raise ValueError(f"a header of {length:,} bytes in a file of {len(data):,}")
    text = data[start : start + length].decode("utf-8" if data[6] > 2 else "latin-1").strip()
    # Python's own parser is not used: it warns on stderr and can overflow the stack.
    parts, at = list[str](), 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError("a header that is not a Python literal")
        if found["text"]:  # escapes are kept: no expected name has any
            parts.append(json.dumps(found["text"][1:-1]))
        elif not found["comma"]:
            part = found[found.lastgroup or 0]
            parts.append(_IN_JSON.get(part, part))
        at = found.end()
    try:
        value = msgspec.json.decode(" ".join(parts), type=NpyHeader)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError("a header that is not a dict of a type and a shape") from error
    value.start = start + length
    return value


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording of a .npy file; a structured array is read by position."""
    data = media_files.large(path, None)
    with media_files.opened(data) as file:
        head = file.read(MAX_HEADER + 12)
        with refused(name):
            found = header(head)
            dtype = _record(found)
            count = _count(found, dtype, len(data)) if dtype else 0
        if dtype and count and {"x", "y", "t", "p"} <= set(dtype.names or ()):
            yield _Records(file, found.start, count, dtype, name)
            return
    yield Whole(described(columns(media_files.content(path), name), name), name)


class _Records(ByPosition):
    def __init__(
        self, file: BinaryIO, start: int, count: int, dtype: np.dtype[Any], name: str
    ) -> None:
        self._file, self._start, self._dtype, self._name = file, start, dtype, name
        self.floats = dtype["t"].kind == "f"
        super().__init__(name, count)

    def columns(self, first: int, last: int) -> Columns:
        refuse_many(last - first, self._name)
        table = self._rows(first, last)
        x, y, t, p = (np.ascontiguousarray(table[key]) for key in "xytp")
        return Columns(x, y, t, p, as_published=True)

    def times(self, first: int, last: int) -> Times:
        times = self._rows(first, last)["t"]
        if times.dtype.kind == "f":
            # Values that are no whole microseconds are refused when the events are read.
            times = np.nan_to_num(times.astype(np.float64), posinf=2**62, neginf=-(2**62))
            times = np.clip(times, -(2**62), 2**62)
        return times.astype(np.int64)

    def _rows(self, first: int, last: int) -> npt.NDArray[Any]:
        size = self._dtype.itemsize
        place = self._start + first * size
        found = media_files.part(self._file, place, (last - first) * size, self._name)
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


def described(table: dict[str, Column], name: str) -> Columns:
    """The columns x, y, t and p, and the sensor's size; MediaError if one is no plain column."""
    found = dict[str, npt.NDArray[Any]]()
    for key in "xytp":
        values = table.get(key)
        if not isinstance(values, np.ndarray):
            names = shown(", ".join(sorted(table)) or "none")
            raise MediaError(
                f"{name} has no array {key!r} (found: {names}): give a file with x, y, t and p."
            )
        if values.ndim != 1:
            raise MediaError(f"{name} has {key} of shape {values.shape}: give one value per event.")
        found[key] = values
    sides = (table.get("width"), table.get("height"))
    width, height = (side if type(side) is int else None for side in sides)
    x, y, t, p = (found[key] for key in "xytp")
    return Columns(x, y, t, p, width, height, as_published=True)


def columns(data: bytes, name: str) -> dict[str, Column]:
    """The arrays and numbers of a .npy file by name; MediaError says what is wrong."""
    with refused(name):
        found = header(data)
        if found.descr == "|O":
            return _of_objects(pickles.load(data, found.start))
        dtype = _record(found)
        if dtype is None:
            raise ValueError(
                f"an array of type {quoted(found.descr)} and shape {quoted(found.shape)}"
            )
        table = _array(found, dtype, data)
        return {key: table[key] for key in dtype.names or ()}


def of_stream(file: BinaryIO, size: int, name: str) -> dict[str, Column] | None:
    """As `columns` for objects, in pieces, so that little is unpacked in vain; None else."""
    stream = io.BufferedReader(cast(io.RawIOBase, file), PIECE)
    with refused(name):
        found = header(stream.peek(PIECE))
        if found.descr != "|O":
            return None
        stream.read(found.start)
        table = _of_objects(pickles.load_stream(stream, size))
    while stream.read(PIECE):  # to the end, where an archive's checksum is compared
        pass
    return table


def array(data: bytes) -> npt.NDArray[Any] | None:
    """A 1-d array of plain numbers, None for another form; ValueError if it is damaged."""
    found = header(data)
    code = found.descr
    if not isinstance(code, str) or len(found.shape) != 1 or not FIELD.fullmatch(code):
        return None
    return _array(found, np.dtype(code), data)


def _of_objects(value: object) -> dict[str, Column]:
    """The columns of a dict, or of all time bins together in file order."""
    if not isinstance(value, Array):
        return _of_object(value)
    bins = value.objects()
    if value.shape == ():
        return _of_object(bins[0])
    if not 0 < len(bins) <= MAX_BINS:
        raise ValueError(f"{len(bins):,} time bins")
    parts = list[dict[str, npt.NDArray[Any]]]()
    for one in bins:
        table = _of_object(one)
        part = {key: item for key in "xytp" if isinstance(item := table.get(key), np.ndarray)}
        shapes = {item.shape for item in part.values()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise ValueError("a time bin with columns of different lengths")
        parts.append(part)
    missing = [key for key in "xytp" if any(key not in part for part in parts)]
    if missing:
        raise ValueError(f"a time bin without {' and '.join(missing)}")
    return {key: np.concatenate([part[key] for part in parts]) for key in "xytp"}


def _of_object(value: object) -> dict[str, Column]:
    """The arrays and numbers of a dict or a structured array; other values are left out."""
    if isinstance(value, Array):
        table = value.numpy()
        if table.dtype.names is None or table.ndim != 1:
            raise ValueError(f"a time bin of type {quoted(str(table.dtype))}")
        return {name: table[name] for name in table.dtype.names}
    if not isinstance(value, dict):
        raise ValueError("an object that is no dict")
    if len(value) > MAX_FIELDS:
        raise ValueError(f"a dict of {len(value):,} keys")
    found: dict[str, Column] = {}
    for key, item in value.items():
        if isinstance(item, Array):
            found[key] = item.numpy()
            if item.numpy().dtype.names is not None:
                raise ValueError("an array of records in a dict")
        elif isinstance(item, int | float):
            found[key] = item
    return found


def _record(found: NpyHeader) -> np.dtype[Any] | None:
    """The type of the records of a 1-d structured array, None for another array.  Fields without a
    name are gaps."""
    fields = found.descr
    if not isinstance(fields, list) or not 0 < len(fields) <= MAX_FIELDS or len(found.shape) != 1:
        return None
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


def _count(found: NpyHeader, dtype: np.dtype[Any], size: int) -> int:
    """How many records a file of this size has; ValueError if the header claims others."""
    (count,), size = found.shape, size - found.start
    if count < 0 or count * dtype.itemsize != size:
        raise ValueError(
            f"{counted(size, 'byte')} where its header claims {counted(count, 'record')}"
        )
    return count


def _array(found: NpyHeader, dtype: np.dtype[Any], data: bytes) -> npt.NDArray[Any]:
    count = _count(found, dtype, len(data))
    return np.frombuffer(data, dtype, count, found.start) if count else np.empty(0, dtype)

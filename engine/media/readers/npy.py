"""Reads a .npy file of events into named columns of plain numbers.

Format: NumPy's .npy, versions 1.0 to 3.0 (numpy.org/doc/stable/reference/generated/
numpy.lib.format.html): magic, version, header length, a Python literal with type and shape, then
the array's bytes or, for objects, a pickle.  Accepted forms: a 1-d structured array, which is read
by position; a 0-d object array that holds a dict of arrays; and a 1-d object array of time bins,
each a dict or a structured array (EventBench).  NumPy's own pickle loader is never used.
"""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import media_files, pickles
from engine.media.event_columns import MAX_EVENTS, Columns
from engine.media.recording import Recording, Rows, Whole
from engine.quoting import count as counted
from engine.quoting import quoted, shown

MAX_HEADER = 10_000
MAX_FIELDS = 256
MAX_BINS = 4096
SIDES = ("width", "height")
NUMBER = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")
GAP = re.compile(r"\|?V([0-9]{1,4})")  # in an aligned structured array, without a name
# Of the literals that NumPy writes: texts without escapes, whole numbers, and these.
LITERAL = re.compile(
    r"""(\s|'[^'\\\n]*'|"[^"\\\n]*"|[][(){},:]|\b([0-9]{1,18}|True|False|None)\b)*"""
)
Column = npt.NDArray[Any] | int | float


class NpyHeader(NamedTuple):
    """The array's type and shape as in the file; its bytes begin at offset `start`."""

    descr: object
    shape: tuple[int, ...]
    start: int


def header(data: bytes) -> NpyHeader:
    """The header of a .npy file; ValueError with a noun phrase that names the problem."""
    start = 12 if data[6:7] > b"\1" else 10
    length = int.from_bytes(data[8:start], "little")
    if data[:6] != b"\x93NUMPY" or length > MAX_HEADER or start + length > len(data):
        raise ValueError(f"no .npy header in its {counted(len(data), 'byte')}")
    text = data[start : start + length].decode("utf-8" if data[6] > 2 else "latin-1").strip()
    try:
        if not LITERAL.fullmatch(text):  # so that Python's parser has nothing to warn of
            raise ValueError(text)
        value = ast.literal_eval(text)
        descr, shape = value["descr"], value["shape"]
    except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError) as error:
        raise ValueError("a header that is not a dict of a type and a shape") from error
    if not isinstance(shape, tuple) or not all(type(side) is int for side in shape):
        raise ValueError("a header that is not a dict of a type and a shape")
    return NpyHeader(descr, shape, start + length)


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording of a .npy file; a structured array is read by position."""
    data = media_files.large(path, whole=False)
    with media_files.opened(data) as file:
        with refused(name):
            found = header(file.read(MAX_HEADER + 12))
            dtype = _record(found)
            count = _count(found, dtype, len(data)) if dtype else 0
        if dtype and count and {*"xytp"} <= set(dtype.names or ()):
            yield _Records(file, found.start, count, dtype, name).ordered()
            return
    yield Whole(described(columns(media_files.content(path), name), name), name)


class _Records(Rows):
    as_published = True


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
    found = list[npt.NDArray[Any]]()
    for key in "xytp":
        values = np.asarray(table.get(key))
        if values.ndim != 1:
            names = shown(", ".join(sorted(table)) or "none")
            raise MediaError(
                f"{name} has no array {key!r} with one value per event (found: {names}): give a "
                "file with x, y, t and p."
            )
        found.append(values)
    width, height = (int(v) if type(v := table.get(k)) is int else None for k in SIDES)
    return Columns(*found, width=width, height=height, as_published=True)


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


def array(data: bytes) -> npt.NDArray[Any]:
    """A 1-d array of plain numbers; ValueError for another one, or if it is damaged."""
    found = header(data)
    code = found.descr
    if not isinstance(code, str) or len(found.shape) != 1 or not NUMBER.fullmatch(code):
        raise ValueError("an array that is not one number per event")
    return _array(found, np.dtype(code), data)


def _of_objects(value: object) -> dict[str, Column]:
    """The columns of a dict, or of all time bins together in file order."""
    bins = pickles.objects(value)
    if isinstance(bins, dict):
        return _of_object(bins)
    if not 0 < len(bins) <= MAX_BINS:
        raise ValueError(f"{len(bins):,} time bins")
    parts, total = list[list[npt.NDArray[Any]]](), 0
    for one in bins:
        table = _of_object(one)
        part = [np.asarray(table.get(key)) for key in "xytp"]
        if part[0].ndim != 1 or len({item.shape for item in part}) > 1:
            raise ValueError("a time bin without x, y, t and p, or of different lengths")
        parts.append(part)
        total += len(part[0])
        if total > MAX_EVENTS:  # bins may share arrays
            raise ValueError(f"more than {MAX_EVENTS:,} events")
    joined = (np.concatenate(column) for column in zip(*parts, strict=True))
    return dict(zip("xytp", joined, strict=True))


def _of_object(value: object) -> dict[str, Column]:
    """The arrays and numbers of a dict or a structured array; other values are left out."""
    if isinstance(value, dict) and len(value) <= MAX_FIELDS:
        found = dict[str, Column]()
        for key, item in value.items():
            if isinstance(item, pickles.Call):
                column = pickles.array(item)
                if column.dtype.names is not None:
                    raise ValueError("an array of records in a dict")
                found[key] = column if item.name != "scalar" else column.item()
            elif isinstance(item, int | float):
                found[key] = item
        return found
    if not isinstance(value, pickles.Call):
        raise ValueError("an object that is no dict, or has too many keys")
    table = pickles.array(value)
    if table.dtype.names is None or table.ndim != 1:
        raise ValueError(f"a time bin of type {quoted(str(table.dtype))}")
    return {name: table[name] for name in table.dtype.names}


def _record(found: NpyHeader) -> np.dtype[Any] | None:
    """The type of the records of a 1-d structured array, None for another array."""
    fields = found.descr
    if not isinstance(fields, list) or not 0 < len(fields) <= MAX_FIELDS or len(found.shape) != 1:
        return None
    names, codes, offsets, size = list[str](), list[str](), list[int](), 0
    for field in fields:
        match field:
            case (str(name), str(code)) if name and NUMBER.fullmatch(code):
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

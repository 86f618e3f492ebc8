"""Reads a raw event file: .npy bytes to named columns of plain numbers.

Format: NumPy's .npy, versions 1.0 to 3.0 (numpy.org/doc/stable/reference/generated/
numpy.lib.format.html): magic, version, header length, a Python literal, then the array's bytes
or, for objects, a pickle.  Two contents are taken: a 0-d object array that holds a dict of
arrays, and a 1-d structured array.

Boundary: knows nothing of what the columns mean; NumPy's own loader of pickles is never used.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import MediaError
from engine.media import pickles
from engine.media.standins import Array

MAX_HEADER = 10_000
FIELD = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248])")

Column = npt.NDArray[Any] | int | float


def columns(data: bytes, name: str) -> dict[str, Column]:
    """The arrays and numbers of a .npy file by their names; MediaError that says what is wrong."""
    try:
        descr, shape, payload = _header(data)
        if descr == "|O" and shape == ():
            return _dict(payload)
        return _records(descr, shape, payload)
    except ValueError as error:
        raise MediaError(
            f"{name} is refused, as it holds {error}: give a .npy with a dict of plain arrays "
            "x, y, t and p."
        ) from error


def _header(data: bytes) -> tuple[object, object, bytes]:
    """(descr, shape, the bytes after the header)."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        raise ValueError("no .npy header")
    wide = data[6] > 1
    start = 12 if wide else 10
    length = int.from_bytes(data[8:start], "little")
    if length > MAX_HEADER or start + length > len(data):
        raise ValueError(f"a header of {length:,} bytes in a file of {len(data):,}")
    text = data[start : start + length].decode("utf-8" if data[6] > 2 else "latin-1")
    try:
        header = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError("a header that is not a Python literal") from error
    if not isinstance(header, dict):
        raise ValueError("a header that is not a dict")
    return header.get("descr"), header.get("shape"), data[start + length :]


def _dict(payload: bytes) -> dict[str, Column]:
    value = pickles.load(payload)
    if isinstance(value, Array):
        value = value.item()
    if not isinstance(value, dict):
        raise ValueError("an object that is no dict")
    arrays = {key: _column(item) for key, item in value.items()}
    return {key: item for key, item in arrays.items() if item is not None}


def _column(value: object) -> Column | None:
    """An array or a number; None for what carries neither, such as a list or a text."""
    if isinstance(value, Array):
        return value.numpy()
    return value if isinstance(value, int | float) else None


def _records(descr: object, shape: object, payload: bytes) -> dict[str, Column]:
    match descr, shape:
        case [list(fields), (int(count),)] if all(_is_field(field) for field in fields):
            dtype = np.dtype([(str(name), str(code)) for name, code in fields])
        case _:
            raise ValueError(f"an array of type {str(descr)[:60]!r} and shape {str(shape)[:40]}")
    if count < 0 or count * dtype.itemsize != len(payload):
        raise ValueError(f"{len(payload):,} bytes where its header claims {count:,} records")
    if not count:
        return {name: np.empty(0) for name in dtype.names or ()}
    table = np.frombuffer(payload, dtype)
    return {name: table[name] for name in dtype.names or ()}


def _is_field(field: object) -> bool:
    match field:
        case (str(name), str(code)):
            return bool(name) and FIELD.fullmatch(code) is not None
    return False

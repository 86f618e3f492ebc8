"""Stand-ins for the classes and functions that a pickle of plain arrays names.

numpy.ndarray and numpy.dtype called with arbitrary arguments can expose raw pointers.  These accept
only plain numbers, and check sizes against the bytes.

Format: the reductions of NumPy 1.x and 2.x for arrays, dtypes and scalars (`__reduce__` of each).

Boundary: values split from the pickle in, arrays and numbers out; executes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

PLAIN_NUMBER = re.compile(r"b1|[iu][1248]|f[248]")
RECORD = re.compile(r"V[0-9]{1,4}")
MAX_FIELDS = 64  # of a record
MAX_AXES = 32  # as NumPy 1.x


class RefusedError(ValueError):
    """The pickle holds something other than plain numbers and arrays of them."""


class Name(NamedTuple):
    """A stand-in for a function or class; `build` is called with the pickle's arguments."""

    path: str
    build: Callable[[tuple[object, ...]], object] | None


@dataclass(eq=False)
class Dtype:
    """A stand-in for numpy.dtype: its code, such as "u2", and its byte order.

    A record's code is "V" with its size; `fields` has the type and offset of each field.
    """

    code: str
    order: str = "="
    fields: dict[str, tuple[Dtype, int]] | None = None

    def set(self, state: object) -> int:
        """Accepts NumPy's (version, order, subdtype, names, fields, size, alignment, ...)."""
        match state:
            case (int(), str(order), None, None, None, *_) if order in ("<", ">", "=", "|"):
                self.order = order
            case (int(), "|", None, tuple(names), dict(fields), *_):
                self.fields = {name: _field(fields.get(name)) for name in _texts(names)}
            case _:
                raise RefusedError("an array of records inside a pickle")
        return 0

    def numpy(self) -> np.dtype[Any]:
        if self.fields is not None:
            return self._record(self.fields)
        if not PLAIN_NUMBER.fullmatch(self.code):
            raise RefusedError(f"an array of type {self.code[:20]!r}")
        return np.dtype(self.order + self.code)

    def _record(self, fields: dict[str, tuple[Dtype, int]]) -> np.dtype[Any]:
        """The type of a record of plain numbers, all of which lie inside it."""
        size = int(self.code[1:]) if RECORD.fullmatch(self.code) else 0
        # A record in a record is refused: types that hold each other would never end.
        if not fields or any(dtype.fields is not None for dtype, _ in fields.values()):
            raise RefusedError("records of anything but plain numbers")
        types = [dtype.numpy() for dtype, _ in fields.values()]
        offsets = [offset for _, offset in fields.values()]
        ends = [at + one.itemsize for at, one in zip(offsets, types, strict=True)]
        if min(offsets) < 0 or max(ends) > size:
            raise RefusedError(f"records of {size:,} bytes that their fields do not fit in")
        return np.dtype(
            {"names": [*fields], "formats": types, "offsets": offsets, "itemsize": size}
        )


@dataclass(eq=False)
class Array:
    """A stand-in for numpy.ndarray: its parts, which `numpy()` checks and combines."""

    shape: object = ()
    dtype: object = None
    fortran: bool = False
    data: object = b""

    def set(self, state: object) -> int:
        """Accepts NumPy's (version, shape, dtype, is_fortran, data); returns the bytes made from
        text."""
        match state:
            case (int(), tuple(shape), Dtype() as dtype, bool(fortran), data):
                self.shape, self.dtype, self.fortran = shape, dtype, fortran
            case _:
                raise RefusedError("an array whose parts are not those of an array")
        # Python 2 wrote bytes as text of code points 0 to 255.
        self.data = data.encode("latin-1") if isinstance(data, str) else data
        return len(data) if isinstance(data, str) else 0

    def item(self) -> object:
        """The only object of a 0-d object array; np.save writes a dict this way."""
        match self:
            case Array(shape=(), dtype=Dtype(code="O8" | "O4" | "O"), data=[value]):
                return value
        raise RefusedError("an array that does not hold exactly one dict")

    def items(self) -> list[object]:
        """The objects of a 1-d object array."""
        match self:
            case Array(shape=(int(count),), dtype=Dtype(code="O8" | "O4" | "O"), data=list(values)):
                if len(values) == count:
                    return values
        raise RefusedError("an array that is no list of objects")

    def numpy(self) -> npt.NDArray[Any]:
        """The array, if its dtype is plain numbers and its size matches its bytes."""
        raw, shape = _raw(self.data), self.shape
        if not isinstance(self.dtype, Dtype) or not isinstance(shape, tuple):
            raise RefusedError("an array that was never filled")
        if len(shape) > MAX_AXES or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise RefusedError("an array whose shape is not made of a few whole numbers")
        dtype, size = self.dtype.numpy(), math.prod(shape)
        if size * dtype.itemsize != len(raw):
            raise RefusedError(f"an array that claims {size:,} values in {len(raw):,} bytes")
        flat = np.frombuffer(raw, dtype) if size else np.empty(0, dtype)
        return flat.reshape(shape, order="F" if self.fortran else "C")


def _texts(names: tuple[object, ...]) -> list[str]:
    found = [name for name in names if isinstance(name, str)]
    if len(found) != len(names) or not 0 < len(names) <= MAX_FIELDS:
        raise RefusedError("records whose fields have no names, or too many")
    return found


def _field(value: object) -> tuple[Dtype, int]:
    match value:
        case (Dtype() as dtype, int(offset), *_):
            return dtype, offset
    raise RefusedError("records without the type of a field")


def _raw(data: object) -> bytes | bytearray:
    if not isinstance(data, bytes | bytearray):
        raise RefusedError("an array of Python objects")
    return data


def _reconstruct(arguments: tuple[object, ...]) -> Array:
    match arguments:
        case (Name(path="numpy.ndarray"), tuple(), bytes() | str()):
            return Array()
    raise RefusedError("an array of an unknown class")


def _from_buffer(arguments: tuple[object, ...]) -> Array:
    match arguments:
        case (bytes() | bytearray() as data, Dtype() as dtype, tuple(shape), str(order), *_):
            return Array(shape, dtype, order == "F", data)
    raise RefusedError("an array whose numbers lie outside the file")


def _dtype(arguments: tuple[object, ...]) -> Dtype:
    match arguments:
        case (str(code), *_):
            return Dtype(code)
    raise RefusedError("an array of an unknown type")


def _scalar(arguments: tuple[object, ...]) -> object:
    match arguments:
        case (Dtype() as dtype, data):
            raw = data.encode("latin-1") if isinstance(data, str) else data
            return Array((), dtype, False, raw).numpy().item()
    raise RefusedError("a number of an unknown type")


def _encode(arguments: tuple[object, ...]) -> bytes:
    match arguments:
        case (str(text), "latin1" | "latin-1"):
            return text.encode("latin-1")
    raise RefusedError("a call of _codecs.encode that does not make bytes")


def _bytes(arguments: tuple[object, ...]) -> bytes:
    if arguments:
        raise RefusedError("a call of bytes with arguments")
    return b""


BUILDERS: dict[str, Callable[[tuple[object, ...]], object] | None] = {
    "numpy.ndarray": None,
    "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct,
    "numpy._core.multiarray._reconstruct": _reconstruct,
    "numpy.core.multiarray.scalar": _scalar,
    "numpy._core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    # Protocols 0 to 2 have no bytes: Python writes text and a call that encodes it.
    "_codecs.encode": _encode,
    "__builtin__.bytes": _bytes,
    "builtins.bytes": _bytes,
}

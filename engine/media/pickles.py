"""Reads the pickles that NumPy writes for plain arrays, without executing them.

A pickle is a program: the standard unpickler imports and calls what it names.  This module walks
over the operations that `pickletools.genops` splits the bytes into.  A name must be one of NAMES,
and a call of it is only noted down (Call); `array` then combines the parts of a noted array, after
a check.  A file cannot reach any attribute, module or class of this process.  (numpy.ndarray and
numpy.dtype themselves, called with arbitrary arguments, can expose raw pointers.)

The cost is bounded by the file size: at most MAX_STEPS operations, and 64-bit integers.  Messages
never print a value from the pickle, because a few hundred bytes can describe tuples with a nearly
endless repr.

Formats: Python's pickle protocols 3 to 5 (docs.python.org/3/library/pickletools.html), and the
reductions of NumPy 1.x and 2.x for arrays, dtypes and scalars (`__reduce__` of each).
"""

import io
import math
import pickletools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.plain_files import reason
from engine.quoting import whole

MAX_STEPS = 1_000_000
MAX_BITS = 64
MAX_FIELDS = 64  # of a record
MAX_AXES = 32  # as NumPy 1.x
_NUMBER = re.compile(r"b1|[iu][1248]|f[248]")
_RECORD = re.compile(r"V[0-9]{1,4}")
_OF_NUMPY = ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
NAMES = {
    *("numpy.ndarray", "numpy.dtype"),
    *(f"{core}.{name}" for core in ("numpy.core", "numpy._core") for name in _OF_NUMPY),
}
# Operations whose operand, already decoded by pickletools, is the value.
_LITERALS = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
# How many values an operation takes from the stack.
_TAKEN = {
    **{"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2},
    **{"STACK_GLOBAL": 2, "REDUCE": 2, "BUILD": 1},
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


class RefusedError(ValueError):
    """The pickle holds something other than plain numbers and arrays of them."""


@dataclass(eq=False)
class Call:
    """A function or class that a pickle names, without its module; then the call that it asks for,
    and the state that it sets.  Nothing is called."""

    name: str
    arguments: object = None
    state: object = None

    def parts(self) -> tuple[object, object, object, object]:
        """(shape, type, order, data) of an array."""
        match self:
            case Call("_reconstruct", _, (int(), shape, dtype, bool(fortran), data)):
                return shape, dtype, "F" if fortran else "C", data
            case Call("_frombuffer", (data, dtype, shape, "C" | "F" as order, *_)):
                return shape, dtype, order, data
            case Call("scalar", (dtype, data)):
                return (), dtype, "C", data
        raise RefusedError("a call that makes no array of numbers")


def objects(value: object) -> dict[str, object] | list[object]:
    """A dict, as np.save writes it in an array without an axis or plainly, or a list of objects."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Call):
        match value.parts():
            case (), Call("dtype", ("O" | "O4" | "O8", *_)), _, [dict(found)]:
                return found
            case (int(size),), Call("dtype", ("O" | "O4" | "O8", *_)), _, list(values):
                if size == len(values):
                    return values
    raise RefusedError("an object that is no dict and no list of objects")


def array(value: object) -> npt.NDArray[Any]:
    """An array, if its type is plain numbers or records of them and its size matches its bytes."""
    if not isinstance(value, Call):
        raise RefusedError("an object that is no array")
    shape, kind, order, raw = value.parts()
    if not isinstance(raw, bytes | bytearray):
        raise RefusedError("an array of Python objects")
    if (
        not isinstance(shape, tuple)
        or len(shape) > MAX_AXES
        or not all(isinstance(n, int) and n >= 0 for n in shape)
    ):
        raise RefusedError("an array whose shape is not made of a few whole numbers")
    dtype, size = _dtype(kind), math.prod(shape)
    if size * dtype.itemsize != len(raw):
        raise RefusedError(f"an array that claims {whole(size)} values in {len(raw):,} bytes")
    flat = np.frombuffer(raw, dtype) if size else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if order == "F" else "C")


def _dtype(value: object) -> np.dtype[Any]:
    """A number, or a record of numbers that all lie inside it.  NumPy's state of a type is
    (version, byte order, subdtype, names, fields, size, ...)."""
    match value:
        case Call("dtype", (str(code), *_), (int(), "<" | ">" | "|" as end, None, None, None, *_)):
            if _NUMBER.fullmatch(code):
                return np.dtype(end + code)
        case Call("dtype", (str(code), *_), (int(), "|", None, tuple(names), dict(fields), *_)):
            places = [fields.get(name) for name in names if isinstance(name, str)]
            if _RECORD.fullmatch(code) and 0 < len(places) == len(names) <= MAX_FIELDS:
                return _record(list(names), places, int(code[1:]))
    raise RefusedError("an array of anything but plain numbers")


def _record(names: list[Any], places: list[object], size: int) -> np.dtype[Any]:
    types, offsets = list[np.dtype[Any]](), list[int]()
    for place in places:
        match place:
            # A record in a record is refused: types that hold each other would never end.
            case (Call("dtype", (str(code), *_)) as kind, int(offset), *_) if code[:1] != "V":
                types.append(_dtype(kind))
                offsets.append(offset)
                if 0 <= offset <= size - types[-1].itemsize:
                    continue
        raise RefusedError(f"records of {size:,} bytes that their fields do not fit in")
    return np.dtype({"names": names, "formats": types, "offsets": offsets, "itemsize": size})


def load(data: bytes, start: int = 0) -> object:
    """The value of the pickle at offset `start`; RefusedError for all but arrays, lists, dicts."""
    file = io.BytesIO(data)  # shares the bytes
    file.seek(start)
    try:
        return _load(file)
    except RefusedError:
        raise
    except LookupError as error:
        raise RefusedError("an operation without its values") from error
    except (ValueError, OverflowError, DeprecationWarning) as error:
        # An invalid escape in a text warns, which raises where warnings are errors.
        raise RefusedError(f"a damaged pickle ({reason(error)})") from error


def _load(file: io.BytesIO) -> object:
    stack, marked, memo = list[Any](), list[list[Any]](), dict[int, object]()
    for number, (operation, operand_, _) in enumerate(pickletools.genops(file)):
        operand: Any = operand_
        if number >= MAX_STEPS:
            raise RefusedError(f"a pickle of more than {MAX_STEPS:,} operations")
        name = operation.name
        values = list[Any]()
        if name in ("TUPLE", "APPENDS", "SETITEMS"):
            values, stack = stack, marked.pop()
        elif name in _TAKEN:
            values = [stack.pop() for _ in range(_TAKEN[name])][::-1]
        match name:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                return stack.pop()
            case "MARK":
                marked.append(stack)
                stack = []
            case "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                memo[len(memo) if name == "MEMOIZE" else operand] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[operand])
            case "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(values))
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "APPEND" | "APPENDS" if isinstance(stack[-1], list):
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS" if isinstance(stack[-1], dict):
                # Text only: hashing nested tuples that share parts can take forever.
                if not all(isinstance(key, str) for key in values[::2]):
                    raise RefusedError("a dict with a key that is no text")
                stack[-1].update(zip(values[::2], values[1::2], strict=True))
            case "GLOBAL" | "STACK_GLOBAL":
                module, called = values or operand.split(" ", 1)
                if not isinstance(called, str) or not isinstance(module, str):
                    raise RefusedError("a name that is not text")
                path = f"{module[:80]}.{called[:80]}"
                if path not in NAMES:
                    raise RefusedError(f"the name {path[:80]!r}, which is no part of an array")
                stack.append(Call(path.rpartition(".")[2]))
            case "REDUCE" if isinstance(values[0], Call) and values[0].arguments is None:
                stack.append(Call(values[0].name, values[1]))
            case "BUILD" if isinstance(stack[-1], Call):
                stack[-1].state = values[0]
            case _ if name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            case _ if name in _LITERALS:
                if isinstance(operand, int) and operand.bit_length() > MAX_BITS:
                    raise RefusedError(f"a whole number of {operand.bit_length():,} bits")
                stack.append(operand)
            case _:
                raise RefusedError(f"the pickle operation {name}")
    raise RefusedError("a pickle without an end")

"""Reads the pickles that NumPy writes for plain arrays, without executing them.

A pickle is a program: the standard unpickler imports and calls what it names.  This module is a
small stack machine over `pickletools.genops`, which only splits the bytes into operations.  A name
must be one of NAMES, and a call makes a stand-in, `Array` or `Dtype`; a file cannot reach any
attribute, module or class of this process.  (numpy.ndarray and numpy.dtype themselves, called with
arbitrary arguments, can expose raw pointers.)

The cost is bounded by the file size: at most MAX_STEPS operations, 64-bit integers, and no more
bytes made from text than the pickle has.  Messages never print a value from the pickle, because a
few hundred bytes can describe tuples with a nearly endless repr.

Formats: Python's pickle protocols 0 to 5 (docs.python.org/3/library/pickletools.html), and the
reductions of NumPy 1.x and 2.x for arrays, dtypes and scalars (`__reduce__` of each).
"""

from __future__ import annotations

import io
import math
import pickletools
import re
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.plain_files import reason

MAX_STEPS = 1_000_000
MAX_BITS = 64
MAX_FIELDS = 64  # of a record
MAX_AXES = 32  # as NumPy 1.x
PLAIN_NUMBER = re.compile(r"b1|[iu][1248]|f[248]")
RECORD = re.compile(r"V[0-9]{1,4}")
_OBJECTS = ("O", "O4", "O8")
_OF_NUMPY = ("multiarray._reconstruct", "multiarray.scalar", "numeric._frombuffer")
NAMES = {
    *("numpy.ndarray", "numpy.dtype"),
    *(f"{core}.{name}" for core in ("numpy.core", "numpy._core") for name in _OF_NUMPY),
    # Protocols 0 to 2 have no bytes: Python writes text and a call that encodes it.
    *("_codecs.encode", "__builtin__.bytes", "builtins.bytes"),
}
# Operations whose operand, already decoded by pickletools, is the value.
_LITERALS = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class RefusedError(ValueError):
    """The pickle holds something other than plain numbers and arrays of them."""


@dataclass(frozen=True)
class Name:
    """A function or class that a pickle names, without its module."""

    text: str


@dataclass(eq=False)
class Dtype:
    """Stands for numpy.dtype: its code, such as "u2", and its byte order.  A record's code is "V"
    with its size; `fields` has (type, offset, ...) of each field."""

    code: str
    order: str = "="
    fields: dict[str, object] | None = None

    def set(self, state: object) -> None:
        """Accepts NumPy's (version, order, subdtype, names, fields, size, alignment, ...)."""
        match state:
            case (int(), "<" | ">" | "=" | "|" as order, None, None, None, *_):
                self.order = order
            case (int(), "|", None, tuple(names), dict(fields), *_):
                # Text only, as for the keys of a dict.
                texts = [name for name in names if isinstance(name, str)]
                if len(texts) != len(names) or not 0 < len(names) <= MAX_FIELDS:
                    raise RefusedError("records whose fields have no names, or too many")
                self.fields = {name: fields.get(name) for name in texts}
            case _:
                raise RefusedError("an array of records inside a pickle")

    def numpy(self) -> np.dtype[Any]:
        """The type, if it is a number, or a record of numbers that all lie inside it."""
        if self.fields is None:
            if not PLAIN_NUMBER.fullmatch(self.code):
                raise RefusedError(f"an array of type {self.code[:20]!r}")
            return np.dtype(self.order + self.code)
        size = int(self.code[1:]) if RECORD.fullmatch(self.code) else 0
        types, offsets = list[np.dtype[Any]](), list[int]()
        for field in self.fields.values():
            match field:
                # A record in a record is refused: types that hold each other would never end.
                case (Dtype(fields=None) as dtype, int(offset), *_):
                    types.append(dtype.numpy())
                    offsets.append(offset)
                case _:
                    raise RefusedError("records of anything but plain numbers")
        if not all(0 <= at <= size - one.itemsize for at, one in zip(offsets, types, strict=True)):
            raise RefusedError(f"records of {size:,} bytes that their fields do not fit in")
        return np.dtype(
            {"names": [*self.fields], "formats": types, "offsets": offsets, "itemsize": size}
        )


@dataclass(eq=False)
class Array:
    """Stands for numpy.ndarray: its parts, which `numpy` or `objects` checks and combines."""

    shape: object = ()
    dtype: object = None
    fortran: bool = False
    data: object = b""

    def set(self, state: object) -> None:
        """Accepts NumPy's (version, shape, dtype, is_fortran, data)."""
        match state:
            case (int(), tuple(shape), Dtype() as dtype, bool(fortran), data):
                self.shape, self.dtype, self.fortran, self.data = shape, dtype, fortran, data
            case _:
                raise RefusedError("an array whose parts are not those of an array")

    def objects(self) -> list[object]:
        """The objects of an array of them; np.save writes a dict as a single one, of no axis."""
        match self:
            case Array(shape=() | (int(),) as shape, dtype=Dtype(code=code), data=list(values)):
                if code in _OBJECTS and (*shape, 1)[0] == len(values):
                    return values
        raise RefusedError("an array that is no dict and no list of objects")

    def numpy(self) -> npt.NDArray[Any]:
        """The array, if its dtype is plain numbers and its size matches its bytes."""
        raw, shape = self.data, self.shape
        if not isinstance(raw, bytes | bytearray):
            raise RefusedError("an array of Python objects")
        if not isinstance(self.dtype, Dtype) or not isinstance(shape, tuple):
            raise RefusedError("an array that was never filled")
        if len(shape) > MAX_AXES or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise RefusedError("an array whose shape is not made of a few whole numbers")
        dtype, size = self.dtype.numpy(), math.prod(shape)
        if size * dtype.itemsize != len(raw):
            raise RefusedError(f"an array that claims {size:,} values in {len(raw):,} bytes")
        flat = np.frombuffer(raw, dtype) if size else np.empty(0, dtype)
        return flat.reshape(shape, order="F" if self.fortran else "C")


def _called(function: object, arguments: object) -> object:
    """The result of a call; the functions are those of NAMES."""
    match function, arguments:
        case Name("_reconstruct"), (Name("ndarray"), tuple(), bytes() | str()):
            return Array()
        case Name("_frombuffer"), (
            bytes() | bytearray() as data,
            Dtype() as dtype,
            tuple(shape),
            str(order),
            *_,
        ):
            return Array(shape, dtype, order == "F", data)
        case Name("dtype"), (str(code), *_):
            return Dtype(code)
        case Name("scalar"), (Dtype() as dtype, data):
            raw = data.encode("latin-1") if isinstance(data, str) else data
            return Array((), dtype, False, raw).numpy().item()
        case Name("encode"), (str(text), "latin1" | "latin-1"):
            return text.encode("latin-1")
        case Name("bytes"), ():
            return b""
    raise RefusedError("a call that makes no array of numbers")


class _Machine:
    """The pickle machine's stack, marks and memo, with the few operations that arrays need."""

    def __init__(self, budget: int) -> None:
        self.budget = budget  # bytes that may still be made from text; a file uses each text once
        self.stack: list[object] = []
        self.marked: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def step(self, operation: str, operand: Any) -> None:
        """IndexError for an operation without its values, KeyError for an unknown reference."""
        stack = self.stack
        if operation in _LITERALS:
            if isinstance(operand, int) and operand.bit_length() > MAX_BITS:
                raise RefusedError(f"a whole number of {operand.bit_length():,} bits")
            stack.append(operand)
            return
        match operation:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "NONE" | "NEWTRUE" | "NEWFALSE" | "EMPTY_TUPLE":
                stack.append(_CONSTANTS[operation])
            case "MARK":
                self.marked.append(stack)
                self.stack = []
            case "PUT" | "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
                self.memo[len(self.memo) if operand is None else operand] = stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(self.memo[operand])
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                values = [stack.pop() for _ in range(_TUPLES[operation])]
                stack.append(tuple(reversed(values)))
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_DICT":
                stack.append({})
            case "TUPLE" | "LIST" | "DICT":
                values = self.since_mark()
                made = {"TUPLE": tuple(values), "LIST": values}
                self.stack.append(made.get(operation, {}))
                if operation == "DICT":
                    self.fill(values, dict)
            case "APPEND":
                self.fill([stack.pop()], list)
            case "APPENDS":
                self.fill(self.since_mark(), list)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                self.fill([key, value], dict)
            case "SETITEMS":
                self.fill(self.since_mark(), dict)
            case "GLOBAL":
                self.name(*operand.split(" ", 1))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                self.name(module, name)
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                result = _called(function, arguments)
                self.spend(result)
                stack.append(result)
            case "BUILD":
                self.build(stack.pop())
            case _:
                raise RefusedError(f"the pickle operation {operation}")

    def since_mark(self) -> list[object]:
        values, self.stack = self.stack, self.marked.pop()
        return values

    def fill(self, values: list[object], kind: type) -> None:
        """Adds values to the list, or keys and values to the dict, on top of the stack."""
        target = self.stack[-1]
        if not isinstance(target, kind):
            raise RefusedError(f"a value for something that is no {kind.__name__}")
        if isinstance(target, list):
            target.extend(values)
        elif isinstance(target, dict):
            keys = values[::2]
            # Text only: hashing nested tuples that share parts can take forever.
            if len(values) % 2 or not all(isinstance(key, str) for key in keys):
                raise RefusedError("a dict whose keys are not text")
            target.update(zip(keys, values[1::2], strict=True))

    def name(self, module: object, name: object) -> None:
        if not isinstance(name, str) or not isinstance(module, str):
            raise RefusedError("a name that is not text")
        if f"{module}.{name}" not in NAMES:
            path = f"{module[:80]}.{name[:80]}"
            raise RefusedError(f"the name {path[:80]!r}, which is no part of an array")
        self.stack.append(Name(name.rpartition(".")[2]))

    def build(self, state: object) -> None:
        target = self.stack[-1]
        if not isinstance(target, Array | Dtype):
            raise RefusedError("a state for something that has none")
        target.set(state)
        if isinstance(target, Array) and isinstance(target.data, str):
            # Python 2 wrote bytes as text of code points 0 to 255.
            target.data = target.data.encode("latin-1")
            self.spend(target.data)

    def spend(self, made: object) -> None:
        self.budget -= len(made) if isinstance(made, bytes) else 0
        if self.budget < 0:
            raise RefusedError("text that makes more bytes than the file has")


def load(data: bytes, start: int = 0) -> object:
    """The value of the pickle at offset `start`; RefusedError for anything else."""
    file = io.BytesIO(data)  # shares the bytes
    file.seek(start)
    return load_stream(file, len(data))


def load_stream(file: BinaryIO | io.BufferedReader, size: int) -> object:
    """As `load`, from where the file stands; only what the operations need is read."""
    machine = _Machine(size)
    try:
        for number, (operation, operand, _) in enumerate(pickletools.genops(file)):
            if number >= MAX_STEPS:
                raise RefusedError(f"a pickle of more than {MAX_STEPS:,} operations")
            machine.step(operation.name, operand)
        return machine.stack.pop()
    except RefusedError:
        raise
    except LookupError as error:
        raise RefusedError("an operation without its values") from error
    except (ValueError, OverflowError, DeprecationWarning) as error:
        # An invalid escape in a text warns, which raises where warnings are errors.
        raise RefusedError(f"a damaged pickle ({reason(error)})") from error

"""Reads the pickles that NumPy writes for plain arrays, without executing them.

A pickle is a program: the standard unpickler imports and calls what it names.  This module is a
small stack machine over `pickletools.genops`, which only splits the bytes into operations.  Names
are looked up in one fixed table of stand-ins; a file cannot reach any attribute, module or class of
this process, so it cannot call, allocate or change anything.

The cost is bounded by the file size: at most MAX_STEPS operations, 64-bit integers, and no more
bytes made from text than the pickle has.  Messages never print a value from the pickle, because a
few hundred bytes can describe tuples with a nearly endless repr.

Format: Python's pickle protocols 0 to 5 (docs.python.org/3/library/pickletools.html).

Boundary: bytes in, Python values and `Array` stand-ins out; knows neither .npy nor events.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any, BinaryIO

from engine.media.standins import BUILDERS, Array, Dtype, Name, RefusedError
from engine.plain_files import reason

MAX_STEPS = 1_000_000
MAX_BITS = 64

# Operations whose operand, already decoded by pickletools, is the value.
_LITERALS = frozenset(
    {
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("STRING", "BINSTRING", "SHORT_BINSTRING"),
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"),
    }
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Machine:
    """The pickle machine's stack, marks and memo, with the few operations that arrays need."""

    def __init__(self, budget: int) -> None:
        self.budget = budget  # bytes that calls may still make from text
        self.stack: list[object] = []
        self.marked: list[list[object]] = []
        self.memo: dict[int, object] = {}

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        if not self.stack:
            raise RefusedError("an operation without its values")
        return self.stack.pop()

    def top(self) -> object:
        if not self.stack:
            raise RefusedError("an operation without its values")
        return self.stack[-1]

    def pop_mark(self) -> list[object]:
        if not self.marked:
            raise RefusedError("an operation without its values")
        values, self.stack = self.stack, self.marked.pop()
        return values

    def step(self, operation: str, operand: Any) -> None:
        if operation in _LITERALS:
            self.push(_literal(operand))
        elif operation in _CONSTANTS:
            self.push(_CONSTANTS[operation])
        elif operation in _TUPLES:
            values = [self.pop() for _ in range(_TUPLES[operation])]
            self.push(tuple(reversed(values)))
        elif operation in _STEPS:
            _STEPS[operation](self, operand)
        else:
            raise RefusedError(f"the pickle operation {operation}")

    def mark(self, _: object) -> None:
        self.marked.append(self.stack)
        self.stack = []

    def name(self, path: str) -> None:
        if path not in BUILDERS:
            raise RefusedError(f"the name {path[:80]!r}, which is no part of an array")
        self.push(Name(path, BUILDERS[path]))

    def stack_name(self, _: object) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise RefusedError("a name that is not text")
        self.name(f"{module}.{name}")

    def reduce(self, _: object) -> None:
        arguments, function = self.pop(), self.pop()
        if not isinstance(function, Name) or function.build is None:
            raise RefusedError("a call of something that may not be called")
        if not isinstance(arguments, tuple):
            raise RefusedError("a call without arguments")
        value = function.build(arguments)
        self.spend(len(value) if isinstance(value, bytes) else 0)
        self.push(value)

    def spend(self, made: int) -> None:
        """Counts bytes made from text; a normal file uses each text once."""
        self.budget -= made
        if self.budget < 0:
            raise RefusedError("text that makes more bytes than the file has")

    def build(self, _: object) -> None:
        state, target = self.pop(), self.top()
        if not isinstance(target, Array | Dtype):
            raise RefusedError("a state for something that has none")
        self.spend(target.set(state))

    def put(self, index: int | None) -> None:
        self.memo[len(self.memo) if index is None else index] = self.top()

    def get(self, index: int) -> None:
        if index not in self.memo:
            raise RefusedError("a reference to nothing")
        self.push(self.memo[index])

    def append(self, values: list[object]) -> None:
        target = self.top()
        if not isinstance(target, list):
            raise RefusedError("a value added to something that is no list")
        target.extend(values)

    def set_items(self, values: list[object]) -> None:
        target = self.top()
        if not isinstance(target, dict) or len(values) % 2:
            raise RefusedError("a key set in something that is no dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            # Text only: hashing nested tuples that share parts can take forever.
            if not isinstance(key, str):
                raise RefusedError("a dict whose keys are not text")
            target[key] = value

    def set_one(self, _: object) -> None:
        value, key = self.pop(), self.pop()
        self.set_items([key, value])

    def new_dict(self, _: object) -> None:
        values = self.pop_mark()
        self.push({})
        self.set_items(values)


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "MARK": _Machine.mark,
    "GLOBAL": lambda machine, operand: machine.name(operand.replace(" ", ".", 1)),
    "STACK_GLOBAL": _Machine.stack_name,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "TUPLE": lambda machine, _: machine.push(tuple(machine.pop_mark())),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "LIST": lambda machine, _: machine.push(machine.pop_mark()),
    "APPEND": lambda machine, _: machine.append([machine.pop()]),
    "APPENDS": lambda machine, _: machine.append(machine.pop_mark()),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "DICT": _Machine.new_dict,
    "SETITEM": _Machine.set_one,
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_mark()),
}


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
    except RefusedError:
        raise
    except (ValueError, OverflowError, DeprecationWarning) as error:
        # An invalid escape in a text warns, which raises where warnings are errors.
        raise RefusedError(f"a damaged pickle ({reason(error)})") from error
    return machine.pop()


def _literal(operand: object) -> object:
    """The operand, unless it is an integer that no array or sensor can have."""
    if isinstance(operand, int) and operand.bit_length() > MAX_BITS:
        raise RefusedError(f"a whole number of {operand.bit_length():,} bits")
    return operand

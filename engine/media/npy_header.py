"""Reads the header of a .npy file: the array's type and shape, and where its bytes begin.

Format: NumPy's .npy, versions 1.0 to 3.0 (numpy.org/doc/stable/reference/generated/
numpy.lib.format.html): magic, version, header length, then a Python literal.  NumPy writes a dict
of strings, integers, booleans, lists and tuples; only these are accepted, by a small tokenizer with
limits.  Python's own parser is not used: it warns on stderr and can overflow the stack.

Boundary: bytes in, plain values out; knows no columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_BYTES = 10_000
MAX_DEPTH = 8
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>[ub]?'(?:[^'\\]|\\.){0,256}'|[ub]?"(?:[^"\\]|\\.){0,256}")"""
    r"""|(?P<number>[0-9]{1,18})L?|(?P<word>True|False|None)|(?P<mark>[][(){},:]))""",
    re.DOTALL,
)
_WORDS = {"True": True, "False": False, "None": None}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class NpyHeader:
    """`descr` and `shape` as in the file; the array's bytes begin at offset `start`."""

    descr: object
    shape: object
    start: int


def read(data: bytes) -> NpyHeader:
    """The header of a .npy file; ValueError with a noun phrase that names the problem."""
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        raise ValueError("no .npy header")
    start = 12 if data[6] > 1 else 10
    length = int.from_bytes(data[8:start], "little")
    if length > MAX_BYTES or start + length > len(data):
        raise ValueError(f"a header of {length:,} bytes in a file of {len(data):,}")
    text = data[start : start + length].decode("utf-8" if data[6] > 2 else "latin-1")
    value = _Literal(text.strip()).whole()
    if not isinstance(value, dict):
        raise ValueError("a header that is not a dict")
    return NpyHeader(value.get("descr"), value.get("shape"), start + length)


class _Literal:
    """A Python literal, token by token."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.at = 0

    def whole(self) -> object:
        value = self.value(0)
        if self.at != len(self.tokens):
            raise ValueError("a header that is not a Python literal")
        return value

    def next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise ValueError("a header that is not a Python literal")
        self.at += 1
        return self.tokens[self.at - 1]

    def accepts(self, mark: str) -> bool:
        """Whether the next token is this mark; if so, it is consumed."""
        found = self.at < len(self.tokens) and self.tokens[self.at] == ("mark", mark)
        self.at += found
        return found

    def value(self, depth: int) -> object:
        kind, text = self.next()
        if kind == "text":
            return text.lstrip("ub")[1:-1]  # escapes are kept: no expected name has any
        if kind == "number":
            return int(text)
        if kind == "word":
            return _WORDS[text]
        if text not in _CLOSING or depth >= MAX_DEPTH:
            raise ValueError("a header that is not a Python literal")
        return self.mapping(depth) if text == "{" else self.series(_CLOSING[text], depth)

    def series(self, closing: str, depth: int) -> object:
        """A list, a tuple, or the one value between round brackets."""
        values, comma = list[object](), False
        while not self.accepts(closing):
            if values and not comma:
                raise ValueError("a header that is not a Python literal")
            values.append(self.value(depth + 1))
            comma = self.accepts(",")
        if closing == "]":
            return values
        return values[0] if len(values) == 1 and not comma else tuple(values)

    def mapping(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        comma = True
        while not self.accepts("}"):
            key = self.value(depth + 1)
            if not comma or not isinstance(key, str) or not self.accepts(":"):
                raise ValueError("a header that is not a Python literal")
            found[key] = self.value(depth + 1)
            comma = self.accepts(",")
        return found


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ValueError("a header that is not a Python literal")
        yield found.lastgroup, found[found.lastgroup]
        at = found.end()

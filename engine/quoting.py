"""Formats values for error messages: escaped, and at most 80 characters long.

Boundary: text only; imports nothing of the project, so that every module may use it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

MAX_CHARS = 80
MAX_NAMES = 20
MAX_LINE = 200  # of an exception
_MAX_BITS = 256  # of a whole number that is written out; Python refuses to print very long ones


class _Short(reprlib.Repr):
    """repr() that stops early in long and deep values."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxstring = self.maxother = MAX_CHARS
        self.maxlist = self.maxtuple = self.maxset = self.maxdict = 8

    def repr_str(self, x: str, level: int) -> str:
        return repr(x[: MAX_CHARS + 1])

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= _MAX_BITS else "a very long number"


def quoted(value: object) -> str:
    """repr(value) in at most 80 characters; for a huge integer the text "a very long number"."""
    return cut(_Short().repr(value))


def listed(names: Iterable[str]) -> str:
    """The first 20 names, and how many more there are."""
    every = [cut(name) for name in names]
    rest = f" and {len(every) - MAX_NAMES:,} more" if len(every) > MAX_NAMES else ""
    return ", ".join(every[:MAX_NAMES]) + rest


def number(value: float) -> str:
    """A number with separators in at most 80 characters; a huge one is "a very long number"."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "a very long number"
    return cut(f"{value:,}")


def counted(count: int, noun: str) -> str:
    """A number and what it counts, as in "1 event" and "2,000 events"."""
    return f"{number(count)} {noun}{'' if count == 1 else 's'}"


def cut(text: str) -> str:
    """The text itself, or its first 77 characters and "..."."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, to be used inside a sentence."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:MAX_LINE].rstrip(" :.")


def printable(text: str) -> str:
    """The text with control characters replaced, so that it cannot control a terminal or page."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def shown(path: object, most: int = MAX_CHARS) -> str:
    """A path in at most `most` characters, without control characters; its end is kept."""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(path))
    return text if len(text) <= most else f"...{text[3 - most :]}"

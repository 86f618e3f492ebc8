"""JSON lines: one object per line, appended whole and read back past what a crash tore.

Boundary: bytes and objects; what the objects mean is the store's.  A line is written by as few
system calls as the system allows and is with the system when append() returns: a killed process
loses nothing that was appended.  It is forced to the disk at most once in SYNC_S seconds, which a
power failure may cost.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SYNC_S = 1.0


class Appender:
    """A file of lines, open for appending at its end.  Not for two writers at once."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        self._descriptor = os.open(path, flags, 0o666)
        self._synced = time.monotonic()

    def cut_torn_line(self) -> int:
        """Drops what follows the last end of a line; how many bytes that were."""
        size = os.fstat(self._descriptor).st_size
        keep = _end_of_lines(self._descriptor, size)
        if keep < size:
            os.ftruncate(self._descriptor, keep)
        return size - keep

    def end_torn_line(self) -> None:
        """Ends what a crash left without an end, where another writer may be at work too."""
        size = os.fstat(self._descriptor).st_size
        if _end_of_lines(self._descriptor, size) < size:
            os.write(self._descriptor, b"\n")

    def append(self, value: dict[str, Any]) -> None:
        """One more line; OSError if the disk refuses it, and then nothing of it stays."""
        data = json.dumps(value, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        before = os.fstat(self._descriptor).st_size
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            self._sync()
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise

    def _sync(self) -> None:
        now = time.monotonic()
        if now - self._synced >= SYNC_S:
            os.fsync(self._descriptor)
            self._synced = now

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)
        os.close(self._descriptor)


def _end_of_lines(descriptor: int, size: int) -> int:
    """Where the last whole line ends; reads backwards, because a file may be large."""
    step, end = 2**16, size
    while end > 0:
        start = max(0, end - step)
        os.lseek(descriptor, start, os.SEEK_SET)
        found = os.read(descriptor, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


@dataclass
class Damage:
    """What a reader had to leave out."""

    torn: bool = False  # the last line has no end
    broken: list[int] = field(default_factory=list)  # numbers of lines that are no JSON object


def read(path: Path, damage: Damage | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(byte offset, object) of every whole line, in order; none for a file that is not there."""
    noted = damage if damage is not None else Damage()
    offset = 0
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith(b"\n"):
                noted.torn = True
                return
            value = _object(line)
            if value is None:
                noted.broken.append(number)
            else:
                yield offset, value
            offset += len(line)


def at(path: Path, offset: int) -> dict[str, Any] | None:
    """The object of the line that begins at this byte, or None if none does."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return _object(stream.readline())


def count(path: Path) -> int:
    """How many whole lines there are."""
    total = 0
    with contextlib.suppress(FileNotFoundError), path.open("rb") as stream:
        while piece := stream.read(2**20):
            total += piece.count(b"\n")
    return total


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None

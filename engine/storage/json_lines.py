"""JSON lines: one object per line; reading skips lines that a crash left incomplete.

append() passes the line to the system before it returns, so a killed process loses nothing, and a
power failure at most the last SYNC_S seconds.  A writer locks its file itself, not a second one,
which could be deleted; the system ends the lock with the process.  Links are not followed.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from engine import plain_files, quoting

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

T = TypeVar("T")
SYNC_S = 1.0
PATIENCE_S = 0.5  # `held` takes the lock for an instant
_PAUSE_S = 0.02
_FAR = 2**31 - 2  # Windows keeps others from a locked byte: this one is behind the usual lines
MAX_LINE = 64 * 2**20  # bytes; a result of 4,096 tokens has about 200,000
MAX_SKIPPED = 2**30  # bytes of too long lines that a reader skips before it stops
REASONS = 3  # faults of a file that are described
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Appender:
    """A file of lines, open for appending.  Only one writer at a time: lock() excludes others."""

    def __init__(self, path: Path) -> None:
        self._path, self._size = path, 0
        self._descriptor = plain_files.open_descriptor(path, _APPEND, links=False)
        self._synced = time.monotonic()

    def lock(self, patience_s: float = PATIENCE_S) -> bool:
        """Whether the file is locked for this writer until close(), in this process too."""
        end = time.monotonic() + patience_s
        while not _take(self._descriptor):
            if time.monotonic() > end:
                return False
            time.sleep(_PAUSE_S)
        self._size = os.fstat(self._descriptor).st_size
        return self.intact()  # it may have been replaced while the lock was awaited

    def intact(self) -> bool:
        """Whether the locked file is still at its path, with the length that this writer left."""
        with contextlib.suppress(OSError):
            there, opened = self._path.lstat(), os.fstat(self._descriptor)
            return os.path.samestat(there, opened) and opened.st_size == self._size
        return False

    def cut_torn_line(self) -> int:
        """Drops an incomplete last line; returns the number of bytes dropped."""
        size = os.fstat(self._descriptor).st_size
        keep = _end_of_lines(self._descriptor, size)
        if keep < size:
            os.ftruncate(self._descriptor, keep)
        self._size = keep
        return size - keep

    def end_torn_line(self) -> None:
        """Adds a newline after an incomplete last line, if another writer may be active."""
        size = os.fstat(self._descriptor).st_size
        if _end_of_lines(self._descriptor, size) < size:
            os.write(self._descriptor, b"\n")

    def append(self, value: dict[str, Any]) -> None:
        """Appends a line; after an OSError nothing of it remains in the file.  Half a surrogate
        pair is written as a question mark."""
        text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
        data = text.encode(errors="replace") + b"\n"
        before, length = os.fstat(self._descriptor).st_size, len(data)
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            if (now := time.monotonic()) - self._synced >= SYNC_S:
                os.fsync(self._descriptor)
                self._synced = now
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise
        self._size = before + length

    def close(self) -> None:
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            os.fsync(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1


def held(path: Path) -> bool:
    with contextlib.suppress(OSError):
        descriptor = plain_files.open_descriptor(path, os.O_RDWR, links=False)
        try:
            return not _take(descriptor)
        finally:
            os.close(descriptor)
    return False


def _take(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _end_of_lines(descriptor: int, size: int) -> int:
    """The end of the last complete line; reads backwards, because a file may be large."""
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
class DamagedLines:
    """The lines that a reader skipped in a file of `total` complete lines."""

    torn: bool = False  # the last line has no end
    total: int = 0
    broken: list[int] = field(default_factory=list)  # numbers of lines that cannot be used
    reasons: list[str] = field(default_factory=list)  # why, of the first REASONS of them

    def add(self, number: int, reason: str) -> None:
        self.broken.append(number)
        if len(self.reasons) < REASONS:
            self.reasons.append(f"line {number:,}: {reason}")

    def clear(self) -> None:
        self.torn, self.total = False, 0
        self.broken.clear()
        self.reasons.clear()

    def summary(self, name: str) -> str:
        """A clause about the lines of file `name` that could not be used, or ""."""
        if not self.broken:
            return ""
        more = len(self.broken) - len(self.reasons)
        words = "; ".join([*self.reasons, *([f"and {more:,} more"] if more else [])])
        of = quoting.count(self.total, "line")
        return f"{len(self.broken):,} of {of} of {name} cannot be used ({words})"


def read(
    path: Path, parse: Callable[[bytes], T], damage: DamagedLines | None = None
) -> Iterator[tuple[int, T]]:
    """(byte offset, parsed object) of every complete line, in order.  Lines for which `parse`
    raises one of JSON_FAULTS are skipped and noted.  A missing file has no lines; OSError if it is
    not a regular file."""
    noted = damage if damage is not None else DamagedLines()
    try:
        stream = plain_files.open_regular(path, links=False)
    except FileNotFoundError:
        return
    with stream:
        for offset, line in _whole_lines(stream, noted):
            noted.total += 1
            try:
                value = parse(line)
            except plain_files.JSON_FAULTS as fault:
                noted.add(noted.total, plain_files.reason(fault))
            else:
                yield offset, value


def _whole_lines(stream: BinaryIO, damage: DamagedLines) -> Iterator[tuple[int, bytes]]:
    """(offset, line) of each line; lines longer than MAX_LINE are skipped."""
    offset = skipped = 0
    while line := stream.readline(MAX_LINE):
        length = len(line)
        while not line.endswith(b"\n") and len(line) == MAX_LINE and skipped <= MAX_SKIPPED:
            line = stream.readline(MAX_LINE)
            length += len(line)
            skipped += len(line)
        if not line.endswith(b"\n"):
            damage.torn = True
            return
        if length <= MAX_LINE:
            yield offset, line
        else:
            damage.total += 1
            damage.add(damage.total, f"it has {length:,} bytes; at most {MAX_LINE:,} are allowed")
        offset += length


def leave_out(path: Path, numbers: set[int]) -> None:
    """Replaces the file by one without the lines of these numbers, the first of which is 1."""

    def kept() -> Iterator[bytes]:
        number = 1
        while piece := stream.readline(MAX_LINE):
            if number not in numbers:
                yield piece
            number += piece.endswith(b"\n")

    with plain_files.open_regular(path, links=False) as stream:
        plain_files.write_whole(path, kept())


def at(path: Path, offset: int, parse: Callable[[bytes], T]) -> T | None:
    """The object of the line at this byte offset; None if no such line begins there."""
    with plain_files.open_regular(path, links=False) as stream:
        stream.seek(offset)
        try:
            return parse(stream.readline(MAX_LINE))
        except plain_files.JSON_FAULTS:
            return None


def count(path: Path) -> int:
    try:
        with plain_files.open_regular(path, links=False) as stream:
            return sum(piece.count(b"\n") for piece in iter(lambda: stream.read(2**20), b""))
    except FileNotFoundError:
        return 0

"""Reads media files, sorts them by number, and names them in error messages."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.errors import MediaError
from engine.plain_files import open_regular, reason
from engine.quoting import shown

MAX_BYTES = 1 << 30
MAX_PLACE = 240  # characters of a whole path in a message
PIECE = 1 << 20


@dataclass(frozen=True)
class Large:
    """A file that is read in pieces, possibly several times, and must not change meanwhile."""

    path: Path
    state: tuple[int, int, int, int]  # device, inode, bytes, time of the last change

    def __len__(self) -> int:
        return self.state[2]


Data = bytes | Large


def label(path: Path) -> str:
    """The file and its folder, as in "seq/000000.npy"."""
    return shown(f"{path.parent.name}/{path.name}" if path.parent.name else path.name)


def place(path: Path) -> str:
    return shown(path, MAX_PLACE)


def by_number(path: Path) -> tuple[float, str]:
    """Sort key: the last integer in the name, so that `_10` follows `_2`; other names last."""
    numbers = re.findall(r"[0-9]{1,15}", path.stem)
    return (float(numbers[-1]) if numbers else float("inf"), path.name)


def content(path: Path) -> bytes:
    """All bytes of a file; MediaError if it is missing, unreadable, empty or above 1 GiB."""
    found = large(path)
    with opened(found) as file, _readable(label(path)):
        return file.read(len(found))


def large(path: Path, *, whole: bool = True) -> Large:
    """The file without reading it; MediaError as for `content`.  A file that is never read as a
    whole may have any size."""
    name = label(path)
    with _readable(name):
        if not path.is_file():
            raise MediaError(f"{name} does not exist or is not a file: restore it or pick another.")
        found = Large(path, _state(path.stat()))
    if whole and len(found) > MAX_BYTES:
        raise MediaError(f"{name} has {len(found):,} bytes: give a file of at most {MAX_BYTES:,}.")
    if not len(found):
        raise MediaError(f"{name} is empty (0 bytes): copy it again from its source.")
    return found


@contextmanager
def opened(data: Data) -> Iterator[BinaryIO]:
    """The bytes as an open file; MediaError if the file has changed since `large`."""
    if isinstance(data, bytes):
        yield io.BytesIO(data)
        return
    name = label(data.path)
    with ExitStack() as stack:
        with _readable(name):
            file = stack.enter_context(open_regular(data.path))
            _check_unchanged(file, data, name)
        yield file
        _check_unchanged(file, data, name)


def part(file: BinaryIO, at: int, size: int, name: str) -> bytes:
    """The bytes at a place of an open file; MediaError if they are fewer."""
    file.seek(at)
    found = file.read(size)
    if len(found) < size:
        raise MediaError(f"{name} became shorter while it was read: try again.")
    return found


def pieces(data: Data) -> Iterator[bytes]:
    """The bytes in order, at most 1 MiB at a time."""
    if isinstance(data, bytes):
        yield data
        return
    with opened(data) as file, _readable(label(data.path)):
        while piece := file.read(PIECE):
            yield piece


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise MediaError(f"{name} could not be read ({reason(error)}): check the file.") from error


def _check_unchanged(file: BinaryIO, data: Large, name: str) -> None:
    if _state(os.fstat(file.fileno())) != data.state:
        raise MediaError(f"{name} changed while it was read: wait until it is written, try again.")


def _state(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns

"""Imported sets on disk: unchanged copies of files, so that newer versions can read them again.
`runs_dir/imported/NAME` has a file NUMBER/NAME for each file, in the order of the set."""

import re
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from engine import settings
from engine.plain_files import write_whole
from engine.published.read import read_files
from engine.published.read.read_files import Found, RecordsError
from engine.published.read.record_types import ResultFile
from engine.quoting import listed

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9_-])?")


class Kept(NamedTuple):
    """A kept set; none of its files is read."""

    name: str
    imported: str
    files: int


def root() -> Path:
    return settings.load().runs_dir / "imported"


def path_of(name: str) -> Path:
    """The folder of a set; RecordsError for a name that could be a path says what is allowed."""
    if not _NAME.fullmatch(name) or ".." in name:
        allowed = "letters (a to z), digits, spaces, . _ and -, a letter or digit first"
        raise RecordsError(f"{name[:80]!r} cannot name a set: use up to 64 {allowed}.")
    return root() / name


def save(name: str, files: Sequence[tuple[str, bytes]]) -> Path:
    """Saves (shown name, bytes) of each file under this name; RecordsError if the name is taken."""
    path = path_of(name)
    if name in names():
        raise RecordsError(f"A set named {name!r} is kept already: choose another name.")
    try:
        root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", dir=root()) as part:
            made = Path(part, name)
            made.mkdir()
            for index, (file, data) in enumerate(files):
                copy = made / f"{index:04d}" / read_files.shown(file).lstrip("/")
                copy.parent.mkdir(parents=True)
                write_whole(copy, data)
            made.rename(path)
    except OSError as error:
        raise RecordsError(f"{path} cannot be written ({error.strerror}): check it.") from error
    return path


def names() -> tuple[str, ...]:
    """The kept sets, by name; links are left out."""
    found = (path.name for path in root().glob("*") if path.is_dir() and not path.is_symlink())
    return tuple(sorted(name for name in found if _NAME.fullmatch(name)))


def listing() -> tuple[Kept, ...]:
    every = []
    for name in names():
        with suppress(OSError, RecordsError):  # deleted meanwhile
            changed = datetime.fromtimestamp(path_of(name).stat().st_mtime, UTC)
            every.append(Kept(name, changed.isoformat(timespec="seconds"), len(_files(name))))
    return tuple(every)


def load(name: str) -> tuple[ResultFile, ...]:
    """The files of a kept set; RecordsError if the name is unknown."""
    return tuple(read_files.read(_files(name)))


def stamp(name: str) -> tuple[tuple[str, int, int], ...]:
    """(file, size, time of last change) of each file of a set; empty if there is none."""
    try:
        every = [(shown, path.stat()) for shown, path in _files(name)]
    except (OSError, RecordsError):
        return ()
    return tuple((shown, stat.st_size, stat.st_mtime_ns) for shown, stat in every)


def _files(name: str) -> list[Found]:
    """The files of a set, in order; links are left out."""
    folder = path_of(name)
    if not folder.is_dir() or folder.is_symlink():
        known = listed(names()) or "none"
        raise RecordsError(f"No imported set is named {name!r}: there are {known}.")
    every = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [(str(Path(*path.relative_to(folder).parts[1:])), path) for path in every]


def delete(name: str) -> None:
    """Removes a kept set; RecordsError if there is none."""
    _files(name)
    try:
        shutil.rmtree(path_of(name))
    except OSError as error:
        raise RecordsError(f"{path_of(name)} cannot be deleted ({error.strerror}).") from error

"""Imported sets on disk: unchanged copies of files, so that newer versions can read them again.

`runs_dir/imported/NAME.zip` has a member NUMBER/NAME for each file, in the order of the set.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from engine import settings
from engine.plain_files import open_regular, reason, write_whole
from engine.published.read import read_files
from engine.published.read.read_files import LIMIT_BYTES, Progress, RecordsError
from engine.published.read.record_types import ResultFile
from engine.quoting import listed

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._-]{0,62}[A-Za-z0-9_-])?")
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError)


class Kept(NamedTuple):
    """A kept set; none of its files is read.  problem: why it cannot be opened, or ""."""

    name: str
    imported: str
    files: int
    problem: str = ""


def root() -> Path:
    """The folder of imported sets."""
    return settings.load().runs_dir / "imported"


def path_of(name: str) -> Path:
    """The file of a set; RecordsError for a name that could be a path says what is allowed."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise RecordsError(
            f"{name[:80]!r} cannot name a set: use up to 64 letters (a to z), digits, spaces, . _ "
            "and -, a letter or digit first."
        )
    return root() / f"{name}.zip"


def save(name: str, files: Sequence[tuple[str, bytes]]) -> Path:
    """Saves (shown name, bytes) of each file under this name; RecordsError if the name is taken."""
    path = path_of(name)
    if path.exists():
        raise RecordsError(f"A set named {name!r} is kept already: choose another name.")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for index, (file, data) in enumerate(files):
            archive.writestr(f"{index:03d}/{read_files.shown(file)}", data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, stream.getvalue())
    except OSError as error:
        raise RecordsError(f"{path} cannot be written ({error.strerror}): check it.") from error
    return path


def names() -> tuple[str, ...]:
    """The kept sets, by name."""
    found = sorted(path.stem for path in root().glob("*.zip"))
    return tuple(name for name in found if _NAME.fullmatch(name))


def listing() -> tuple[Kept, ...]:
    """The kept sets by name; a damaged one has a `problem`."""
    every = []
    for name in names():
        try:
            with _opened(name) as archive:
                changed = datetime.fromtimestamp(path_of(name).stat().st_mtime, UTC)
                when = changed.isoformat(timespec="seconds")
                every.append(Kept(name, when, len(archive.namelist())))
        except RecordsError as error:
            every.append(Kept(name, "", 0, str(error)))
    return tuple(every)


def load(name: str, progress: Progress | None = None) -> tuple[ResultFile, ...]:
    """The files of a kept set; RecordsError if the name is unknown or the set is damaged.

    progress(done, all, name) is called before each file.
    """
    found = []
    with _opened(name) as archive:
        members = archive.infolist()
        for number, member in enumerate(members):
            shown = read_files.shown(member.filename.partition("/")[2])
            if progress:
                progress(number, len(members), shown)
            try:
                with archive.open(member) as stream:
                    file = read_files.read_bytes(shown, stream.read(LIMIT_BYTES + 1))
            except _DAMAGED as error:
                text = f"{shown} cannot be read ({reason(error)}): import it again."
                file = read_files.unreadable(shown, text)
            found.append(file)
    return tuple(found)


def stamp(name: str) -> tuple[tuple[str, int, int], ...]:
    """(file, size, time of last change) of a set; empty if there is none."""
    try:
        stat = path_of(name).stat()
    except OSError:
        return ()
    return ((name, stat.st_size, stat.st_mtime_ns),)


@contextmanager
def _opened(name: str) -> Iterator[zipfile.ZipFile]:
    try:
        with open_regular(path_of(name), links=False) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except FileNotFoundError as error:
        known = listed(names()) or "none"
        raise RecordsError(f"No imported set is named {name!r}: there are {known}.") from error
    except _DAMAGED as error:
        raise RecordsError(
            f"The set {name!r} is damaged ({reason(error)}): import its files again."
        ) from error


def delete(name: str) -> None:
    """Removes a kept set; RecordsError if there is none."""
    try:
        path_of(name).unlink()
    except OSError as error:
        raise RecordsError(f"No imported set is named {name!r}.") from error

"""Reads files and folders, one by one, into the common form.

Boundary: a bad file does not affect the others.  RecordsError only if no file can be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from engine.published.read import file_forms, parsing
from engine.published.read.parsing import RecordsError
from engine.published.read.record_types import ResultFile

Progress = Callable[[int, int, str], None]


def read(paths: Iterable[Path], progress: Progress | None = None) -> tuple[ResultFile, ...]:
    """Each file named and each *.json below each folder named, in the common form.

    progress(done, all, name) is called before each file.  RecordsError only where nothing can be
    tried: no path, an empty folder, too many files.
    """
    return tuple(iterate(parsing.find(paths), progress))


def iterate(
    found: list[tuple[str, Path]], progress: Progress | None = None
) -> Iterator[ResultFile]:
    """The same, file by file, for a caller that may stop in between."""
    for number, (name, path) in enumerate(found):
        if progress:
            progress(number, len(found), name)
        yield one(name, path)


def one(name: str, path: Path) -> ResultFile:
    try:
        data = parsing.read(path, name)
    except RecordsError as error:
        return file_forms.unreadable(name, str(error))
    return file_forms.read_bytes(name, data)

"""Reads files and folders into the common form.

Boundary: a bad file does not stop the others; paths that cannot be used raise RecordsError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from engine.published.read import file_forms, parsing
from engine.published.read.parsing import RecordsError
from engine.published.read.record_types import ResultFile

Progress = Callable[[int, int, str], None]


def read(paths: Iterable[Path], progress: Progress | None = None) -> tuple[ResultFile, ...]:
    """Each given file and each *.json below each given folder, in the common form.

    progress(done, all, name) is called before each file.  RecordsError if there is nothing to read:
    no path, an empty folder, or too many files.
    """
    return tuple(iterate(parsing.find(paths), progress))


def iterate(
    found: list[tuple[str, Path]], progress: Progress | None = None
) -> Iterator[ResultFile]:
    """The files one by one, so that the caller may stop in between."""
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

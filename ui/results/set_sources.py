"""Published result files as entries of the list: saved sets, and the files of this visit.

Boundary: names and numbers for the list; files are read only by read().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.published.read import ResultFile, imported_sets, read_bytes
from engine.published.read.imported_sets import Kept
from ui.results import dropped_files
from ui.widgets.text import count, when

ELSEWHERE = "elsewhere"  # the state of these sources, beside those of runs
ELSEWHERE_WORDS = "Recorded elsewhere"
VISIT = "visit"  # the key of this visit's files
SET = "set:"
Progress = Callable[[int, int, str], None]
Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)


def key_of(name: str) -> str:
    """The key of the saved set of this name."""
    return SET + name


@dataclass(frozen=True, eq=False)
class SetSource:
    """A saved set of files, identified by its name."""

    kept: Kept
    created: str = ""
    state: str = ELSEWHERE
    models: tuple[str, ...] = ()  # known after its files are read
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    baseline: bool = False

    @property
    def key(self) -> str:
        return key_of(self.kept.name)

    @property
    def title(self) -> str:
        return self.kept.name

    @property
    def name(self) -> str:
        return self.kept.name

    @property
    def dataset(self) -> str:
        return f"imported {when(self.kept.imported)}" if self.kept.imported else ""

    @property
    def amount(self) -> str:
        return count(self.kept.files, "file")

    @property
    def problem(self) -> str:
        return self.kept.problem

    def stamp(self) -> Stamp:
        """Changes with any file of the set."""
        return imported_sets.stamp(self.kept.name)

    def read(self, progress: Progress | None = None) -> tuple[ResultFile, ...]:
        return imported_sets.load(self.kept.name, progress)


@dataclass(frozen=True, eq=False)
class VisitSource:
    """The files of this visit; no link can open them later."""

    files: tuple[dropped_files.DroppedFile, ...]
    key: str = VISIT
    name: str = "Files of this visit"
    created: str = ""
    state: str = ELSEWHERE
    models: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    baseline: bool = False
    dataset: str = ""
    problem: str = ""

    @property
    def title(self) -> str:
        return self.name

    @property
    def amount(self) -> str:
        return count(len(self.files), "file")

    def stamp(self) -> Stamp:
        return tuple((f"{file.name}/{file.digest}", len(file.data), 0) for file in self.files)

    def read(self, progress: Progress | None = None) -> tuple[ResultFile, ...]:
        found = []
        for number, file in enumerate(self.files):
            if progress:
                progress(number, len(self.files), file.name)
            found.append(read_bytes(file.name, file.data))
        return tuple(found)


Source = SetSource | VisitSource


def listing() -> tuple[Source, ...]:
    """The files of this visit, then the saved sets by name."""
    files = dropped_files.files()
    mine: tuple[Source, ...] = (VisitSource(files),) if files else ()
    return (*mine, *(SetSource(kept) for kept in imported_sets.listing()))

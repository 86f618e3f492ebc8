"""Where rows come from: anything that can be listed and read as a table of results.

Boundary: the one place that knows runs on disk.  A further kind of source (published files, say)
is a further class with these fields and methods, and an entry in listing().
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol

import streamlit as st

from engine import settings
from engine.errors import StoreError
from engine.storage import annotations as marks
from engine.storage import run_store
from engine.storage.annotations import Mark
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import HEADER
from engine.storage.run_store import Run, RunInfo

if TYPE_CHECKING:
    import pandas as pd

Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)
FILES = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)
STALE_S = 3  # a lock that was let go shows up so late at most


class Listed(Protocol):
    """What stands in the list.  `key` stands in the URL, `name` tells equal models apart."""

    @property
    def key(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def created(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def dataset(self) -> str: ...
    @property
    def amount(self) -> str:
        """How many results, in words."""
        ...

    @property
    def problem(self) -> str:
        """Why it cannot be opened, or nothing."""
        ...


class Source(Listed, Protocol):
    """What can be opened as a table of results."""

    def stamp(self) -> Stamp:
        """Changes with what read() gives."""
        ...

    def read(self) -> Rows: ...
    def marks(self) -> dict[Task, Mark]: ...
    def mark(self, task: Task, mark: Mark) -> None: ...


@dataclass(frozen=True, eq=False)
class Rows:
    """A source's rows, read once: a table of frame.one()'s columns, and its run if it is one.

    Shared by all sessions: nobody may change it.
    """

    table: pd.DataFrame
    run: Run | None
    problems: tuple[str, ...]

    def whole(self, offset: int) -> ResultRow | None:
        """One result as it is kept; StoreError if it is gone."""
        return self.run.row(offset) if self.run is not None else None


@dataclass(frozen=True)
class RunSource:
    """A run of our own, in the runs folder."""

    info: RunInfo

    @property
    def key(self) -> str:
        return self.info.folder.name

    @property
    def name(self) -> str:
        return self.info.id

    @property
    def created(self) -> str:
        return self.info.created

    @property
    def state(self) -> str:
        return self.info.state

    @property
    def models(self) -> tuple[str, ...]:
        return self.info.models

    @property
    def dataset(self) -> str:
        return PurePath(self.info.dataset).name

    @property
    def amount(self) -> str:
        kept, planned = self.info.results, self.info.planned
        unfinished = "" if self.state == "finished" else f", {planned:,} results planned"
        return f"{kept:,} rows with warm-up{unfinished}"

    @property
    def problem(self) -> str:
        return self.info.problem

    def stamp(self) -> Stamp:
        return stamp_of(self.info.folder)

    def read(self) -> Rows:
        from engine.analysis import results_table

        run = run_store.read(self.info.folder)
        table = results_table.one(run)
        notes = marks.problem(self.info.folder)
        return Rows(table, run, (*run.problems, *([notes] if notes else [])))

    def marks(self) -> dict[Task, Mark]:
        """None where they cannot be read: `problems` says so."""
        try:
            return marks.read(self.info.folder)
        except StoreError:
            return {}

    def mark(self, task: Task, mark: Mark) -> None:
        marks.put(self.info.folder, task, mark)


def stamp_of(folder: Path, names: tuple[str, ...] = FILES) -> Stamp:
    """The state of a run folder's files; those that are absent have no part in it."""
    found = []
    for name in names:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def listing() -> tuple[Source, ...]:
    """Every source there is, the newest first; StoreError if the runs folder cannot be read."""
    base = settings.load().runs_dir
    folders = sorted(path.parent for path in base.glob(f"*/{HEADER}"))
    infos = _runs(base, tuple(stamp_of(folder) for folder in folders))
    return tuple(RunSource(info) for info in infos)


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _runs(base: Path, stamps: tuple[Stamp, ...]) -> tuple[RunInfo, ...]:
    return run_store.listing(base)

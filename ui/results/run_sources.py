"""Sources of results: anything that can be listed and read as a table.

Boundary: the only module of the page that reads runs on disk.
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
from engine.storage.annotations import Feedback
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_header import HEADER
from engine.storage.run_store import Run, RunInfo
from engine.storage.schemas import Vote

if TYPE_CHECKING:
    import pandas as pd

Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)
FILES = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)
STALE_S = 3  # a released lock is noticed after this time at most


class Listed(Protocol):
    """An entry of the list.  `key` is in the URL; `name` tells equal models apart."""

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
        """The number of results, in words."""
        ...

    @property
    def problem(self) -> str:
        """Why it cannot be opened, or ""."""
        ...


class ResultSource(Listed, Protocol):
    """A source that can be opened as a table of results."""

    def stamp(self) -> Stamp:
        """Changes whenever the result of read() changes."""
        ...

    def read(self) -> Rows: ...
    def marks(self) -> dict[Task, Feedback]: ...
    def mark(self, task: Task, mark: Feedback) -> None: ...
    def votes(self) -> tuple[Vote, ...]: ...
    def vote(self, vote: Vote) -> None: ...


@dataclass(frozen=True, eq=False)
class Rows:
    """A source's rows as a table of results_table.one(), and its run.

    Shared by all sessions: it must not be changed.
    """

    table: pd.DataFrame
    run: Run | None
    problems: tuple[str, ...]

    def whole(self, offset: int) -> ResultRow | None:
        """One result as stored; StoreError if it is gone."""
        return self.run.row(offset) if self.run is not None else None


@dataclass(frozen=True)
class RunSource:
    """A run in the runs folder."""

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
        return f"{kept:,} rows, including warm-up{unfinished}"

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

    def marks(self) -> dict[Task, Feedback]:
        """Notes and thumbs; none if they cannot be read, which `problems` reports."""
        try:
            return marks.read(self.info.folder)
        except StoreError:
            return {}

    def mark(self, task: Task, mark: Feedback) -> None:
        marks.put(self.info.folder, task, mark)

    def votes(self) -> tuple[Vote, ...]:
        """Votes; none if they cannot be read, which `problems` reports."""
        return _votes(self.info.folder, stamp_of(self.info.folder, (marks.VOTES,)))

    def vote(self, vote: Vote) -> None:
        marks.put_vote(self.info.folder, vote)


@st.cache_resource(max_entries=8, show_spinner=False)
def _votes(folder: Path, stamp: Stamp) -> tuple[Vote, ...]:
    try:
        return marks.votes(folder)
    except StoreError:
        return ()


def stamp_of(folder: Path, names: tuple[str, ...] = FILES) -> Stamp:
    """Size and time of change of the run folder's files; missing files are left out."""
    found = []
    for name in names:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def listing() -> tuple[ResultSource, ...]:
    """All runs, newest first; StoreError if the runs folder cannot be read."""
    base = settings.load().runs_dir
    folders = sorted(path.parent for path in base.glob(f"*/{HEADER}"))
    infos = _runs(base, tuple(stamp_of(folder) for folder in folders))
    return tuple(RunSource(info) for info in infos)


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _runs(base: Path, stamps: tuple[Stamp, ...]) -> tuple[RunInfo, ...]:
    return run_store.listing(base)

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
from engine.storage import explanations, run_details, run_store
from engine.storage.annotations import Feedback
from engine.storage.plan import Task
from engine.storage.result_rows import ResultRow
from engine.storage.run_details import RunDetails
from engine.storage.run_header import HEADER
from engine.storage.run_store import Run, RunInfo
from engine.storage.schemas import Vote
from ui.widgets import visit_runs
from ui.widgets.text import count, when

if TYPE_CHECKING:
    import pandas as pd

Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)
BASELINE_WORDS = "Baseline"
FILES = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)
LISTED = (*FILES, run_details.DETAILS)
STALE_S = 3  # a released lock is noticed after this time at most


class Listed(Protocol):
    """An entry of the list.  `key` is in the URL; `title` stands in the list; `name` tells equal
    models apart."""

    @property
    def key(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def baseline(self) -> bool:
        """Whether other runs are compared with this one."""
        ...

    @property
    def created(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def models(self) -> tuple[str, ...]: ...
    @property
    def words(self) -> tuple[str, ...]:
        """More words by which it can be found."""
        ...

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
    """A run in the runs folder, or one of this visit only (`private`)."""

    info: RunInfo
    details: RunDetails = run_details.NONE
    details_problem: str = ""
    baseline: bool = False
    private: bool = False

    @property
    def key(self) -> str:
        return self.info.folder.name

    @property
    def title(self) -> str:
        named = self.details.name or when(self.created) or self.name
        return f"{BASELINE_WORDS}: {named}" if self.baseline else named

    @property
    def name(self) -> str:
        """As part of a label: the users' name, otherwise the run's id."""
        named = self.details.name or self.info.id
        return f"{named} ({BASELINE_WORDS.lower()})" if self.baseline else named

    @property
    def tags(self) -> tuple[str, ...]:
        return self.details.tags

    @property
    def words(self) -> tuple[str, ...]:
        return (self.info.id, *self.info.labels, *self.info.settings.values())

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
        if self.state != "finished":
            return f"{kept:,} rows, including warm-up, {planned:,} results planned"
        return count(kept, "result") if kept == planned else f"{kept:,} rows, including warm-up"

    @property
    def problem(self) -> str:
        return self.info.problem

    def stamp(self) -> Stamp:
        return stamp_of(self.info.folder)

    def read(self) -> Rows:
        from engine.analysis import results_table

        run = run_store.read(self.info.folder)
        table = results_table.one(run)
        folder = self.info.folder
        kept = (marks.problem(folder), explanations.problem(folder))
        return Rows(table, run, (*run.problems, *filter(None, kept)))

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


def listing() -> tuple[RunSource, ...]:
    """The baseline, then all other runs, newest first, those of this visit included; StoreError if
    the runs folder cannot be read."""
    base = settings.load().runs_dir
    pinned, _ = run_details.baseline(base)
    own = visit_runs.folder()
    every = [RunSource(*one, one[0].folder.name == pinned) for one in _stored(base)]
    every += [RunSource(*one, private=True) for one in _stored(own)] if own else []
    newest = sorted(every, key=lambda run: (run.created, run.info.id), reverse=True)
    return tuple(sorted(newest, key=lambda run: not run.baseline))


def baseline_problem() -> str:
    """A sentence if it is not known which run is the baseline, or ""."""
    return run_details.baseline(settings.load().runs_dir)[1]


def _stored(base: Path) -> tuple[tuple[RunInfo, RunDetails, str], ...]:
    folders = sorted(path.parent for path in base.glob(f"*/{HEADER}"))
    return _runs(base, tuple(stamp_of(folder, LISTED) for folder in folders))


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _runs(base: Path, stamps: tuple[Stamp, ...]) -> tuple[tuple[RunInfo, RunDetails, str], ...]:
    return tuple((info, *run_details.read(info.folder)) for info in run_store.listing(base))

"""What the Results page can open: own runs, kept sets of published files, files of this visit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

import streamlit as st

from engine import settings
from engine.errors import BadInput
from engine.published.read import ResultFile, imported_sets, read_bytes, read_files
from engine.storage import run_details, run_store
from engine.storage.run_details import RunDetails
from engine.storage.run_store import RunInfo
from ui.widgets import uploads
from ui.widgets.stored_runs import FILES, Stamp, stamp_of, stamps
from ui.widgets.text import count, when

ELSEWHERE = "elsewhere"  # the state of published files, beside those of runs
ELSEWHERE_WORDS = "Recorded elsewhere"
VISIT = "visit"  # the key of this visit's files
SET = "set:"
LISTED = (*FILES, run_details.DETAILS)
STALE_S = 3  # a released lock is noticed after this time at most
MEGABYTE = 2**20
MAX_MB = 64  # a file; server.maxUploadSize in .streamlit/config.toml says the same
TOTAL_MB = 256
MAX_FILES = 1_000
INSTEAD = "save them as a set with `python -m engine import FOLDER --save NAME`."
_DROPPED = "results_visit"


@dataclass(frozen=True)
class DroppedFile:
    """A published file of this visit, in memory only: its printable name, bytes, and digest."""

    name: str
    data: bytes
    digest: str


@dataclass(frozen=True)
class Source:
    """An entry of the list.  Of published files, `info` has only an id, a problem and a count."""

    info: RunInfo
    kind: Literal["run", "set", "visit"] = "run"
    details: RunDetails = run_details.NONE
    details_problem: str = ""
    baseline: bool = False  # other runs are compared with this one
    private: bool = False  # a run of own files, for this visit only
    imported: str = ""  # when a set was kept
    dropped: tuple[DroppedFile, ...] = ()

    @property
    def key(self) -> str:
        """Its name in links."""
        keys = {"run": self.info.folder.name, "set": SET + self.info.id, "visit": VISIT}
        return keys[self.kind]

    @property
    def title(self) -> str:
        named = self.details.name or when(self.info.created) or self.info.id
        return f"Baseline: {named}" if self.baseline else named

    @property
    def name(self) -> str:
        """As part of a label: the users' name, otherwise the id."""
        named = self.details.name or self.info.id
        return f"{named} (baseline)" if self.baseline else named

    @property
    def state(self) -> str:
        return self.info.state if self.kind == "run" else ELSEWHERE

    @property
    def dataset(self) -> str:
        if self.imported:
            return f"imported {when(self.imported)}"
        return PurePath(self.info.dataset).name

    @property
    def amount(self) -> str:
        """The number of results or files, in words."""
        kept, planned = self.info.results, self.info.planned
        if self.kind != "run":
            return count(kept, "file")
        if self.state != "finished":
            return f"{kept:,} rows, including warm-up, {planned:,} results planned"
        return count(kept, "result") if kept == planned else f"{kept:,} rows, including warm-up"

    def stamp(self) -> Stamp:
        """Changes whenever the results or files change."""
        if self.kind == "set":
            return imported_sets.stamp(self.info.id)
        if self.kind == "visit":
            return tuple((f"{one.name}/{one.digest}", len(one.data), 0) for one in self.dropped)
        return stamp_of(self.info.folder)

    def published(self) -> tuple[ResultFile, ...]:
        """Reads published files; RecordsError if the set is gone or damaged."""
        if self.kind == "set":
            return imported_sets.load(self.info.id)
        return tuple(read_bytes(file.name, file.data) for file in self.dropped)


def listing() -> tuple[Source, ...]:
    """The own runs, then the files of this visit, then the kept sets by name."""
    files = dropped()
    visit = RunInfo("Files of this visit", Path(), "finished", results=len(files))
    mine = [Source(visit, "visit", dropped=files)] if files else []
    sets = [
        Source(
            RunInfo(kept.name, Path(), "finished", results=kept.files, problem=kept.problem),
            "set",
            imported=kept.imported,
        )
        for kept in imported_sets.listing()
    ]
    return (*runs(), *mine, *sets)


def runs() -> tuple[Source, ...]:
    """The baseline, then all other runs, newest first, those of this visit included; StoreError if
    the runs folder cannot be read."""
    base, own = settings.load().runs_dir, uploads.runs_folder()
    pinned, _ = run_details.baseline(base)
    found = [
        Source(info, details=details, details_problem=problem, private=folder == own,
               baseline=folder == base and info.folder.name == pinned)
        for folder in filter(None, (base, own))
        for info, details, problem in _stored(folder, stamps(folder, LISTED))
    ]  # fmt: skip
    found.sort(key=lambda run: (run.baseline, run.info.created, run.info.id), reverse=True)
    return tuple(found)


@st.cache_data(max_entries=8, ttl=STALE_S, show_spinner=False)
def _stored(base: Path, stamps: tuple[Stamp, ...]) -> tuple[tuple[RunInfo, RunDetails, str], ...]:
    return tuple((info, *run_details.read(info.folder)) for info in run_store.listing(base))


def dropped() -> tuple[DroppedFile, ...]:
    """The published files of this visit, in the order they were added."""
    found: tuple[DroppedFile, ...] = st.session_state.get(_DROPPED, ())
    return found


def drop(named: Iterable[tuple[str, bytes]]) -> tuple[DroppedFile, ...]:
    """Adds files to the visit, each content once; returns the given ones.  BadInput if they are
    too many."""
    new = [
        DroppedFile(read_files.shown(name), data, hashlib.sha256(data).hexdigest())
        for name, data in named
    ]
    every = tuple(dict.fromkeys((*dropped(), *new)))
    size = sum(len(file.data) for file in every) / MEGABYTE
    if len(every) > MAX_FILES:
        raise BadInput(f"{len(every):,} files are more than {MAX_FILES:,} per visit: {INSTEAD}")
    if size > TOTAL_MB:
        raise BadInput(f"{size:,.0f} MB are more than {TOTAL_MB} MB per visit: {INSTEAD}")
    st.session_state[_DROPPED] = every
    return tuple(dict.fromkeys(new))


def forget() -> None:
    st.session_state.pop(_DROPPED, None)

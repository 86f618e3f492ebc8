"""The visit's files and the chosen sets, read and audited once for all visitors, and what was
computed from them.

Kept by the files' contents (saved sets: by their sizes and times).  Kept values are never changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import streamlit as st

from engine import settings
from engine.errors import BadInput
from engine.published.audit import audit
from engine.published.claims.headlines import Headline, headlines
from engine.published.read import ResultFile, imported_sets, read_bytes, read_files
from ui.widgets.stored_runs import Stamp

KEPT = 12  # results kept at a time, over all visitors
VISIT = "Files of this visit"
MAX_MB = 64  # a file; server.maxUploadSize in .streamlit/config.toml says the same
TOTAL_MB = 256
MAX_FILES = 1_000
INSTEAD = f"save them as a set with `{settings.COMMAND} import FOLDER --save NAME`."
_DROPPED = "published_visit"
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class DroppedFile:
    """A published file of this visit, in memory only: its printable name, bytes, and digest."""

    name: str
    data: bytes
    digest: str

    @cached_property
    def read(self) -> ResultFile:
        return read_bytes(self.name, self.data)


def dropped() -> tuple[DroppedFile, ...]:
    """The files of this visit, in the order they were added."""
    files: tuple[DroppedFile, ...] = st.session_state.get(_DROPPED, ())
    return files


def drop(named: Iterable[tuple[str, bytes]]) -> tuple[DroppedFile, ...]:
    """Adds files to the visit, each content once; returns the given ones.  BadInput if they are
    too many."""
    new = [
        DroppedFile(read_files.shown(name), data, hashlib.sha256(data).hexdigest())
        for name, data in named
    ]
    every = tuple(dict.fromkeys((*dropped(), *new)))
    size = sum(len(file.data) for file in every) / read_files.MEGABYTE
    if len(every) > MAX_FILES:
        raise BadInput(f"{len(every):,} files are more than {MAX_FILES:,} per visit: {INSTEAD}")
    if size > TOTAL_MB:
        raise BadInput(f"{size:,.0f} MB are more than {TOTAL_MB} MB per visit: {INSTEAD}")
    st.session_state[_DROPPED] = every
    return tuple(dict.fromkeys(new))


def forget() -> None:
    st.session_state.pop(_DROPPED, None)


@dataclass(frozen=True, eq=False)
class OpenedSets:
    """The open files, which have unique names.

    corrected: show corrected values, otherwise recorded ones.
    """

    key: tuple[tuple[str, Stamp], ...]
    files: tuple[ResultFile, ...]
    corrected: bool = True

    @property
    def usable(self) -> tuple[ResultFile, ...]:
        return tuple(file for file in self.files if file.status == "ok")

    @property
    def bind(self) -> Literal["query-params"] | None:
        """Where widgets store a choice of files: files of a visit have no link."""
        return None if dropped() else "query-params"

    @property
    def claims(self) -> tuple[Headline, ...]:
        """The three claims over all files, for the shown values."""
        key = ("claims", self.key, self.corrected)
        return kept(key, lambda: headlines(self.files, self.corrected))

    def choose(self, files: Sequence[ResultFile], key: str) -> ResultFile:
        """One of these files (at least one); the choice is in the URL if the files have a link."""
        named = {file.name: file for file in files}
        name = st.selectbox("File", list(named), key=key, bind=self.bind)
        return named.get(name or "", files[0])


@st.cache_resource(max_entries=KEPT, show_spinner="Reading and checking the files")
def kept(key: Hashable, _make: Callable[[], Kept]) -> Kept:
    """The result of _make(), computed once per key."""
    return _make()


def open_(names: Sequence[str], corrected: bool) -> OpenedSets:
    """The files of the visit and of these sets; RecordsError if one is gone or damaged."""
    visit = tuple((f"{one.name}/{one.digest}", len(one.data), 0) for one in dropped())
    key = ((VISIT, visit), *((name, imported_sets.stamp(name)) for name in names))
    return OpenedSets(key, kept(key, lambda: _read(names)), corrected)


def _read(names: Sequence[str]) -> tuple[ResultFile, ...]:
    """Equal names are made unique by their sets, otherwise by numbers."""
    read = [(VISIT, file.read) for file in dropped()]
    read += [(name, file) for name in names for file in imported_sets.load(name)]
    taken, seen = Counter(file.name for _, file in read), Counter[str]()
    files = []
    for of, file in read:
        name = file.name if taken[file.name] == 1 else f"{of}: {file.name}"
        seen[name] += 1
        unlike = name if seen[name] == 1 else f"{name} ({seen[name]})"
        files.append(file if unlike == file.name else replace(file, name=unlike))
        audit(files[-1])  # which keeps it
    return tuple(files)

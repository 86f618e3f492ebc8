"""The chosen sets, read and audited once for all visitors, and what was computed from them.

Kept by the files' contents (saved sets: by their sizes and times).  Kept values are never changed.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import streamlit as st

from engine.published.audit import AuditFinding, audit
from engine.published.claims.headlines import Headline, headlines
from engine.published.read import ResultFile
from ui.results.result_sources import Source
from ui.widgets.stored_runs import Stamp

SHOW_FROM = 8  # files: fewer are read before a bar could be seen
KEPT = 12  # results kept at a time, over all visitors
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class Audited:
    """A file with a unique name, and its findings.

    source: the key of its set, "" for an own run.
    """

    file: ResultFile
    findings: tuple[AuditFinding, ...]
    source: str = ""

    @property
    def name(self) -> str:
        return self.file.name


@dataclass(frozen=True, eq=False)
class OpenedSets:
    """The open sets.  corrected: show corrected values, otherwise recorded ones."""

    key: tuple[tuple[str, Stamp], ...]
    sources: tuple[Source, ...]
    items: tuple[Audited, ...]
    corrected: bool = True

    @property
    def usable(self) -> tuple[Audited, ...]:
        return tuple(item for item in self.items if item.file.status == "ok")

    @property
    def linkable(self) -> bool:
        """Whether a link can open the same files: files of a visit have no link."""
        return not any(one.kind == "visit" for one in self.sources)

    @property
    def bind(self) -> Literal["query-params"] | None:
        """Where widgets store the name of a file."""
        return "query-params" if self.linkable else None

    @property
    def files(self) -> tuple[ResultFile, ...]:
        return tuple(item.file for item in self.items)


class Shelf:
    """The last few results by their keys; a cache that reading with a progress bar can fill."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Found]) -> Found:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                known: Found = self._found[key]
                return known
        found = make()  # two visitors at once both compute the same value
        with self._lock:
            self._found[key] = found
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return found


@st.cache_resource(show_spinner=False)
def _shelf() -> Shelf:
    return Shelf()


def kept(key: Hashable, make: Callable[[], Found]) -> Found:
    """The result of make(), computed once per key."""
    return _shelf().get(key, make)


def open_(chosen: Sequence[Source]) -> OpenedSets:
    """The chosen sets, at least one; RecordsError if one is gone or damaged."""
    key = tuple((one.key, one.stamp()) for one in chosen)
    items = kept(key, lambda: _read(chosen))
    return OpenedSets(key, tuple(chosen), items)


def _read(chosen: Sequence[Source]) -> tuple[Audited, ...]:
    place = st.empty()

    def progress(done: int, every: int, name: str) -> None:
        if every >= SHOW_FROM:
            place.progress(done / every, text=f"Reading: {done:,} of {every:,} files")

    read = [(one, file) for one in chosen for file in one.published(progress)]
    named = _named([(one.name, file) for one, file in read])
    found = []
    for number, (file, (one, _)) in enumerate(zip(named, read, strict=True)):
        if len(read) >= SHOW_FROM:
            text = f"Auditing: {number:,} of {len(read):,} files"
            place.progress(number / len(read), text=text)
        found.append(Audited(file, audit(file), one.key))
    place.empty()
    return tuple(found)


def _named(read: Sequence[tuple[str, ResultFile]]) -> list[ResultFile]:
    """Equal names made unique by their sets, otherwise by numbers."""
    taken = Counter(file.name for _, file in read)
    names = [file.name if taken[file.name] == 1 else f"{name}: {file.name}" for name, file in read]
    seen: Counter[str] = Counter()
    found = []
    for name, (_, file) in zip(names, read, strict=True):
        seen[name] += 1
        unlike = name if seen[name] == 1 else f"{name} ({seen[name]})"
        found.append(file if unlike == file.name else replace(file, name=unlike))
    return found


def claims(found: OpenedSets) -> tuple[Headline, ...]:
    """The three claims over all files, for the shown values."""
    key = ("claims", found.key, found.corrected)
    return kept(key, lambda: headlines(found.files, found.corrected))

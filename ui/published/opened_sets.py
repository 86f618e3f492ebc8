"""The chosen sets, read and audited once for all visitors, and what was computed from them.

Kept by the files' contents (saved sets: by their sizes and times).  Kept values are never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import streamlit as st

from engine.published.audit import Audited, audited
from engine.published.claims.headlines import Headline, headlines
from engine.published.read import ResultFile
from ui.results.result_sources import Source
from ui.widgets.stored_runs import Stamp

KEPT = 12  # results kept at a time, over all visitors
Kept = TypeVar("Kept")


@dataclass(frozen=True, eq=False)
class OpenedSets:
    """The open sets and their files, which have unique names.

    corrected: show corrected values, otherwise recorded ones.
    """

    key: tuple[tuple[str, Stamp], ...]
    sources: tuple[Source, ...]
    items: tuple[Audited, ...]
    corrected: bool = True

    @property
    def usable(self) -> tuple[Audited, ...]:
        return tuple(item for item in self.items if item.file.status == "ok")

    @property
    def bind(self) -> Literal["query-params"] | None:
        """Where widgets store a choice of files: files of a visit have no link."""
        visit = any(one.kind == "visit" for one in self.sources)
        return None if visit else "query-params"

    @property
    def files(self) -> tuple[ResultFile, ...]:
        return tuple(item.file for item in self.items)

    @property
    def claims(self) -> tuple[Headline, ...]:
        """The three claims over all files, for the shown values."""
        key = ("claims", self.key, self.corrected)
        return kept(key, lambda: headlines(self.files, self.corrected))

    def choose(self, items: Sequence[Audited], key: str, what: str = "File") -> ResultFile:
        """One of these files (at least one); the choice is in the URL if the files have a link."""
        files = {item.file.name: item.file for item in items}
        name = st.selectbox(what, list(files), key=key, bind=self.bind)
        return files.get(name or "", items[0].file)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading and checking the files")
def _kept(key: Hashable, _make: Callable[[], Any]) -> Any:
    return _make()


def kept(key: Hashable, make: Callable[[], Kept]) -> Kept:
    """The result of make(), computed once per key."""
    value: Kept = _kept(key, make)
    return value


def open_(chosen: Sequence[Source]) -> OpenedSets:
    """The chosen sets, at least one; RecordsError if one is gone or damaged."""
    key = tuple((one.key, one.stamp()) for one in chosen)
    return OpenedSets(key, tuple(chosen), kept(key, lambda: _read(chosen)))


def _read(chosen: Sequence[Source]) -> tuple[Audited, ...]:
    """Equal names are made unique by their sets, otherwise by numbers."""
    read = [(one.name, file) for one in chosen for file in one.published()]
    taken, seen = Counter(file.name for _, file in read), Counter[str]()
    items = []
    for of, file in read:
        name = file.name if taken[file.name] == 1 else f"{of}: {file.name}"
        seen[name] += 1
        unlike = name if seen[name] == 1 else f"{name} ({seen[name]})"
        items.append(audited(file if unlike == file.name else replace(file, name=unlike)))
    return tuple(items)

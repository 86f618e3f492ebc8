"""Published result files: added, kept as a set and removed; the open ones are read and audited once
for all visitors, with what was computed from them.

Kept by the files' contents (saved sets: by their sizes and times).  Kept values are never changed.
A folder can be named only if the server listens on this machine only.
"""

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
from engine.published.read import RecordsError, ResultFile, imported_sets, read_bytes, read_files
from engine.quoting import listed
from engine.storage.run_store import Stamp
from ui.widgets import notices, uploads
from ui.widgets.dataset_picker import on_loopback
from ui.widgets.text import count, when

KEPT = 12  # results kept at a time, over all visitors
VISIT = "Files of this visit"
TOTAL_MB = 256
MAX_FILES = 1_000
INSTEAD = f"save them as a set with `{settings.COMMAND} import FOLDER --save NAME`."
_DROPPED = "published_visit"
Kept = TypeVar("Kept")
WHAT = (
    "JSON result files of the original benchmark, one or several. Dropped files stay in memory for "
    "this visit only; a kept set is stored and has a link."
)
SETS = "published_sets"  # the names of the chosen sets, in the URL
MOST = 8  # open at once
_ROUND = "published_import_round"
_PROBLEM = "published_import"  # what went wrong
_DONE = "published_import_done"  # the files that were just added
TOLD = 5  # at most so many reasons


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
    files: tuple[DroppedFile, ...] = st.session_state.get(_DROPPED, ())
    return files


def drop(named: Iterable[tuple[str, bytes]]) -> None:
    """Adds files to the visit, each content once; BadInput if they are too many."""
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
    st.session_state[_DROPPED], st.session_state[_DONE] = every, tuple(dict.fromkeys(new))


def forget() -> None:
    st.session_state.pop(_DROPPED, None)


@dataclass(frozen=True, eq=False)
class OpenedSets:
    """The open files, which have unique names, with corrected values or as recorded."""

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
    mine = tuple((f"{one.name}/{one.digest}", len(one.data), 0) for one in dropped())
    key = ((VISIT, mine), *((name, imported_sets.stamp(name)) for name in names))
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


def panel(expanded: bool) -> None:
    key = "published_import" if expanded else "published_import_more"
    with st.expander("Import published result files", expanded=expanded, key=key):
        notices.small(WHAT, "imported_what")
        left, right = st.columns(2) if on_loopback() else (st.container(), None)
        uploader = f"published_import_files_{st.session_state.get(_ROUND, 0)}"  # empty after a drop
        left.file_uploader(
            f"Drop JSON files here (at most {uploads.MAX_MB} MB each, {TOTAL_MB} MB in all)",
            type="json",
            accept_multiple_files=True,
            key=uploader,
            on_change=_take,
            args=(uploader,),
        )
        if right is not None:
            with right.form("published_import_form", border=False):
                title, key = "Or a folder or file on this machine", "published_import_folder"
                path = st.text_input(title, key=key, placeholder="/data/results")
                asked = st.form_submit_button("Read it", key="published_import_read")
            if asked and path.strip():
                with st.spinner("Reading"):
                    _find(path.strip())
                st.rerun()
    notices.said(_PROBLEM, notices.problem)


def _take(key: str) -> None:
    if files := st.session_state.get(key):
        notices.attempt(_PROBLEM, drop, [(one.name, one.getvalue()) for one in files])
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def _find(typed: str) -> None:
    """Every .json file below the path; files that cannot be read are left out and named."""
    brought, problems = [], []
    try:
        for name, path in read_files.find([settings.expand(typed)]):
            try:
                brought.append((name, read_files.data_of(path, name)))
            except RecordsError as error:
                problems.append(str(error))
    except RecordsError as error:
        problems.append(str(error))
    if brought:
        notices.attempt(_PROBLEM, drop, brought)
    if problems:
        notices.keep("\n".join(problems[:TOLD]), _PROBLEM)


def say_added() -> None:
    added = st.session_state.pop(_DONE, [])
    unusable = [file.name for file in added if file.read.status == "unknown"]
    if read := len(added) - len(unusable):
        notices.small(f"{count(read, 'file')} read into this visit.", "imported_done")
    if unusable:
        words = f"{count(len(unusable), 'file')} cannot be used: {listed(unusable)}."
        notices.problem(f"{words} See Files and findings for the reasons.", "imported_unusable")


def visit() -> None:
    if not dropped():
        return
    held = f"{VISIT}: {count(len(dropped()), 'file')}, without a link."
    with st.container(horizontal=True, vertical_alignment="center"):
        notices.small(f"{held} Keep them as a set to open them again later.", "imported_visit")
        with st.popover("Keep as a set", key="published_keep_more"):
            st.text_input("Name of the set", key="published_import_name", placeholder="original")
            keep, args = notices.attempt, (_PROBLEM, _save)
            st.button("Keep", key="published_keep", on_click=keep, args=args)
        st.button("Forget these files", key="published_forget", on_click=forget)


def _save() -> None:
    """Keeps the readable files and opens their set instead; RecordsError if it cannot."""
    name = str(st.session_state.get("published_import_name", "")).strip()
    usable = [(file.name, file.data) for file in dropped() if file.read.status != "unknown"]
    if not usable:
        raise RecordsError("No file of this visit can be used, so there is nothing to keep.")
    imported_sets.save(name, usable)
    forget()
    st.session_state[SETS] = [*st.session_state.get(SETS, ()), name][-MOST:]


def head(one: imported_sets.Kept) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        words = f"{one.name} · imported {when(one.imported)} · {count(one.files, 'file')}"
        notices.small(words, f"imported_head_{one.name}")
        with st.popover("Remove this set", key=f"published_remove_{one.name}", type="tertiary"):
            st.text("This deletes its files from this machine. Your own runs are kept.")
            key = f"published_delete_{one.name}"
            st.button("Delete it", key=key, type="primary", on_click=_delete, args=(one.name,))


def _delete(name: str) -> None:
    notices.attempt(_PROBLEM, imported_sets.delete, name)
    st.session_state[SETS] = [one for one in st.session_state[SETS] if one != name]

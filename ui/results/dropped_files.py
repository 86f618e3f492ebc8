"""The result files that a visitor has uploaded, or read from a folder.

Boundary: bytes in the session's memory, never on disk; they are gone after the visit.  A name is
shown, but never part of a path.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import streamlit as st

from engine.errors import BadInput
from engine.published.read import parsing

MEGABYTE = 2**20
MAX_MB = 64  # a file; server.maxUploadSize in .streamlit/config.toml says the same
TOTAL_MB = 256
MAX_FILES = 1_000
_FILES = "results_visit"


@dataclass(frozen=True)
class DroppedFile:
    """A file's printable name, its bytes and their digest."""

    name: str
    data: bytes
    digest: str


def files() -> tuple[DroppedFile, ...]:
    """The files of this visit, in the order they were added."""
    found: tuple[DroppedFile, ...] = st.session_state.get(_FILES, ())
    return found


def add(named: Iterable[tuple[str, bytes]]) -> tuple[DroppedFile, ...]:
    """Adds files, each content once; returns the given ones.  BadInput if they are too many."""
    new = [
        DroppedFile(parsing.shown(name), data, hashlib.sha256(data).hexdigest())
        for name, data in named
    ]
    every = tuple(dict.fromkeys((*files(), *new)))
    _check(every)
    st.session_state[_FILES] = every
    return tuple(dict.fromkeys(new))


def clear() -> None:
    st.session_state.pop(_FILES, None)


def _check(every: Sequence[DroppedFile]) -> None:
    if len(every) > MAX_FILES:
        raise BadInput(
            f"{len(every):,} files are more than {MAX_FILES:,} per visit: save them as a set "
            "with `python -m engine import FOLDER --save NAME`."
        )
    size = sum(len(file.data) for file in every)
    if size > TOTAL_MB * MEGABYTE:
        raise BadInput(
            f"{size / MEGABYTE:,.0f} MB are more than {TOTAL_MB} MB per visit: save them as a "
            "set with `python -m engine import FOLDER --save NAME`."
        )

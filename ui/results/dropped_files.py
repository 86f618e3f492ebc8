"""The result files that a visitor has dropped, or had read from a folder.

Boundary: bytes in the session's memory, never on disk; they go when the visit ends.  A name is
shown and never part of a path.
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
    """A file's name as it can be shown, its bytes and their digest."""

    name: str
    data: bytes
    digest: str


def files() -> tuple[DroppedFile, ...]:
    """Those of this visit, in the order in which they came."""
    found: tuple[DroppedFile, ...] = st.session_state.get(_FILES, ())
    return found


def add(brought: Iterable[tuple[str, bytes]]) -> tuple[DroppedFile, ...]:
    """Files beside those there are; one that is there already counts once.  Gives the brought ones.

    BadInput, and nothing is added, where it is too much.
    """
    new = [_brought(name, data) for name, data in brought]
    every = tuple(dict.fromkeys((*files(), *new)))
    _check(every)
    st.session_state[_FILES] = every
    return tuple(dict.fromkeys(new))


def clear() -> None:
    st.session_state.pop(_FILES, None)


def _brought(name: str, data: bytes) -> DroppedFile:
    return DroppedFile(parsing.shown(name), data, hashlib.sha256(data).hexdigest())


def _check(every: Sequence[DroppedFile]) -> None:
    if len(every) > MAX_FILES:
        raise BadInput(
            f"{len(every):,} files are more than {MAX_FILES:,} in a visit: keep them as a set "
            "with `python -m engine import FOLDER --save NAME`."
        )
    size = sum(len(one.data) for one in every)
    if size > TOTAL_MB * MEGABYTE:
        raise BadInput(
            f"{size / MEGABYTE:,.0f} MB are more than {TOTAL_MB} MB in a visit: keep them as a "
            "set with `python -m engine import FOLDER --save NAME`."
        )

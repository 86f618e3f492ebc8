"""A visitor's own files, for this visit only.

Boundary: bytes from the browser become files in a temporary folder, under names made here: an
uploaded file's name is shown and orders the pictures, but is never part of a path.  The folder is
deleted when the files are replaced, when the visit ends and when the server stops.  Runs of these
files are shown in this visit only, whatever a link names.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import streamlit as st

from engine.errors import BadInput
from engine.jobs.queue import Job
from engine.media import kinds
from engine.media.dataset import OWN
from engine.types import Sample

MAX_MB = 64  # a file; server.maxUploadSize in .streamlit/config.toml says the same
MAX_FILES = 64
FOLDER = "your-files"  # messages name a file by folder and number: your-files/2.npy
TYPES = tuple(ending[1:] for ending in kinds.READ_SUFFIXES)


class UploadedFile(Protocol):
    """The used part of Streamlit's UploadedFile."""

    @property
    def name(self) -> str: ...
    @property
    def file_id(self) -> str: ...
    @property
    def size(self) -> int: ...
    def getbuffer(self) -> memoryview: ...


class Visit:
    """A temporary folder that lives as long as this object."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="stagescope-visit-"))
        self._end = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)

    def end(self) -> None:
        self._end()

    def keep(self, files: Sequence[UploadedFile], busy: bool = False) -> list[tuple[str, Path]]:
        """(original name, path) of each file; BadInput if they are too many or too large.

        Earlier files are deleted, unless `busy`: live runs may still have to read them.
        """
        _check(files)
        drop = self.root / _digest(files)
        folder = drop / FOLDER
        if not busy:
            for other in set(self.root.iterdir()) - {drop}:
                shutil.rmtree(other, ignore_errors=True)
        if not folder.exists():
            _write(folder, files)
        return [(file.name, folder / _name(index, file)) for index, file in enumerate(files)]


def owner(sample: Sample | None) -> str:
    """The visit that owns the sample's files; "" for a sample of a dataset."""
    return str(visit().root) if sample is not None and sample.sequence == OWN else ""


def may_see(job: Job) -> bool:
    """Whether this visit may see a job: not if it uses another visit's files."""
    return not job.owner or job.owner == str(visit().root)


@st.cache_resource(scope="session", show_spinner=False, on_release=Visit.end)
def visit() -> Visit:
    """This session's folder."""
    return Visit()


def _check(files: Sequence[UploadedFile]) -> None:
    if len(files) > MAX_FILES:
        raise BadInput(f"{len(files)} files were added: add at most {MAX_FILES}.")
    for file in files:
        if file.size > MAX_MB * 2**20:
            raise BadInput(
                f"{file.name} has {file.size / 2**20:,.0f} MB: the limit is {MAX_MB} MB."
            )


def _digest(files: Sequence[UploadedFile]) -> str:
    return hashlib.sha256(repr([file.file_id for file in files]).encode()).hexdigest()[:16]


def _name(index: int, file: UploadedFile) -> str:
    """A name on disk: a number, and the file's ending if it is a known one."""
    ending = file.name.rsplit(".", 1)[-1].lower()
    return f"{index + 1}.{ending}" if ending in TYPES else f"{index + 1}"


def _write(folder: Path, files: Sequence[UploadedFile]) -> None:
    """Writes all files or none: a folder with its final name is complete."""
    part = folder.with_suffix(".part")
    try:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o700, parents=True)
        for index, file in enumerate(files):
            (part / _name(index, file)).write_bytes(file.getbuffer())
        part.rename(folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise BadInput(
            f"The files could not be saved ({error.strerror}): free some space."
        ) from error

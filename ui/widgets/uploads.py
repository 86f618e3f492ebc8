"""A visitor's own files, for this visit only.

They become files in a temporary folder, under names made here: an uploaded file's name is shown
and orders the pictures, but is never part of a path.  The folder is deleted when the visit ends and
when the server stops.  Runs of these files are shown in this visit only, whatever a link names;
those that are saved go to another folder of the session.
"""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from engine.errors import BadInput
from engine.jobs import queue
from engine.jobs.model_work import DraftJob, ExplainJob
from engine.jobs.queue import Job
from engine.jobs.run_job import RunJob
from engine.media import media_files
from engine.plain_files import advice, reason
from engine.quoting import listed, quoted, shown
from engine.storage.provenance import files_of
from engine.types import OWN, Sample

MAX_MB = 64  # a file; server.maxUploadSize in .streamlit/config.toml says the same
MAX_FILES = 64
MAX_KEPT_MB = 1024  # of earlier files, the newest ones
FOLDER = "your-files"  # messages name a file by folder and number: your-files/2.npy
_RUNS = "visit_runs"
TYPES = tuple(ending[1:] for ending in media_files.READ_SUFFIXES)


class Visit:
    """A temporary folder that lives as long as this object."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="stagescope-visit-"))
        self.end = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)

    def keep(
        self, files: Sequence[UploadedFile], live: Collection[Path] = ()
    ) -> list[tuple[str, Path]]:
        """(original name, path) of each file; BadInput if the disk is full.  Of earlier files,
        whose results may be shown, the last MAX_KEPT_MB stay, and those in `live`, which a run may
        still have to read."""
        ids = repr([file.file_id for file in files]).encode()
        drop = self.root / hashlib.sha256(ids).hexdigest()[:16]
        folder = drop / FOLDER
        needed = {drop, *(path.parent.parent for path in live)}
        room, others = MAX_KEPT_MB * 2**20, set(self.root.iterdir()) - needed
        for other in sorted(others, key=lambda drop: drop.stat().st_mtime_ns, reverse=True):
            room -= sum(path.stat().st_size for path in other.glob(f"{FOLDER}/*"))
            if room < 0:
                shutil.rmtree(other, ignore_errors=True)
        if not folder.exists():
            _write(folder, files)
        return [(file.name, folder / _name(index, file)) for index, file in enumerate(files)]


def gather(
    files: Sequence[UploadedFile], event_images: bool
) -> tuple[Sample | None, tuple[str, ...]]:
    """The sample of the files that can be used, and a sentence for each other file."""
    from engine.media import media_sources

    fitting, refused = within_limits(files)
    here, jobs = visit(), queue.manager().all()
    mine = [job for job in jobs if job.owner == str(here.root) and not job.ended]
    kept = here.keep(fitting, {path for job in mine for path in _read_by(job)})
    with st.spinner("Checking the files …"):
        faults = [
            fault(file.file_id, event_images, *one) for file, one in zip(fitting, kept, strict=True)
        ]
    sample, rejected = media_sources.own_sample(kept, faults, event_images)
    return sample, (*refused, *rejected)


@st.cache_data(max_entries=16 * MAX_FILES, show_spinner=False)
def fault(file_id: str, event_images: bool, _name: str, _path: Path) -> str:
    """What is wrong with a kept file, "" if nothing; a file is read once."""
    from engine.media import media_sources  # imports the decoders

    return media_sources.own_fault(_name, _path, event_images)


def within_limits(files: Sequence[UploadedFile]) -> tuple[list[UploadedFile], list[str]]:
    """The files that are kept, and a sentence for those that are too large or too many."""
    fitting = [file for file in files if file.size <= MAX_MB * 2**20]
    refused = [
        f"{quoted(file.name)} has {file.size / 2**20:,.1f} MB: make it smaller than {MAX_MB} MB."
        for file in files
        if file.size > MAX_MB * 2**20
    ]
    if more := fitting[MAX_FILES:]:
        names = listed(quoted(file.name) for file in more)
        refused.append(f"Only the first {MAX_FILES} files are used, without {names}: remove some.")
    return fitting[:MAX_FILES], refused


def _read_by(job: Job) -> Iterator[Path]:
    samples: Sequence[Sample] = ()
    if isinstance(job, RunJob):
        samples = (job.request.sample,)
    elif isinstance(job, ExplainJob):
        samples = (job.request.run.sample,)
    elif isinstance(job, DraftJob):
        samples = job.request.samples
    for sample in samples:
        yield from files_of(sample)


def owner(sample: Sample | None) -> str:
    """The visit that owns the sample's files; "" for a sample of a dataset."""
    return str(visit().root) if sample is not None and sample.sequence == OWN else ""


def may_see(job: Job) -> bool:
    """Whether this visit may see a job: not if it uses another visit's files."""
    return not job.owner or job.owner == str(visit().root)


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda visit: visit.end())
def visit() -> Visit:
    return Visit()


@st.cache_resource(scope="session", show_spinner=False, on_release=lambda visit: visit.end())
def runs_of_visit() -> Visit:
    """The folder of this session's saved runs, which no other visit lists."""
    st.session_state[_RUNS] = True
    return Visit()


def runs_folder() -> Path | None:
    return runs_of_visit().root if st.session_state.get(_RUNS) else None


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
            f"The files could not be saved in {shown(folder.parent)} ({reason(error)}): "
            f"{advice(error, 'make this folder writable')}."
        ) from error

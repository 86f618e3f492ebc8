"""Event files: one reader module per format, found by the file's content and then by its name.

A reader module has `opened(path, name)`, a context manager that gives a Recording.  It reports
everything that is wrong with a file as MediaError with the name, and never runs code from it.  Its
columns are plain numbers as they are in the file, and times in microseconds; event_columns.py
checks the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path

from engine.errors import MediaError
from engine.media import kinds
from engine.media.recording import Recording

# A format is one module here and one line in this table.
READERS: Mapping[kinds.FileKind, str] = {
    kinds.NPY: "npy",
    kinds.PROPHESEE_RAW: "prophesee",
    kinds.PROPHESEE_DAT: "dat",
    kinds.AEDAT4: "aedat4",
    kinds.NPZ: "npz",
    kinds.HDF5: "hdf5",
    kinds.CALTECH: "caltech",
    kinds.TEXT: "text",
}


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a file; MediaError for a file that is no event file."""
    kind = kinds.of_file(path, path.name) or kinds.NPY
    if kind not in READERS:
        raise MediaError(kind.refusal(name, "a recording of events"))
    reader = import_module(f"engine.media.readers.{READERS[kind]}")
    found: AbstractContextManager[Recording] = reader.opened(path, name)
    with found as recording:
        yield recording

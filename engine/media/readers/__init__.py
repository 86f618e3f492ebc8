"""Event files: one reader module per format, which the kind of the file names (kinds.py).

A reader module has `opened(path, name)`, a context manager that gives a Recording.  It reports
everything that is wrong with a file as MediaError with the name, or as Damaged, and never runs code
from it.  Its columns are plain numbers as they are in the file, and times in microseconds;
event_columns.py checks the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from engine.errors import MediaError
from engine.media import kinds
from engine.media.recording import Damaged, Recording


@contextmanager
def opened(path: Path, name: str) -> Iterator[Recording]:
    """The recording in a file; MediaError for a file that is no event file."""
    kind = kinds.of_file(path, path.name) or kinds.NPY
    if kind.field != "events":
        raise MediaError(kind.refusal(name, "a recording of events"))
    reader = import_module(f"engine.media.readers.{kind.reader}")
    try:
        with reader.opened(path, name) as recording:
            yield recording
    except Damaged as error:
        raise MediaError(
            f"{name} is damaged or not {kind.name} ({error}): copy it again or record it again."
        ) from error

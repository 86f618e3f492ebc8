"""Files that a user asks for, such as a report, a baseline or a picture.  A file is complete or
absent.  It is always new: nothing that exists is replaced, whoever wrote it, and no file is put
among those of a run."""

from collections.abc import Iterable
from pathlib import Path

from engine.errors import StoreError
from engine.plain_files import not_written, write_whole
from engine.quoting import shown
from engine.storage.run_header import HEADER


def refuse(path: Path) -> None:
    """StoreError unless the file can be made; it is made for an instant to find out."""
    try:
        _refuse_in_run(path, "file")
        path.open("xb").close()
        path.unlink()
    except FileExistsError as error:
        also = ", or delete this one first" if path.is_file() else ""
        raise StoreError(f"{shown(path)} exists already: name another file{also}.") from error
    except OSError as error:
        raise not_written(path, error, "name another file") from error


def _refuse_in_run(path: Path, what: str) -> None:
    if (path.parent / HEADER).exists():
        raise StoreError(f"{shown(path)} is in the folder of a run: name a {what} elsewhere.")


def make_folder(path: Path) -> None:
    """Makes a new folder, or takes an empty one; StoreError if it holds something."""
    try:
        _refuse_in_run(path, "folder")
        path.mkdir(parents=True, exist_ok=True)
        empty = not any(path.iterdir())
    except FileExistsError:
        empty = False
    except OSError as error:
        raise not_written(path, error, "name another folder") from error
    if not empty:
        raise StoreError(f"{shown(path)} exists already: name a new folder.")


def write(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Writes the file; StoreError if there is one already or it cannot be written."""
    refuse(path)
    try:
        write_whole(path, data)
    except OSError as error:
        raise not_written(path, error, "name another file") from error

"""A file's bytes, its place among its neighbours, and the name an error message calls it by.

Boundary: knows nothing of formats.
"""

from __future__ import annotations

import re
from pathlib import Path

from engine.errors import MediaError

MAX_BYTES = 1 << 30


def label(path: Path) -> str:
    """The file and its folder, as in "seq/000000.npy": enough to find it, short enough to show."""
    return f"{path.parent.name}/{path.name}" if path.parent.name else path.name


def by_number(path: Path) -> tuple[float, str]:
    """Sort key: the last integer of the name, so that `_10` follows `_2`; names without last."""
    numbers = re.findall(r"[0-9]{1,15}", path.stem)
    return (float(numbers[-1]) if numbers else float("inf"), path.name)


def content(path: Path) -> bytes:
    """All bytes of a file; MediaError if it is missing, unreadable, empty or above 1 GiB."""
    name = label(path)
    try:
        if not path.is_file():
            raise MediaError(f"{name} does not exist or is not a file: restore it or pick another.")
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise MediaError(f"{name} has {size:,} bytes: give a file of at most {MAX_BYTES:,}.")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        raise MediaError(f"{name} could not be read ({error}): check the file.") from error
    if not data:
        raise MediaError(f"{name} is empty (0 bytes): copy it again from its source.")
    return data

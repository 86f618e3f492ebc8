"""The free space of a disk."""

from __future__ import annotations

import shutil
from pathlib import Path


def free_bytes(place: Path) -> int | None:
    """Of the disk that holds this folder, or will hold it; None if that is not known."""
    try:
        there = next(path for path in (place, *place.absolute().parents) if path.exists())
        return shutil.disk_usage(there).free
    except (OSError, StopIteration):
        return None

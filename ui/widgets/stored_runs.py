"""Run folders as caches see them: sizes and times of change of their files."""

from __future__ import annotations

from pathlib import Path

from engine.storage import run_store
from engine.storage.run_header import HEADER

Stamp = tuple[tuple[str, int, int], ...]  # (file, size, time of last change)
FILES = (HEADER, run_store.RESULTS, run_store.JOURNAL, run_store.SUMMARY)


def stamp_of(folder: Path, names: tuple[str, ...] = FILES) -> Stamp:
    """Size and time of change of the run folder's files; missing files are left out."""
    found = []
    for name in names:
        try:
            stat = (folder / name).stat()
        except OSError:
            continue
        found.append((f"{folder}/{name}", stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def stamps(base: Path, names: tuple[str, ...] = FILES) -> tuple[Stamp, ...]:
    """Of all runs in a folder."""
    return tuple(stamp_of(path.parent, names) for path in sorted(base.glob(f"*/{HEADER}")))

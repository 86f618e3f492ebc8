"""The demo dataset: scenes written to disk in the same form as a real dataset.

Boundary: seeds in, a folder out. engine/media reads the folder like any other.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.errors import DatasetError
from engine.plain_files import read_limited, reason
from engine.quoting import shown

VERSION = "2"  # raise it when scenes, simulator or layout change: the dataset is then made anew
MARKER = "demo-version.txt"
MAX_MARKER = 100  # bytes
INDEX = "EventGPT_Instruction_Subset.json"
# Seeds of the scenes that the demo checkpoints were trained and evaluated on.
TRAINING = range(0, 3200)
HELD_OUT = range(900_000, 900_400)
# Chosen so that every value of every attribute occurs; none is trained on or held out.
SEEDS: tuple[int, ...] = (
    200_052, 200_002, 200_037, 200_006, 200_011, 200_003, 200_000, 200_009,
    200_014, 200_015, 200_010, 200_031, 200_043, 200_020,
)  # fmt: skip


def ensure_dataset(root: Path) -> Path:
    """The demo dataset at root, made if it is not there or of another version; returns root.

    DatasetError if the folder cannot be written.
    """
    try:
        return root if _current(root) else _make(root)
    except OSError as error:
        raise DatasetError(
            f"The demo dataset cannot be made in {shown(root)} ({reason(error)}): set "
            "STAGESCOPE_CACHE_DIR to a folder that can be written."
        ) from error


def _make(root: Path) -> Path:
    root.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{root.name}-", dir=root.parent))
    try:
        write_dataset(fresh, SEEDS)
        (fresh / MARKER).write_text(VERSION, encoding="utf-8")
        _put(fresh, root)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return root


def write_dataset(root: Path, seeds: Iterable[int]) -> Path:
    """The scenes of the seeds below root, with their index; returns root."""
    from engine.demo.scenes import render  # needed once: scenes that are there import nothing
    from engine.demo.writing import write_scene

    root.mkdir(parents=True, exist_ok=True)
    records = [write_scene(root, render(seed)) for seed in seeds]
    text = json.dumps(records, indent=2, ensure_ascii=False)
    (root / INDEX).write_text(text + "\n", encoding="utf-8")
    return root


def _current(root: Path) -> bool:
    with suppress(OSError):  # what is no regular file, or too large, is no marker
        found = read_limited(root / MARKER, MAX_MARKER)
        return found == VERSION.encode() and (root / INDEX).is_file()
    return False


def _put(fresh: Path, root: Path) -> None:
    """Rename the finished folder into place; another process may have been faster."""
    stale = fresh.with_name(fresh.name + "-old")
    try:
        if root.exists():
            root.rename(stale)
        fresh.rename(root)
    except OSError:
        if not _current(root):
            raise
    finally:
        shutil.rmtree(stale, ignore_errors=True)

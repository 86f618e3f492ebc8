"""The folder of a connection to Ray: its log, and the files of a temporary local Ray.

Boundary: creates the folder and removes abandoned ones; the creator removes its folder at the end.
The process that uses Ray holds the lock in it for its whole life.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from engine.storage.file_lock import held

PREFIX = "stagescope-ray-"
LOCK = "lock"
STALE_S = 300.0  # Ray's processes may outlive a killed process by up to two minutes
# A base path of this length leaves enough of a socket path's 107 characters for Ray.
_ROOM = 18


def make() -> Path:
    """Creates a folder, and removes abandoned ones."""
    base = _base()
    sweep(base)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))


def sweep(base: Path) -> None:
    """Removes this user's folders whose process was killed."""
    latest = time.time() - STALE_S
    for folder in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            mine = sys.platform == "win32" or about.st_uid == os.getuid()
            if mine and about.st_mtime < latest and not held(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _base() -> Path:
    """A base folder that is short enough for Ray's socket paths."""
    usual = tempfile.gettempdir()
    return Path("/tmp" if len(usual) > _ROOM and Path("/tmp").is_dir() else usual)

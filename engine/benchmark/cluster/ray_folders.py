"""The folder of a connection to Ray: its log, and the files of a Ray of the run's own.

Boundary: makes it and removes what others have left; whoever made it removes it at the end.  The
lock in it is held by the process that talks to Ray, for as long as that lives.
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
STALE_S = 300.0  # Ray's own processes outlive one that was killed by up to two minutes
# Characters of a folder's name that leave room for ours, Ray's session and its socket's (107).
_ROOM = 18


def make() -> Path:
    """A new one; those that were left behind are removed."""
    base = _base()
    sweep(base)
    return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))


def sweep(base: Path) -> None:
    """Removes folders of this user that a hub which was killed has left behind."""
    latest = time.time() - STALE_S
    for folder in base.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            mine = sys.platform == "win32" or about.st_uid == os.getuid()
            if mine and about.st_mtime < latest and not held(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)


def _base() -> Path:
    """Where Ray's sockets find room for their names."""
    usual = tempfile.gettempdir()
    return Path("/tmp" if len(usual) > _ROOM and Path("/tmp").is_dir() else usual)

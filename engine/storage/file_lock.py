"""An exclusive lock on a file, held while its process lives.

The operating system releases the lock when the process ends, so there are no stale locks.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from engine.plain_files import open_descriptor

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PATIENCE_S = 0.5  # `held` takes the lock for an instant
_PAUSE_S = 0.02


class FileLock:
    """Held between acquire() and release(); also exclusive within one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def acquire(self, patience_s: float = PATIENCE_S) -> bool:
        """Whether the lock was acquired; OSError if its file cannot be created or is a link."""
        descriptor = open_descriptor(self.path, os.O_RDWR | os.O_CREAT, links=False)
        end = time.monotonic() + patience_s
        while not _take(descriptor):
            if time.monotonic() > end:
                os.close(descriptor)
                return False
            time.sleep(_PAUSE_S)
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            _let_go(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None


def held(path: Path) -> bool:
    """Whether a process holds the lock now."""
    with contextlib.suppress(OSError):
        descriptor = open_descriptor(path, os.O_RDWR, links=False)
        try:
            if not _take(descriptor):
                return True
            _let_go(descriptor)
        finally:
            os.close(descriptor)
    return False


def _take(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _let_go(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

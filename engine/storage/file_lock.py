"""An exclusive lock on the open file that is written, held until the file is closed.

It is not on a second file, which could be deleted.  The operating system releases it when the
process ends, so there are no stale locks.
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
_FAR = 2**31 - 2  # Windows keeps others from a locked byte: this one is behind the usual lines


def acquire(descriptor: int, patience_s: float = PATIENCE_S) -> bool:
    """Whether the lock was acquired; it is exclusive within one process too."""
    end = time.monotonic() + patience_s
    while not _take(descriptor):
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_S)
    return True


def held(path: Path) -> bool:
    """Whether a process holds the lock now."""
    with contextlib.suppress(OSError):
        descriptor = open_descriptor(path, os.O_RDWR, links=False)
        try:
            return not _take(descriptor)
        finally:
            os.close(descriptor)
    return False


def _take(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True

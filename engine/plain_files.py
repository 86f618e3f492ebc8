"""Opens files of unknown origin: regular files only, up to a stated size.

Boundary: bytes in memory out; what they mean is the caller's.  A FIFO, a device or a folder is
refused before anything is read, and a file that grows while it is read stays within the limit.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from engine.errors import BadInput


def read_bytes(path: Path, limit: int, what: str) -> bytes:
    """All bytes of a regular file of at most `limit` bytes; BadInput says why there are none.

    what: how messages call the file.
    """
    try:
        # Without O_NONBLOCK the open of a FIFO waits for a writer.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise BadInput(f"{what} is no regular file: name another file.")
            data = file.read(limit + 1)
    except OSError as error:
        raise BadInput(f"{what} cannot be read ({error.strerror}): check the file.") from error
    except ValueError as error:  # a null byte in the path
        raise BadInput(f"{what} has a path that cannot be used: correct it.") from error
    if len(data) > limit:
        raise BadInput(f"{what} has more than {limit:,} bytes: choose a smaller file.")
    return data

"""Reads of small files that stay small: regular files only, up to a stated size.

Boundary: bytes of one file.  What the bytes mean is the caller's business.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from engine.errors import BadInput

_PIECE = 2**20


def read_bytes(path: Path, limit: int, what: str) -> bytes:
    """The whole content of a regular file of at most `limit` bytes, or BadInput.

    `what` names the file's role in the sentence.  Links are followed; a pipe is never waited for.
    FileNotFoundError is left to the caller, as an absent file may be in order.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _binary())
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise BadInput(f"{what} {path} cannot be read ({_reason(error)}).") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadInput(f"{what} {path} is not a regular file: replace it with one.")
        return _read(descriptor, path, limit, what)
    except OSError as error:
        raise BadInput(f"{what} {path} cannot be read ({_reason(error)}).") from error
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path, limit: int, what: str) -> bytes:
    pieces, left = list[bytes](), limit + 1
    while left > 0 and (piece := os.read(descriptor, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if left <= 0:
        raise BadInput(f"{what} {path} is larger than {limit:,} bytes: shorten or replace it.")
    return b"".join(pieces)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _binary() -> int:
    return getattr(os, "O_BINARY", 0)

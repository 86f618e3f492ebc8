"""Small pictures of samples, kept in a folder so that a gallery of thousands opens at once.

Boundary: a sample in, a WebP out.  A file's name depends on the sample's files, their sizes and
times of last change, and on the reader.  A folder that cannot be written costs only time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from PIL import Image as Pictures

from engine import media
from engine.errors import StageScopeError
from engine.plain_files import read_limited, write_whole
from engine.types import Sample

SIZE = (320, 320)  # pixels, at most
MAX_FILES = 10_000  # about 80 MB
_MAX_BYTES = 1 << 20
_EVERY = 500  # writes between two looks at the number of files
_QUALITY = 86
_writes = count(1)


def stamp_of(sample: Sample) -> str:
    """The sample's files, sizes and times of last change, and its window, on which its pictures
    depend.

    A single string, because Streamlit hashes a tuple a hundred times slower.
    """
    window = () if sample.window is None else (f"window {sample.window}",)
    return "\n".join((*(_state(path) for path in _paths(sample)), *window))


def picture(sample: Sample, stamp: str, folder: Path | None) -> bytes | None:
    """The sample's WebP, from the folder if it is there; None if the sample has no picture.

    Without a folder nothing is kept.
    """
    if folder is None:
        return _made(sample)
    name = hashlib.blake2b(f"{media.READER} {stamp}".encode(), digest_size=16).hexdigest()
    path = folder / f"{name}.webp"
    if found := _read(path):
        return found
    if made := _made(sample):
        _keep(path, made)
    return made


def encode(picture: Pictures.Image) -> bytes:
    """The picture as a WebP."""
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=_QUALITY, method=0)
    return buffer.getvalue()


def _made(sample: Sample) -> bytes | None:
    image = media.thumbnail(sample)
    if image is None:
        return None
    found = Pictures.fromarray(image)
    found.thumbnail(SIZE)
    return encode(found)


def _read(path: Path) -> bytes | None:
    """The file's bytes; None if it is missing or damaged."""
    with contextlib.suppress(OSError):
        data = read_limited(path, _MAX_BYTES, links=False)
        if data.startswith(b"RIFF") and int.from_bytes(data[4:8], "little") == len(data) - 8:
            return data
    return None


def _keep(path: Path, data: bytes) -> None:
    with contextlib.suppress(OSError, StageScopeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
        if next(_writes) % _EVERY == 0:
            _remove_oldest(path.parent)


def _remove_oldest(folder: Path) -> None:
    """Leaves the MAX_FILES newest files."""
    found = sorted(folder.glob("*.webp"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in found[MAX_FILES:]:
        path.unlink(missing_ok=True)


def _paths(sample: Sample) -> Iterator[Path]:
    yield from (*sample.event_images, *sample.frames, *sample.images)
    yield from (path for path in (sample.events, sample.mp4) if path is not None)


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return f"{path} is gone"
    return f"{path} {found.st_mtime_ns} {found.st_size}"

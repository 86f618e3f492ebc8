"""Small pictures of samples, kept in a folder so that a gallery of thousands opens at once.  A
file's name depends on the sample's files, their sizes and times of last change, and on the reader.
A folder that cannot be written costs only time.  Several pictures also go on one sheet, in reading
order."""

import contextlib
import hashlib
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from PIL import Image as Pictures

from engine import media
from engine.errors import StageScopeError
from engine.media import images
from engine.plain_files import read_limited, write_whole
from engine.types import Image, Sample

SIZE = (320, 320)  # pixels, at most
MAX_FILES = 10_000  # about 80 MB
_MAX_BYTES = 1 << 20
_EVERY = 500  # writes between two looks at the number of files
_QUALITY = 86
_writes = count(1)
SHEET = (1200, 600)  # every sheet has this shape, so that columns line up
_GAP = 6


def stamp_of(sample: Sample) -> str:
    """The sample's files, sizes and times of last change, and its window, on which its pictures
    depend.  A single string, because Streamlit hashes a tuple a hundred times slower."""
    found = list[str]()
    files = [*sample.event_images, *sample.frames, *sample.images, sample.events, sample.mp4]
    for path in filter(None, files):
        try:
            state = path.stat()
            found.append(f"{path} {state.st_mtime_ns} {state.st_size}")
        except OSError:
            found.append(f"{path} is gone")
    if sample.window is not None:
        found.append(f"window {sample.window}")
    return "\n".join(found)


def picture(sample: Sample, stamp: str, folder: Path | None) -> bytes | None:
    """The sample's WebP, from the folder if it is there; None if the sample has no picture.
    Without a folder nothing is kept."""
    name = hashlib.blake2b(f"{media.READER} {stamp}".encode(), digest_size=16).hexdigest()
    path = folder / f"{name}.webp" if folder else None
    if path:
        with contextlib.suppress(OSError):  # a missing or damaged file is made again
            data = read_limited(path, _MAX_BYTES, links=False)
            if data.startswith(b"RIFF") and int.from_bytes(data[4:8], "little") == len(data) - 8:
                return data
    from engine.media import media_sources  # the decoders, for a picture not yet made

    first = next(media_sources.previews(sample), None)
    if first is None:
        return None
    small = Pictures.fromarray(images.shrink(first, SIZE[0]))
    small.thumbnail(SIZE)
    made = encode(small)
    if path:
        with contextlib.suppress(OSError, StageScopeError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, made)
            if next(_writes) % _EVERY == 0:
                every = path.parent.glob("*.webp")
                newest = sorted(every, key=lambda one: one.stat().st_mtime_ns, reverse=True)
                for old in newest[MAX_FILES:]:
                    old.unlink(missing_ok=True)
    return made


def encode(picture: Pictures.Image) -> bytes:
    return images.encoded(picture, "WEBP", quality=_QUALITY, method=0)


def sheet(images: Sequence[Image]) -> Pictures.Image:
    """The pictures on one transparent sheet, as large as possible.  Cells have the largest width
    and height of all pictures; other pictures are scaled to fit."""
    width, height = (max(image.shape[side] for image in images) for side in (1, 0))
    columns, cell = grid(len(images), width / height)
    page = Pictures.new("RGBA", SHEET)
    for index, image in enumerate(images):
        picture = Pictures.fromarray(image)
        scale = min((room - _GAP) / side for room, side in zip(cell, picture.size, strict=True))
        size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
        row, column = divmod(index, columns)
        corner = column * cell[0], row * cell[1]
        page.paste(picture.resize(size, Pictures.Resampling.BICUBIC), corner)
    return page


def grid(number: int, aspect: float) -> tuple[int, tuple[int, int]]:
    """(columns, cell size in pixels) with the largest cells for `number` pictures on a sheet."""

    def cell(columns: int) -> tuple[int, int]:
        rows = -(-number // columns)
        width = min(SHEET[0] / columns, SHEET[1] / rows * aspect)
        return max(1, int(width)), max(1, int(width / aspect))

    columns = max(range(1, number + 1), key=lambda n: (cell(n)[0], -n))
    return columns, cell(columns)

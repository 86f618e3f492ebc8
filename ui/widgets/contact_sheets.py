"""Pictures for the browser: one contact sheet per model, one preview per sample.

Boundary: the engine decodes files; this module only shrinks and encodes the pictures.  Each content
is encoded once (st.cache_data), because encoding is too slow for every rerun.  Pages get data URLs:
st.image passes them on unchanged, but would convert WebP bytes to PNG at every rerun (0.1 s for a
sheet).
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from PIL import Image as Pictures

from engine import media
from engine.types import EXTENT_WORDS, FRAME_WORDS, Extent, Image, Media, MediaKind, Sample
from ui.widgets.text import count

PREVIEW = (320, 320)
SHEET = (1200, 600)  # every sheet has this shape, so that columns line up
_GAP = 6
_QUALITY = 86
NOUNS: dict[MediaKind, str] = {"events": "event image", "video": "frame", "image": "frame"}


@dataclass(frozen=True)
class ContactSheet:
    """The pictures that a model is shown: a data URL of the sheet and the words that go with it."""

    picture: str
    caption: str
    alt: str
    notes: tuple[str, ...]


def seen(sample: Sample, kind: MediaKind, rule: str, extent: Extent = "slice") -> ContactSheet:
    """The pictures of one media kind, or MediaError."""
    return _seen(sample, kind, rule, extent, sample.id, stamp_of(sample))


@st.cache_data(max_entries=48, show_spinner=False)
def _seen(
    _sample: Sample, kind: MediaKind, rule: str, extent: Extent, name: str, stamp: str
) -> ContactSheet:
    found = media.load(_sample, kind, rule, extent)
    what = count(len(found.images), NOUNS[kind])
    order = ", in the order of time" if len(found.images) > 1 else ""
    return ContactSheet(
        picture=address(sheet(found.images)),
        caption=_caption(found, what),
        alt=f"What the model sees of {name}: {_caption(found, what)}{order}.",
        notes=found.notes,
    )


def _caption(found: Media, what: str) -> str:
    """How many pictures, their source, and how they were chosen."""
    rule = {**FRAME_WORDS, **EXTENT_WORDS}.get(found.rule, found.rule)
    shown = f"{found.source} ({rule})" if rule else found.source
    return shown if found.source.startswith(what) else f"{what}: {shown}"


def preview(sample: Sample) -> str | None:
    """A data URL of a small picture of the sample, None if it has none."""
    return _preview(sample, stamp_of(sample))


@st.cache_data(max_entries=256, show_spinner=False)
def _preview(_sample: Sample, stamp: str) -> str | None:
    image = media.thumbnail(_sample)
    if image is None:
        return None
    picture = Pictures.fromarray(image)
    picture.thumbnail(PREVIEW)
    return address(_encode(picture))


def address(picture: bytes) -> str:
    """A data URL of a WebP."""
    return f"data:image/webp;base64,{base64.b64encode(picture).decode()}"


def stamp_of(sample: Sample) -> str:
    """The sample's files, sizes and times of last change, on which its pictures depend.

    A single string, because Streamlit hashes a tuple a hundred times slower.
    """
    return "\n".join(_state(path) for path in _paths(sample))


def _paths(sample: Sample) -> Iterator[Path]:
    yield from (*sample.event_images, *sample.frames, *sample.images)
    yield from (path for path in (sample.events, sample.mp4) if path is not None)


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return f"{path} is gone"
    return f"{path} {found.st_mtime_ns} {found.st_size}"


def sheet(images: Sequence[Image]) -> bytes:
    """The pictures in reading order on one transparent sheet, as large as possible.

    Cells have the largest width and height of all pictures; other pictures are scaled to fit.
    """
    width, height = (max(image.shape[side] for image in images) for side in (1, 0))
    columns, cell = grid(len(images), width / height)
    page = Pictures.new("RGBA", SHEET)
    for index, image in enumerate(images):
        room = (max(1, cell[0] - _GAP), max(1, cell[1] - _GAP))
        picture = _fitted(Pictures.fromarray(image), room)
        row, column = divmod(index, columns)
        page.paste(picture, (column * cell[0], row * cell[1]))
    return _encode(page)


def grid(number: int, aspect: float) -> tuple[int, tuple[int, int]]:
    """(columns, cell size in pixels) with the largest cells for `number` pictures on a sheet."""

    def cell(columns: int) -> tuple[int, int]:
        rows = -(-number // columns)
        width = min(SHEET[0] / columns, SHEET[1] / rows * aspect)
        return max(1, int(width)), max(1, int(width / aspect))

    columns = max(range(1, number + 1), key=lambda n: (cell(n)[0], -n))
    return columns, cell(columns)


def _fitted(picture: Pictures.Image, room: tuple[int, int]) -> Pictures.Image:
    """The picture scaled to fit; no side is shorter than a pixel."""
    scale = min(room[0] / picture.width, room[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Pictures.Resampling.BICUBIC)


def _encode(picture: Pictures.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=_QUALITY, method=0)
    return buffer.getvalue()

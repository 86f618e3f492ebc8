"""Pictures as a browser shows them: one contact sheet per model, one preview per sample.

Boundary: the engine decodes files, this module only shrinks and encodes what it gives.  Encoding
happens once per content, under st.cache_data, because it costs more than a rerun may.  Pages get
addresses that hold the picture: st.image passes those on as they are, while bytes of WebP it would
decode and write as PNG at every rerun (0.1 s for a sheet).
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
from engine.types import Extent, Image, Media, MediaKind, Sample
from ui.widgets.text import count

PREVIEW = (320, 320)
SHEET = (1200, 600)  # every sheet has this shape, so that columns line up
_GAP = 6
_QUALITY = 86
NOUNS: dict[MediaKind, str] = {"events": "event image", "video": "frame", "image": "frame"}


@dataclass(frozen=True)
class Seen:
    """What a model is shown: a contact sheet's address and the words that go with it."""

    picture: str
    caption: str
    alt: str
    notes: tuple[str, ...]


def seen(sample: Sample, kind: MediaKind, rule: str, extent: Extent = "slice") -> Seen:
    """The pictures of one media kind, or MediaError."""
    return _seen(sample, kind, rule, extent, sample.id, stamp_of(sample))


@st.cache_data(max_entries=48, show_spinner=False)
def _seen(
    _sample: Sample, kind: MediaKind, rule: str, extent: Extent, name: str, stamp: str
) -> Seen:
    found = media.load(_sample, kind, rule, extent)
    what = count(len(found.images), NOUNS[kind])
    order = ", in the order of time" if len(found.images) > 1 else ""
    return Seen(
        picture=address(sheet(found.images)),
        caption=_caption(found, what),
        alt=f"What the model sees of {name}: {_caption(found, what)}{order}.",
        notes=found.notes,
    )


def _caption(found: Media, what: str) -> str:
    """How many pictures, from where, chosen how."""
    return found.shown if found.source.startswith(what) else f"{what}: {found.shown}"


def preview(sample: Sample) -> str | None:
    """The address of a small picture of the sample, None if it has none."""
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
    """Which files a sample has and when each last changed: what its pictures depend on.

    One text, because Streamlit hashes a tuple part by part, a hundred times slower.
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
    """The pictures in reading order on one transparent sheet, as large as they fit.

    The cells have the shape of the largest sides; a picture of another shape is fitted into its
    cell, as a model's image processor fits it too.
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
    """(columns, cell size in pixels) that show `number` pictures largest on a sheet."""

    def cell(columns: int) -> tuple[int, int]:
        rows = -(-number // columns)
        width = min(SHEET[0] / columns, SHEET[1] / rows * aspect)
        return max(1, int(width)), max(1, int(width / aspect))

    columns = max(range(1, number + 1), key=lambda n: (cell(n)[0], -n))
    return columns, cell(columns)


def _fitted(picture: Pictures.Image, room: tuple[int, int]) -> Pictures.Image:
    """The picture as large as it fits, and never thinner than a pixel."""
    scale = min(room[0] / picture.width, room[1] / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    return picture.resize(size, Pictures.Resampling.BICUBIC)


def _encode(picture: Pictures.Image) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=_QUALITY, method=0)
    return buffer.getvalue()

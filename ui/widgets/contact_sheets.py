"""Pictures for the browser: one contact sheet per model, one preview per sample.  Each content is
encoded once (st.cache_data), because encoding is too slow for every rerun.  Pages get data URLs:
st.image would convert WebP bytes to PNG at every rerun (0.1 s for a sheet)."""

import base64
from typing import Any, NamedTuple

import streamlit as st

from engine import media, settings
from engine.media import thumbnails
from engine.media.thumbnails import stamp_of
from engine.types import EXTENT_WORDS, FRAME_WORDS, OWN, MediaKind, MediaOptions, Sample
from ui.widgets.text import count

NOUNS: dict[MediaKind, str] = {"events": "event image", "video": "frame", "image": "frame"}
# For caches: a sample changes with its files.
BY_FILES: Any = {Sample: lambda sample: f"{sample.id}\n{stamp_of(sample)}", MediaOptions: repr}


class ContactSheet(NamedTuple):
    """The pictures that a model is shown: a data URL of the sheet and the words that go with it."""

    picture: str
    caption: str
    alt: str
    notes: tuple[str, ...]


@st.cache_data(max_entries=48, show_spinner=False, hash_funcs=BY_FILES)
def seen(sample: Sample, kind: MediaKind, how: MediaOptions) -> ContactSheet:
    """The pictures of one media kind, or MediaError."""
    found = media.load(sample, kind, how)
    what = count(len(found.images), NOUNS[kind])
    rule = {**FRAME_WORDS, **EXTENT_WORDS}.get(found.rule, found.rule)
    caption = f"{found.source} ({rule})" if rule else found.source
    if not found.source.startswith(what):
        caption = f"{what}: {caption}"
    order = ", in the order of time" if len(found.images) > 1 else ""
    alt = f"What the model sees of {sample.id}: {caption}{order}."
    sheet = thumbnails.encode(thumbnails.sheet(found.images))
    return ContactSheet(address(sheet), caption, alt, found.notes)


@st.cache_data(max_entries=1024, show_spinner=False, hash_funcs=BY_FILES)
def preview(sample: Sample) -> str | None:
    """A data URL of a small picture of the sample, None if it has none.  Those of datasets are also
    kept on disk; a visitor's own files leave nothing behind."""
    folder = settings.load().cache_dir / "thumbnails" if sample.sequence != OWN else None
    picture = thumbnails.picture(sample, stamp_of(sample), folder)
    return None if picture is None else address(picture)


def address(picture: bytes, form: str = "webp") -> str:
    return f"data:image/{form};base64,{base64.b64encode(picture).decode()}"

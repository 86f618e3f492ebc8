"""Stage 1: turns a sample's files into the pictures that a kind of model is shown.

Each kind has sources in an order of preference; the first readable one is used, and the notes name
those that failed before it.  The digest covers exactly the bytes that were decoded.  Pillow and
PyAV are imported when the first sample is loaded, so importing this package is cheap.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from engine.errors import MediaError
from engine.machine import device
from engine.media.media_files import Data, pieces
from engine.types import DEFAULT_MEDIA, Media, MediaKind, MediaOptions, Sample

# Increase it whenever the same files give different pictures: this invalidates cached features.
READER = "3"


def load(sample: Sample, kind: MediaKind, how: MediaOptions = DEFAULT_MEDIA) -> Media:
    """The sample's event pictures, its frames chosen by the rule, or its middle frame.  MediaError
    if none of the sample's sources can be read."""
    from engine.media import media_sources

    reasons: list[str] = []
    for what, read in media_sources.of(sample, kind, how):
        try:
            found, content, tag = read()
        except MediaError as error:
            reasons.append(str(error).rstrip("."))
        else:
            notes = tuple(f"{reason}; {what} shown instead." for reason in reasons) + found.notes
            return replace(found, digest=_digest(found, content, tag), notes=notes)
    if reasons:
        raise MediaError("; ".join(reasons) + ".")
    default = f"Sample {sample.id} has no file for {kind}: pick another sample."
    raise MediaError(sample.missing.get(kind, default))


def prepare() -> None:
    """Imports the readers now, so that the first load is not slower than the others."""
    from engine.media import media_sources  # noqa: F401


def _digest(found: Media, content: Iterable[Data], tag: str) -> str:
    """64 hex digits over everything that decides the pictures, without names and folders."""
    reader = f"{READER} av {device.installed('av')} pillow {device.installed('pillow')}"
    parts: Iterable[Data] = map(str.encode, (reader, found.kind, found.rule, tag))
    digest = hashlib.blake2b(digest_size=32)
    for part in (*parts, *content):
        digest.update(len(part).to_bytes(8, "little"))  # separates the parts
        for piece in pieces(part):
            digest.update(piece)
    return digest.hexdigest()

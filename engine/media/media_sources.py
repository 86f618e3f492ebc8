"""The places a kind of media can come from, in the order in which they are tried.

Boundary: knows a sample's fields and the readers; which source wins is decided in the package's
`load`.  Every source keeps its files' bytes for the digest; a clip, which may be long, is read
again for it, and refused if it has changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.errors import MediaError
from engine.media import events, images, kinds, video
from engine.media.media_files import Data, content, label, large, opened
from engine.types import Extent, Image, MediaKind, Sample

MAX_ROOM = 1 << 30  # bytes of a sample's picture files and of their pixels
_SHOWN_INDICES = 16


@dataclass(frozen=True, eq=False)
class Found:
    """What one source gave: pictures, the files that decide them, and how it is described."""

    images: tuple[Image, ...]
    content: Sequence[Data]
    tag: str
    source: str
    notes: tuple[str, ...] = ()
    rule: str = ""  # where the source decides it: the extent of pictures drawn from raw events


@dataclass(frozen=True)
class Source:
    """A way to get the pictures, and what the notes call it."""

    what: str
    read: Callable[[], Found]


def of(sample: Sample, kind: MediaKind, rule: str, extent: Extent = "slice") -> list[Source]:
    """The sample's sources for one kind, best first; empty when it has no file for it."""
    if kind == "events":
        return _of_events(sample, events.SLICES, extent)
    if kind == "image":
        # One picture given beside a clip was given for the picture model.
        sources = _of_frames(sample, video.middle)
        return sources[::-1] if len(sample.images) == 1 else sources
    sources = _of_frames(sample, partial(video.choose, rule=rule))
    return sources[:-1] if len(sample.images) == 1 else sources


def previews(sample: Sample) -> list[Source]:
    """One picture each, the cheap ones first."""
    stills = [
        Source("a picture", partial(_folder, paths, video.middle, "picture"))
        for paths in (sample.images, sample.frames, sample.event_images)
        if paths
    ]
    moving = [Source("the clip", partial(_first_frame, sample.mp4))] if sample.mp4 else []
    raw = [Source("the events", partial(_rendered, sample.events, 1))] if sample.events else []
    return stills + moving + raw


def _of_events(sample: Sample, slices: int, extent: Extent) -> list[Source]:
    sources = []
    if sample.event_images:
        sources.append(Source("event images", partial(_event_images, sample.event_images)))
    if sample.events is not None:
        drawn = partial(_rendered, sample.events, slices, extent)
        sources.append(Source("raw events", drawn))
    return sources


def _of_frames(sample: Sample, choice: video.Choice) -> list[Source]:
    sources = []
    if sample.mp4 is not None:
        sources.append(Source("the clip", partial(_clip, sample.mp4, choice)))
    if sample.frames:
        frames = partial(_folder, sample.frames, choice, "frame")
        sources.append(Source("the frame folder", frames))
    if sample.images:
        sources.append(Source("the images", partial(_folder, sample.images, choice, "image")))
    return sources


def _event_images(paths: Sequence[Path]) -> Found:
    data, pictures = _decoded(paths, images.decode)
    return Found(tuple(pictures), data, "event images", f"{len(data)} event images")


def _decoded(
    paths: Sequence[Path], decode: Callable[[bytes, str], Image]
) -> tuple[list[bytes], list[Image]]:
    """Every file's bytes and picture; MediaError where together they take too much memory."""
    contents, pictures, room = list[bytes](), list[Image](), MAX_ROOM
    for path in paths:
        contents.append(content(path))
        pictures.append(decode(contents[-1], label(path)))
        room -= len(contents[-1]) + pictures[-1].nbytes
        if room < 0:
            raise MediaError(
                f"{len(paths):,} pictures take over {MAX_ROOM:,} bytes ({label(path)} is one of "
                "them): give fewer or smaller ones."
            )
    return contents, pictures


def _still(data: bytes, name: str) -> Image:
    """A picture of any kind that is read: PNG, JPEG or a GIF of one picture."""
    if kinds.by_content(data[: kinds.HEAD]) is not kinds.GIF:
        return images.decode(data, name)
    if kinds.moves(data):
        raise MediaError(f"{name} is an animated GIF, not a picture: give it as a clip.")
    return video.first(data, name)


def _rendered(path: Path, slices: int, extent: Extent = "slice") -> Found:
    data = content(path)
    stream = events.parse(data, label(path))
    try:
        pictures = tuple(events.render(stream, slices, extent))
    except MediaError as error:
        raise MediaError(f"{label(path)} is too short: {error}") from error
    source = f"raw events: {len(stream):,} in {stream.duration_ms:,.1f} ms, {slices} slices"
    notes = (*stream.warnings, *_sizes(pictures))
    return Found(pictures, [data], f"raw events {slices}", source, notes, extent)


def _sizes(pictures: Sequence[Image]) -> Iterator[str]:
    """A note where the event pictures differ in size."""
    sizes = [f"{image.shape[1]} x {image.shape[0]}" for image in pictures]
    if len(set(sizes)) > 1:
        yield (
            f"The event pictures differ in size ({', '.join(sizes)}): each is as large as its "
            "slice of events reaches."
        )


def _clip(path: Path, choice: video.Choice) -> Found:
    data = large(path)
    clip = video.decode(data, label(path), choice)
    notes = (*clip.notes, *_repeated("clip", clip.indices, clip.count))
    said = _said(_called(data), clip.indices, clip.count)
    return Found(clip.images, [data], "mp4", said, notes)


def _first_frame(path: Path) -> Found:
    data = large(path)
    return Found((video.first(data, label(path)),), [data], "mp4", f"{_called(data)}: frame 0")


def _called(data: Data) -> str:
    """What kind of clip the file is, in a word."""
    with opened(data) as file:
        kind = kinds.by_content(file.read(kinds.HEAD)) or kinds.MP4
    return kind.short


def _folder(paths: Sequence[Path], choice: video.Choice, what: str) -> Found:
    """The chosen ones of pictures that follow each other; the others are not even read."""
    indices = choice(len(paths))
    chosen = list(dict.fromkeys(indices))
    contents, decoded = _decoded([paths[i] for i in chosen], _still)
    data = dict(zip(chosen, contents, strict=True))
    pictures = dict(zip(chosen, decoded, strict=True))
    return Found(
        tuple(pictures[i] for i in indices),
        [data[i] for i in indices],
        f"{len(paths)} pictures",
        _said(f"{what} folder" if what == "frame" else f"{what}s", indices, len(paths)),
        tuple(_repeated("folder" if what == "frame" else "list", indices, len(paths))),
    )


def _repeated(what: str, indices: Sequence[int], count: int) -> Iterator[str]:
    """A note where the rule shows a frame more than once."""
    if len(set(indices)) < len(indices):
        frames = "1 frame" if count == 1 else f"{count:,} frames"
        yield f"The {what} has {frames} and the model is shown {len(indices)}: frames repeat."


def _said(what: str, indices: Sequence[int], count: int) -> str:
    numbers = ", ".join(str(i) for i in indices[:_SHOWN_INDICES])
    return f"{what}: frame{'s'[: len(indices) > 1]} {numbers} of {count:,}"

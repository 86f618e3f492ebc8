"""The sources of each kind of media, in the order in which they are tried.

Boundary: knows a sample's fields and the readers; `load` of the package chooses the source.  Every
source keeps its files' bytes for the digest.  A clip may be long, so it is read again for the
digest and refused if it has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from engine.errors import MediaError
from engine.media import events, images, kinds, video
from engine.media.media_files import Data, content, label, large, opened
from engine.types import ChosenFrames, Extent, Image, MediaKind, Sample

MAX_ROOM = 1 << 30  # bytes of a sample's picture files and of their pixels
_SHOWN_INDICES = 16


@dataclass(frozen=True, eq=False)
class LoadedPictures:
    """The result of one source: pictures, the files that decide them, and a description."""

    images: tuple[Image, ...]
    content: Sequence[Data]
    tag: str
    source: str
    notes: tuple[str, ...] = ()
    rule: str = ""  # set if the source decides it: the extent of pictures drawn from raw events
    frames: ChosenFrames | None = None


@dataclass(frozen=True)
class MediaSource:
    """A way to get the pictures, and its name in notes."""

    what: str
    read: Callable[[], LoadedPictures]


def of(sample: Sample, kind: MediaKind, rule: str, extent: Extent = "slice") -> list[MediaSource]:
    """The sample's sources for one kind, best first; empty if it has no file for it."""
    if kind == "events":
        return _of_events(sample, events.SLICES, extent)
    if kind == "image":
        # A single picture beside a clip is meant for the image model.
        sources = _of_frames(sample, video.middle)
        return sources[::-1] if len(sample.images) == 1 else sources
    sources = _of_frames(sample, partial(video.choose, rule=rule))
    return sources[:-1] if len(sample.images) == 1 else sources


def previews(sample: Sample) -> list[MediaSource]:
    """Sources that give one picture each, the cheapest first."""
    stills = [
        MediaSource("a picture", partial(_folder, paths, video.middle, "picture"))
        for paths in (sample.images, sample.frames, sample.event_images)
        if paths
    ]
    moving = [MediaSource("the clip", partial(_first_frame, sample.mp4))] if sample.mp4 else []
    raw = [MediaSource("the events", partial(_rendered, sample.events, 1))] if sample.events else []
    return stills + moving + raw


def _of_events(sample: Sample, slices: int, extent: Extent) -> list[MediaSource]:
    sources = []
    if sample.event_images:
        sources.append(MediaSource("event images", partial(_event_images, sample.event_images)))
    if sample.events is not None:
        drawn = partial(_rendered, sample.events, slices, extent)
        sources.append(MediaSource("raw events", drawn))
    return sources


def _of_frames(sample: Sample, choice: video.Choice) -> list[MediaSource]:
    sources = []
    if sample.mp4 is not None:
        sources.append(MediaSource("the clip", partial(_clip, sample.mp4, choice)))
    if sample.frames:
        frames = partial(_folder, sample.frames, choice, "frame")
        sources.append(MediaSource("the frame folder", frames))
    if sample.images:
        sources.append(MediaSource("the images", partial(_folder, sample.images, choice, "image")))
    return sources


def _event_images(paths: Sequence[Path]) -> LoadedPictures:
    data, pictures = _decoded(paths, images.decode)
    return LoadedPictures(tuple(pictures), data, "event images", f"{len(data)} event images")


def _decoded(
    paths: Sequence[Path], decode: Callable[[bytes, str], Image]
) -> tuple[list[bytes], list[Image]]:
    """Every file's bytes and picture; MediaError if together they need too much memory."""
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


def still(data: bytes, name: str) -> Image:
    """A picture: PNG, JPEG or a GIF with one picture."""
    if kinds.by_content(data[: kinds.HEAD]) is not kinds.GIF:
        return images.decode(data, name)
    if kinds.moves(data):
        raise MediaError(f"{name} is an animated GIF, not a picture: give it as a clip.")
    return video.first(data, name)


def _rendered(path: Path, slices: int, extent: Extent = "slice") -> LoadedPictures:
    data = content(path)
    stream = events.parse(data, label(path))
    try:
        pictures = tuple(events.render(stream, slices, extent))
    except MediaError as error:
        raise MediaError(f"{label(path)} is too short: {error}") from error
    source = f"raw events: {len(stream):,} in {stream.duration_ms:,.1f} ms, {slices} slices"
    notes = (*stream.warnings, *_sizes(pictures))
    return LoadedPictures(pictures, [data], f"raw events {slices}", source, notes, extent)


def _sizes(pictures: Sequence[Image]) -> Iterator[str]:
    """A note if the event pictures differ in size."""
    sizes = [f"{image.shape[1]} x {image.shape[0]}" for image in pictures]
    if len(set(sizes)) > 1:
        yield (
            f"The event pictures differ in size ({', '.join(sizes)}), because each is as large as "
            "the area of its slice's events."
        )


def _clip(path: Path, choice: video.Choice) -> LoadedPictures:
    data = large(path)
    clip = video.decode(data, label(path), choice)
    notes = (*clip.notes, *_repeated("clip", clip.indices, clip.count))
    source = _source(_called(data), clip.indices, clip.count)
    rate = video.rate(data, label(path))
    chosen = ChosenFrames(clip.indices, clip.count, path, rate)
    return LoadedPictures(clip.images, [data], "mp4", source, notes, frames=chosen)


def _first_frame(path: Path) -> LoadedPictures:
    data = large(path)
    return LoadedPictures(
        (video.first(data, label(path)),), [data], "mp4", f"{_called(data)}: frame 0"
    )


def _called(data: Data) -> str:
    """The short name of the clip's kind."""
    with opened(data) as file:
        kind = kinds.by_content(file.read(kinds.HEAD)) or kinds.MP4
    return kind.short


def _folder(paths: Sequence[Path], choice: video.Choice, what: str) -> LoadedPictures:
    """The chosen pictures of a sequence; the others are not read."""
    indices = choice(len(paths))
    chosen = list(dict.fromkeys(indices))
    contents, decoded = _decoded([paths[i] for i in chosen], still)
    data = dict(zip(chosen, contents, strict=True))
    pictures = dict(zip(chosen, decoded, strict=True))
    return LoadedPictures(
        tuple(pictures[i] for i in indices),
        [data[i] for i in indices],
        f"{len(paths)} pictures",
        _source(f"{what} folder" if what == "frame" else f"{what}s", indices, len(paths)),
        tuple(_repeated("folder" if what == "frame" else "list", indices, len(paths))),
        frames=ChosenFrames(tuple(indices), len(paths)),
    )


def _repeated(what: str, indices: Sequence[int], count: int) -> Iterator[str]:
    """A note if the rule shows a frame more than once."""
    if len(set(indices)) < len(indices):
        frames = "1 frame" if count == 1 else f"{count:,} frames"
        yield f"The {what} has {frames} and the model is shown {len(indices)}: frames repeat."


def _source(what: str, indices: Sequence[int], count: int) -> str:
    numbers = ", ".join(str(i) for i in indices[:_SHOWN_INDICES])
    return f"{what}: frame{'s'[: len(indices) > 1]} {numbers} of {count:,}"

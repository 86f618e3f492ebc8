"""Checks a user's own files by reading each as a run would, and makes a sample of the good ones.

Every message names a file as the user does, escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.errors import BadInput, MediaError
from engine.media import dataset, events, images, media_sources, readers, video
from engine.media.media_files import content, large
from engine.media_options import Window
from engine.plain_files import reason
from engine.quoting import quoted
from engine.types import FRAME_RULES, Sample

CHECKED = Window(0, 1_000_000)  # of a recording that is longer
_ONE_ONLY = {"clip": "clip", "events": "event file"}


@dataclass(frozen=True)
class OwnFiles:
    """The sample of the files that can be used (None if there is none), and for each other file a
    sentence: its name, what is wrong and what to do."""

    sample: Sample | None
    rejected: tuple[str, ...]


def fault(name: str, path: Path, event_images: bool = False) -> str:
    """What is wrong with a file and what to do; "" if it can be used."""
    called = quoted(name)
    try:
        if not path.stat().st_size:
            return f"{called} is empty (0 bytes): export it again."
        field = dataset.field_of(name, path)
        _READERS["event images" if event_images and field == "images" else field](path, called)
    except BadInput as error:  # MediaError is one
        return str(error)
    except OSError as error:
        return f"{called} could not be read ({reason(error)}): add it again."
    return ""


def gather(
    files: Sequence[tuple[str, Path]], faults: Sequence[str], event_images: bool = False
) -> OwnFiles:
    """The sample of the files without a fault; a second clip or event file is not used."""
    rejected, used = [sentence for sentence in faults if sentence], list[tuple[str, Path]]()
    first: dict[str, str] = {}
    for (name, path), sentence in zip(files, faults, strict=True):
        if sentence:
            continue
        field = dataset.field_of(name, path)
        if field in _ONE_ONLY and field in first:
            rejected.append(
                f"{quoted(name)} is a second {_ONE_ONLY[field]}, and {quoted(first[field])} is "
                "used: remove one of them."
            )
            continue
        first.setdefault(field, name)
        used.append((name, path))
    if not used:
        return OwnFiles(None, tuple(rejected))
    return OwnFiles(dataset.own(used, event_images), tuple(rejected))


def _events(path: Path, name: str) -> None:
    """Draws a short recording; of a long one, which needs a window, only the beginning is read."""
    with readers.opened(path, name) as recording:
        long = recording.duration_us() >= CHECKED.length_us
        stream = recording.events(CHECKED if long else None)
    if long:
        return
    try:
        events.render(stream)
    except MediaError as error:
        raise MediaError(f"{name} is too short: {error}") from error


def _clip(path: Path, name: str) -> None:
    """Decodes the frames of the default rule, the middle one and the last one."""

    def shown(count: int) -> list[int]:
        chosen = {*video.choose(count, FRAME_RULES[0]), *video.middle(count), count - 1}
        return sorted(index for index in chosen if index >= 0)

    video.decode(large(path), name, shown)


_READERS: dict[str, Callable[[Path, str], object]] = {
    "images": lambda path, name: media_sources.still(content(path), name),
    "event images": lambda path, name: images.decode(content(path), name),
    "events": _events,
    "clip": _clip,
}

"""Clips to the few frames a model is shown, and the rules that choose them.

Where it is certain which packets the wanted frames need, only those are decoded (groups.py); else
every frame is, as later ones are built on earlier ones.  Either way only the wanted ones are
converted to RGB and kept, and a long clip takes no more memory than a short one.

Boundary: bytes in, pictures out; a folder of frames is not a clip, yet follows the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from engine.errors import BadInput, MediaError
from engine.media import decoding, frame_groups
from engine.media.containers import container
from engine.media.h264 import Unsure
from engine.media.media_files import Data, label, large, opened
from engine.types import FRAME_RULES, Image

FRAMES = 8
_TAIL = 64  # bytes in which a GIF has its end mark

Choice = Callable[[int], Sequence[int]]


@dataclass(frozen=True, eq=False)
class Clip:
    """The chosen frames of a clip of `count` frames; images[i] is frame indices[i]."""

    images: tuple[Image, ...]
    indices: tuple[int, ...]
    count: int
    notes: tuple[str, ...] = ()


def choose(n: int, rule: str, count: int = FRAMES) -> list[int]:
    """Which `count` of n frames are shown, in ascending order; BadInput for an unknown rule.

    Of fewer frames than `count`, "arange" and "linspace" repeat some, so that there are always
    `count`; "spread" gives each once.
    """
    if rule not in FRAME_RULES:
        raise BadInput(f"frames is {rule!r}: choose one of {', '.join(FRAME_RULES)}.")
    if n <= 0:
        return []
    if rule == "linspace":
        return [int(i) for i in np.linspace(0, n - 1, count, dtype=int)]
    if rule == "spread":
        if n <= count:
            return list(range(n))
        return [int(i * (n - 1) / max(1, count - 1)) for i in range(count)]
    return [int(i) for i in np.arange(0, n, n / count).astype(int)[:count]]


def middle(n: int) -> list[int]:
    """The one frame a picture model is shown: n // 2."""
    return [n // 2] if n > 0 else []


def read(path: Path, rule: str, count: int = FRAMES) -> Clip:
    """The frames [H, W, 3] RGB that the rule chooses from a clip; MediaError if undecodable."""
    return decode(large(path), label(path), lambda n: choose(n, rule, count))


def decode(data: Data, name: str, choice: Choice) -> Clip:
    """The frames that `choice` picks from a clip with n frames."""
    try:
        kept, cut = frame_groups.frames(data, name, choice)
    except Unsure:
        found = _of_all(data, name, choice)
        return replace(found, notes=(*found.notes, *_cut_short(data, name)))
    return Clip(tuple(kept[i] for i in cut.indices), cut.indices, cut.count)


def _cut_short(data: Data, name: str) -> Iterator[str]:
    """A note on a GIF without its end mark (0x3B), of which FFmpeg reads what is there."""
    with opened(data) as file:
        head = file.read(4)
        file.seek(max(0, len(data) - _TAIL))
        whole = file.read().rstrip(b"\0").endswith(b";")
    if head == b"GIF8" and not whole:
        yield f"{name} has no end mark: it may be cut off, and frames may be missing."


def _of_all(data: Data, name: str, choice: Choice) -> Clip:
    """The same after decoding every frame: what is always right.

    By one thread: several repair damage differently from run to run, and at times do not mark it.
    """
    expected = _count(data, name)
    wanted = list(choice(expected))
    kept, count, damaged = decoding.everything(data, name, wanted)
    if count != expected:
        wanted = list(choice(count))
        kept, count, damaged = decoding.everything(data, name, wanted)
    if not wanted or not count:
        raise MediaError(f"{name} holds no frames: encode it again or pick another clip.")
    notes = []
    if count != expected:
        notes.append(f"{name} says {expected:,} frames, of which {count:,} could be decoded.")
    if damaged:
        notes.append(f"{name} is damaged: {damaged:,} of its frames were repaired by the decoder.")
    return Clip(tuple(kept[i] for i in wanted), tuple(wanted), count, tuple(notes))


def first(data: Data, name: str) -> Image:
    """Frame 0 of a clip, for previews: nothing behind it is decoded."""
    with container(data, name) as clip:
        frame = next(clip.decode(clip.streams.video[0]), None)
        if frame is None:
            raise MediaError(f"{name} holds no frames: encode it again or pick another clip.")
        return decoding.pixels(frame)


def _count(data: Data, name: str) -> int:
    """How many frames there are to decode: the packets, less those that an edit list hides."""
    count = 0
    with container(data, name) as clip:
        for number, packet in enumerate(clip.demux(clip.streams.video[0])):
            decoding.check_count(number, name)
            count += bool(packet.size) and not packet.is_discard
    return count

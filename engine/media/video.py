"""MP4 clips to the few frames a model is shown, and the rules that choose them.

The packets are counted first, which is cheap; then every frame is decoded, as later ones are
built on earlier ones, but only the wanted ones are converted to RGB and kept.

Boundary: bytes in, pictures out; a folder of frames is not a clip, yet follows the same rules.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import BadInput, MediaError
from engine.media.files import content, label
from engine.types import FRAME_RULES, Image

if TYPE_CHECKING:
    from av.container import InputContainer

FRAMES = 8
MIN_BYTES = 1_000
MAX_PIXELS = 50_000_000

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

    "arange" and "spread" give every frame once when there are fewer than `count`; "linspace"
    repeats frames then, as the scripts it comes from do.
    """
    if rule not in FRAME_RULES:
        raise BadInput(f"frames is {rule!r}: choose one of {', '.join(FRAME_RULES)}.")
    if n <= 0:
        return []
    if rule == "linspace":
        return [int(i) for i in np.linspace(0, n - 1, count, dtype=int)]
    if n <= count:
        return list(range(n))
    if rule == "spread":
        return [int(i * (n - 1) / max(1, count - 1)) for i in range(count)]
    return [int(i) for i in np.arange(0, n, n / count).astype(int)[:count]]


def middle(n: int) -> list[int]:
    """The one frame a picture model is shown: n // 2."""
    return [n // 2] if n > 0 else []


def read(path: Path, rule: str, count: int = FRAMES) -> Clip:
    """The frames [H, W, 3] RGB that the rule chooses from an MP4; MediaError if undecodable."""
    return decode(content(path), label(path), lambda n: choose(n, rule, count))


def decode(data: bytes, name: str, choice: Choice) -> Clip:
    """The frames that `choice` picks from the bytes of an MP4 with n frames."""
    expected = _count(data, name)
    wanted = list(choice(expected))
    kept, count, damaged = _keep(data, name, wanted)
    if damaged or count != expected:
        # Threads repair damage differently from run to run: one thread repeats itself.
        count, damaged = _keep(data, name, (), threads=1)[1:]
        wanted = list(choice(count))
        kept, count, damaged = _keep(data, name, wanted, threads=1)
    if not wanted or not count:
        raise MediaError(f"{name} holds no frames: encode it again or pick another clip.")
    notes = []
    if count != expected:
        notes.append(f"{name} says {expected:,} frames, of which {count:,} could be decoded.")
    if damaged:
        notes.append(f"{name} is damaged: {damaged:,} of its frames were repaired by the decoder.")
    return Clip(tuple(kept[i] for i in wanted), tuple(wanted), count, tuple(notes))


def first(data: bytes, name: str) -> Image:
    """Frame 0 of the bytes of an MP4, for previews: nothing behind it is decoded."""
    with _open(data, name) as container:
        frame = next(container.decode(container.streams.video[0]), None)
        if frame is None:
            raise MediaError(f"{name} holds no frames: encode it again or pick another clip.")
        return _pixels(frame)


def _count(data: bytes, name: str) -> int:
    """How many frames there are to decode: the packets, less those that an edit list hides."""
    with _open(data, name) as container:
        packets = container.demux(container.streams.video[0])
        return sum(1 for packet in packets if packet.size and not packet.is_discard)


def _keep(
    data: bytes, name: str, wanted: Sequence[int], threads: int = 0
) -> tuple[dict[int, Image], int, int]:
    """(the wanted frames by index, how many frames came, how many of them were damaged)."""
    kept: dict[int, Image] = {}
    count = damaged = 0
    chosen = set(wanted)
    with _open(data, name) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE" if threads == 1 else "AUTO"
        stream.codec_context.thread_count = threads
        for count, frame in enumerate(container.decode(stream), start=1):
            damaged += bool(frame.is_corrupt)
            if count - 1 in chosen:
                kept[count - 1] = _pixels(frame)
    return kept, count, damaged


def _pixels(frame: Any) -> Image:
    """[H, W, 3] RGB, turned as the container says: phones film sideways."""
    image: Image = frame.to_ndarray(format="rgb24")
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image


@contextmanager
def _open(data: bytes, name: str) -> Iterator[InputContainer]:
    """The clip, opened as MP4 only: a playlist in disguise could make FFmpeg open other files.

    What FFmpeg refuses while the clip is open leaves as a MediaError.
    """
    try:
        import av
    except ImportError as error:
        raise MediaError(
            f"{name} could not be decoded (PyAV is not installed): `pip install av`."
        ) from error
    if len(data) < MIN_BYTES:
        raise MediaError(
            f"{name} has {len(data):,} bytes: an MP4 below {MIN_BYTES:,} bytes is broken, copy it "
            "again or pick another clip."
        )
    try:
        with av.open(io.BytesIO(data), "r", "mp4", metadata_errors="replace") as container:
            _check(container, name)
            yield container
    except (av.error.FFmpegError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise MediaError(
            f"{name} could not be decoded ({reason}): encode it again or pick another clip."
        ) from error


def _check(container: InputContainer, name: str) -> None:
    if not container.streams.video:
        raise MediaError(f"{name} has no video track: give an MP4 with a picture.")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"{name} has a video track of no known codec: encode it as H.264.")
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{name} is {stream.width:,} x {stream.height:,} pixels: make it smaller than "
            f"{MAX_PIXELS:,} pixels."
        )

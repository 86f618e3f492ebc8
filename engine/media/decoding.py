"""Decodes packets into pictures: all frames of a clip, or some.

Boundary: runs the decoder and converts the wanted frames; callers decide which frames and packets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import MediaError
from engine.media.containers import container
from engine.media.media_files import Data
from engine.types import Image

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer

THREADS = 0  # as many as there are cores
MAX_FRAMES = 1_000_000
# A few kilobytes can describe hours of large still pictures.  A healthy clip has at most some
# hundred pixels per byte; a short clip of a still scene may have more.
MAX_DECODED = 5_000_000_000  # pixels, or as many as the file has bytes for
PIXELS_PER_BYTE = 8_000
# A decoder's repairs depend on what it decoded before, so damage is an error here.
_STRICT = {"err_detect": "explode"}


def all_frames(
    data: Data, name: str, wanted: Collection[int], threads: int = 1
) -> tuple[dict[int, Image], int, int]:
    """(the wanted frames by index, how many frames came, how many of them were damaged)."""
    kept: dict[int, Image] = {}
    count = damaged = 0
    chosen = set(wanted)
    with container(data, name) as clip:
        _use(clip, threads)
        for count, frame in enumerate(clip.decode(clip.streams.video[0]), start=1):
            check_count(count, name)
            _check_work(count * frame.width * frame.height, data, name)
            damaged += bool(frame.is_corrupt)
            if count - 1 in chosen:
                kept[count - 1] = pixels(frame)
    return kept, count, damaged


def frames_of(
    clip: InputContainer,
    packets: Iterable[Packet[Any]],
    sent: Collection[int],
    wanted: Mapping[int, int],
    threads: int | None = None,
) -> dict[int, Image] | None:
    """Decodes the packets at the positions `sent`; returns the frames at the times in `wanted`.

    The result is keyed by frame index.  None unless the decoder gives one whole frame per packet,
    in display order.
    """
    _use(clip, threads)
    context = clip.streams.video[0].codec_context
    context.options = {**context.options, **_STRICT}
    kept: dict[int, Image] = {}
    times: list[int] = []
    for frame in _frames(context, packets, sent):
        if frame.is_corrupt or frame.pts is None:
            return None
        times.append(frame.pts)
        if frame.pts in wanted:
            kept[wanted[frame.pts]] = pixels(frame)
    whole = len(times) == len(sent) and times == sorted(times) and len(kept) == len(wanted)
    return kept if whole else None


def _frames(context: Any, packets: Iterable[Packet[Any]], sent: Collection[int]) -> Iterator[Any]:
    last = max(sent)
    for place, packet in enumerate(packets):
        if place in sent:
            yield from context.decode(packet)
        if place == last:
            break
    yield from context.decode(None)


def check_count(count: int, name: str) -> None:
    """MediaError for an absurd number of packets or frames."""
    if count > MAX_FRAMES:
        raise MediaError(f"{name} has over {MAX_FRAMES:,} frames: cut it shorter.")


def _check_work(decoded: int, data: Data, name: str) -> None:
    if decoded > max(MAX_DECODED, PIXELS_PER_BYTE * len(data)):
        raise MediaError(
            f"{name} has over {decoded:,} pixels in {len(data):,} bytes: cut it shorter or make it "
            "smaller."
        )


def _use(clip: InputContainer, threads: int | None) -> None:
    stream, count = clip.streams.video[0], THREADS if threads is None else threads
    stream.thread_type = "NONE" if count == 1 else "AUTO"
    stream.codec_context.thread_count = count


def pixels(frame: Any) -> Image:
    """[H, W, 3] RGB, rotated as the container says (phones film sideways)."""
    image: Image = frame.to_ndarray(format="rgb24")
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image

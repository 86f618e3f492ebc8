"""Opens clips with FFmpeg, and decodes their packets into pictures: all frames, or some.

MP4 and MOV, Matroska and WebM, MPEG transport streams, AVI and GIF.  The content decides the
reader, and FFmpeg gets its name.  If FFmpeg guessed, a file could be read as a playlist that opens
other files.  The five readers listed here read only the one file they are given, through Python.  A
reader may not use another reader (AVI can hold subtitles of any kind) or open a network address.

Sizes are checked before memory is allocated: what an MP4's tables declare (mp4_boxes.py), and the
pixels of a frame, both in the header and in the decoder.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import MediaError
from engine.media import kinds, mp4_boxes
from engine.media.media_files import Data, opened
from engine.plain_files import reason
from engine.types import Image

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer

MIN_BYTES = 1_000  # of all kinds except GIF, which can be smaller
MAX_PIXELS = 8192 * 4320  # 8K; eight frames of it, as RGB, take 850 MB
READERS = {
    kinds.MP4: "mp4",
    kinds.MOV: "mp4",
    kinds.MATROSKA: "matroska",
    kinds.WEBM: "matroska",
    kinds.MPEGTS: "mpegts",
    kinds.AVI: "avi",
    kinds.GIF: "gif",
}
# FFmpeg's full names of these readers, which it compares.
_FORMATS = {"mp4": "mov,mp4,m4a,3gp,3g2,mj2", "matroska": "matroska,webm"}
# Without these options FFmpeg decodes pictures on opening, to learn what the header already says.
UNPROBED = {"skip_frame": "all", "analyzeduration": "1"}
THREADS = 0  # as many as there are cores
MAX_FRAMES = 1_000_000
# A few kilobytes can describe hours of large still pictures.  A healthy clip has at most some
# hundred pixels per byte; a short clip of a still scene may have more.
MAX_DECODED = 5_000_000_000  # pixels, or as many as the file has bytes for
PIXELS_PER_BYTE = 8_000
# A decoder's repairs depend on what it decoded before, so damage is an error here.
_STRICT = {"err_detect": "explode"}


def reader_of(head: bytes, name: str = "") -> str:
    """FFmpeg's name of the reader for a file with these first bytes; MP4 if they are unknown.
    MediaError for a known kind that is not supported."""
    kind = kinds.by_content(head) or kinds.MP4
    if kind not in READERS:
        raise MediaError(kind.refusal(name, "a supported clip"))
    return READERS[kind]


@contextmanager
def container(data: Data, name: str, probed: bool = True) -> Iterator[InputContainer]:
    """The open clip.  FFmpeg's errors are raised as MediaError until it is closed.

    With `probed` False an MP4 opens much faster and gives only what its header says; asking for
    its pixel format would then crash PyAV.
    """
    try:
        import av
    except ImportError as error:
        raise MediaError(
            f"{name} could not be decoded (PyAV is not installed): `pip install av`."
        ) from error
    try:
        with opened(data) as file:
            kind = reader_of(file.read(kinds.HEAD), name)
            if len(data) < MIN_BYTES and kind != "gif":
                raise MediaError(
                    f"{name} has {len(data):,} bytes: a clip below {MIN_BYTES:,} bytes is broken, "
                    "copy it again or pick another clip."
                )
            if kind == "mp4":
                mp4_boxes.check(file, len(data))
            file.seek(0)
            options = {
                "format_whitelist": _FORMATS.get(kind, kind),
                "protocol_whitelist": "none",
                "max_pixels": str(MAX_PIXELS),
            }
            if kind == "mp4" and not probed:
                options |= UNPROBED
            with av.open(file, "r", kind, options, metadata_errors="replace") as clip:
                _check(clip, name)
                clip.streams.video[0].codec_context.options = {"max_pixels": str(MAX_PIXELS)}
                yield clip
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise MediaError(
            f"{name} could not be decoded ({reason(error)}): encode it again or pick another clip."
        ) from error


def _check(clip: InputContainer, name: str) -> None:
    if not clip.streams.video:
        raise MediaError(f"{name} has no video track: choose a clip that has one.")
    stream = clip.streams.video[0]
    if stream.codec_context is None:
        raise MediaError(f"The codec of {name} is not known: encode it as H.264.")
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{name} is {stream.width:,} x {stream.height:,} pixels: make it smaller than "
            f"{MAX_PIXELS:,} pixels."
        )


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
            decoded = count * frame.width * frame.height
            if decoded > max(MAX_DECODED, PIXELS_PER_BYTE * len(data)):
                raise MediaError(
                    f"{name} has over {decoded:,} pixels in {len(data):,} bytes: cut it shorter or "
                    "make it smaller."
                )
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


def _use(clip: InputContainer, threads: int | None) -> None:
    stream, count = clip.streams.video[0], THREADS if threads is None else threads
    stream.thread_type = "NONE" if count == 1 else "AUTO"
    stream.codec_context.thread_count = count


def pixels(frame: Any) -> Image:
    """[H, W, 3] RGB, rotated as the container says (phones film sideways)."""
    image: Image = frame.to_ndarray(format="rgb24")
    turns = round(frame.rotation / 90) % 4
    return np.ascontiguousarray(np.rot90(image, turns)) if turns else image

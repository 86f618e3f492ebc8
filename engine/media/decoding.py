"""Opens clips with FFmpeg, and decodes their packets into pictures: all frames, or some.

MP4 and MOV, Matroska and WebM, MPEG transport streams, AVI and GIF.  The content decides the
reader, and FFmpeg gets its name.  If FFmpeg guessed, a file could be read as a playlist that opens
other files.  The five readers listed here read only the one file they are given, through Python.  A
reader may not use another reader (AVI can hold subtitles of any kind) or open a network address.

Sizes are checked before memory is allocated: what an MP4's tables declare, and the pixels of a
frame, both in the header and in the decoder.  FFmpeg needs about 70 bytes per declared sample of an
MP4, and a table of 20 bytes can declare two billion.

Format of these tables: ISO/IEC 14496-12, 4.2 (boxes), 8.6.1 (stts, ctts), 8.7.3 (stsz, stz2), 8.6.6
(elst), 8.8.8 (trun).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from engine.errors import MediaError
from engine.media import kinds
from engine.media.media_files import Data, opened
from engine.plain_files import reason
from engine.types import Image

if TYPE_CHECKING:
    from av import Packet
    from av.container import InputContainer

MIN_BYTES = 1_000  # of all kinds except GIF, which can be smaller
MAX_PIXELS = 8192 * 4320  # 8K; eight frames of it, as RGB, take 850 MB
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

# Of an MP4's tables.  A million samples are four and a half hours at 60 frames per second.  Sound
# stored sample by sample is exempt, as FFmpeg does not index it this way.
MAX_SAMPLES = 1_000_000
MAX_TABLES = 128 << 20  # bytes of a header, also of a fragment's header
MAX_BOXES = 200_000
MAX_EDITED = 100_000_000  # FFmpeg visits every sample for every entry of an edit list
_DEPTH = 10  # FFmpeg's own limit
_FOLDERS = frozenset(
    b"moov moof trak traf mdia minf stbl edts mvex udta dinf tapt wave hoov".split()
)


def reader_of(head: bytes, name: str = "") -> str:
    """FFmpeg's name of the reader for a file with these first bytes; MP4 if they are unknown.
    MediaError for a known kind that is not supported."""
    kind = kinds.by_content(head) or kinds.MP4
    if kind.field != "clip":
        raise MediaError(kind.refusal(name, "a supported clip"))
    return kind.reader


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
                check_tables(file, len(data))
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
    in display order, and no fields.
    """
    _use(clip, threads)
    context = clip.streams.video[0].codec_context
    context.options = {**context.options, **_STRICT}
    kept: dict[int, Image] = {}
    times: list[int] = []
    first = enumerate(islice(packets, max(sent) + 1))
    chosen = chain((packet for place, packet in first if place in sent), [None])
    for frame in (frame for packet in chosen for frame in context.decode(packet)):
        if frame.is_corrupt or frame.interlaced_frame or frame.pts is None:
            return None
        times.append(frame.pts)
        if frame.pts in wanted:
            kept[wanted[frame.pts]] = pixels(frame)
    whole = len(times) == len(sent) and times == sorted(times) and len(kept) == len(wanted)
    return kept if whole else None


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


@dataclass
class Counts:
    """What the tables declare so far, over all tracks."""

    samples: int = 0
    edits: int = 0
    boxes: int = 0
    sound: bool = False  # whether the current track is sound

    def add(self, kind: bytes, box: memoryview, depth: int = 0) -> None:
        """Counts one box with those inside; `box` is its content."""
        self.boxes += 1
        if kind in _FOLDERS and depth <= _DEPTH:
            at = 0
            while at + 8 <= len(box):
                inner, begin, end = _box(box[at:], len(box) - at)
                self.add(inner, box[at + begin : at + end], depth + 1)
                at += end
        elif kind == b"cmov":
            raise ValueError("a compressed header")
        elif kind == b"hdlr":
            self.sound = bytes(box[8:12]) == b"soun"
        elif kind == b"elst":
            self.edits += min(_number(box, 4), len(box) // 12)
        elif kind in _SAMPLES:
            self.samples = max(self.samples, _SAMPLES[kind](box, self.sound))
        elif kind == b"trun":
            self.samples += _number(box, 4)
        if self.samples > MAX_SAMPLES:
            raise ValueError(f"tables of over {MAX_SAMPLES:,} frames")
        if self.boxes > MAX_BOXES:
            raise ValueError(f"over {MAX_BOXES:,} boxes")
        if self.edits * self.samples > MAX_EDITED:
            raise ValueError(f"an edit list of {self.edits:,} entries")


def check_tables(file: BinaryIO, size: int) -> None:
    """ValueError if the tables of an MP4 of `size` bytes declare more than the limits."""
    counts, at = Counts(), 0
    while at + 8 <= size:
        file.seek(at)
        (kind, begin, end), content = _box(memoryview(file.read(16)), size - at), b""
        if kind in _FOLDERS or kind in _SAMPLES or kind == b"trun":
            if end - begin > MAX_TABLES:
                raise ValueError(f"a header of {end - begin:,} bytes")
            file.seek(at + begin)
            content = file.read(end - begin)
        counts.add(kind, memoryview(content))
        at += end


def _box(data: memoryview, limit: int) -> tuple[bytes, int, int]:
    """(kind, start and end of the content) of the box at the beginning of the data; its end is at
    most `limit` and after its header."""
    size, begin = _number(data, 0), 8
    if size == 1:
        size, begin = int.from_bytes(data[8:16], "big"), 16
    begin = min(begin, limit)
    return bytes(data[4:8]), begin, max(min(size or limit, limit), begin)


def _number(data: memoryview, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")


def _sized(box: memoryview, sound: bool) -> int:
    return 0 if sound and _number(box, 4) else _number(box, 8)


def _timed(box: memoryview, sound: bool) -> int:
    """The sum of the counts in a table of (count, duration)."""
    entries = min(_number(box, 4), (len(box) - 8) // 8)
    if sound and entries == 1 and _number(box, 12) == 1:
        return 0
    return sum(_number(box, at) for at in range(8, 8 + 8 * entries, 8))


_SAMPLES = {
    b"stsz": _sized,
    b"stz2": lambda box, sound: _number(box, 8),
    b"stts": _timed,
    b"ctts": _timed,
}
